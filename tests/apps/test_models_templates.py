"""What a brand proposes becomes jobs, once."""

import pytest

from facho.apps.jobs.models import SnmpJob
from facho.apps.jobs.templates import propose
from facho.brands import BRANDS
from facho.engine.errors import UnknownBrand

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("brand", BRANDS)
def test_everything_a_brand_proposes_is_a_job_that_can_be_saved_by_hand(db, brand):
    jobs = propose(brand)

    assert jobs
    assert {job.name for job in jobs} == {each.name for each in BRANDS[brand].templates}
    for job in jobs:
        job.full_clean()
        assert not job.reads_nothing
        assert job.priority == 90 or job.kind != "discovery"


@pytest.mark.parametrize("brand", BRANDS)
def test_proposing_twice_keeps_what_a_person_changed(db, brand):
    first = propose(brand)
    SnmpJob.objects.filter(pk=first[0].pk).update(interval_seconds=1234)

    again = propose(brand)

    assert {job.pk for job in again} == {job.pk for job in first}
    assert SnmpJob.objects.get(pk=first[0].pk).interval_seconds == 1234


@pytest.mark.parametrize("brand", BRANDS)
def test_masters_come_before_their_chains(db, brand):
    seen = set()
    for job in propose(brand):
        assert job.follows_id is None or job.follows_id in seen
        seen.add(job.pk)


def test_an_unknown_brand_proposes_nothing(db):
    with pytest.raises(UnknownBrand, match="acme"):
        propose("acme")
