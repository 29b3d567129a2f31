"""A rule about chosen OLTs: when the last one is deleted, the rule is disabled and reports it."""

import pytest
from alert_rows import make_channel, make_olt, make_rule, set_of, snapshot
from builders import MIN, SEC, T0

from facho.alerts.evaluation import evaluate
from facho.alerts.models import Alert, Delivery, Rule

pytestmark = pytest.mark.django_db


def look(now=T0):
    evaluate(now, snapshot(now), T0)


@pytest.fixture
def sur():
    """OLT-SUR-03, whose breaker is open."""
    olt = make_olt("OLT-SUR-03")
    set_of(olt, breaker_opened_at=T0)
    return olt


@pytest.fixture
def norte():
    """OLT-NORTE-02, which a rule is about."""
    return make_olt("OLT-NORTE-02")


def told(caplog, name):
    return [each.getMessage() for each in caplog.records if getattr(each, "event", None) and each.event.name == name]


def test_a_rule_whose_only_olt_is_deleted_is_disabled_and_not_about_all(sur, norte, caplog):
    rule = make_rule(olts=[norte], channels=[make_channel()], name="The north")
    look(T0)

    norte.delete()
    look(T0 + 10 * SEC)
    look(T0 + 20 * SEC)

    rule.refresh_from_db()
    assert not rule.enabled
    assert rule.has_lost_its_olts
    assert Alert.objects.count() == Delivery.objects.count() == 0
    assert told(caplog, "RULE_DISABLED") == ["alert The north was disabled: all its OLTs were deleted"]


def test_a_rule_that_has_another_olt_left_goes_on(sur, norte):
    rule = make_rule(olts=[norte, sur])
    look(T0)

    norte.delete()
    look(T0 + 10 * SEC)

    assert Rule.objects.get(pk=rule.pk).enabled
    assert Alert.objects.get().olt == sur


def test_a_rule_about_all_outlives_every_olt(norte):
    rule = make_rule()
    look(T0)

    norte.delete()
    look(T0 + 10 * SEC)

    assert Rule.objects.get(pk=rule.pk).enabled


def test_a_rule_that_is_about_no_olt_does_not_miss_one(norte):
    rule = make_rule("pool_saturated", olts=[norte])
    look(T0)

    norte.delete()
    look(T0 + 10 * SEC)

    assert Rule.objects.get(pk=rule.pk).enabled


def test_who_enables_it_again_without_choosing_is_told_again(sur, norte, caplog):
    rule = make_rule(olts=[norte])
    look(T0)
    norte.delete()
    look(T0 + 10 * SEC)

    Rule.objects.filter(pk=rule.pk).update(enabled=True)
    look(T0 + MIN)

    assert not Rule.objects.get(pk=rule.pk).enabled
    assert len(told(caplog, "RULE_DISABLED")) == 2
    assert Alert.objects.count() == 0


def test_who_chooses_all_of_them_gets_all_of_them(sur, norte):
    rule = make_rule(olts=[norte])
    look(T0)
    norte.delete()
    look(T0 + 10 * SEC)

    rule.settle_olts()
    Rule.objects.filter(pk=rule.pk).update(enabled=True)
    look(T0 + MIN)

    assert Alert.objects.get().olt == sur
