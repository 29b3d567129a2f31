"""Deleting a job that others follow: nothing happens to the followers that nobody has chosen."""

import pytest
from cast import make_job
from django.contrib.messages import get_messages
from django.db.models import RestrictedError
from django.urls import reverse

from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import SnmpJob, WorkflowNode

JOBS = "/api/v1/jobs/"
LIST = reverse("admin:jobs_snmpjob_changelist")


@pytest.fixture
def third(power, names, node):
    """A second follower of Optical power, which runs on OLT-CENTRAL-01."""
    SnmpJob.objects.filter(pk=power.pk).update(interval_seconds=1800)
    return make_job("State", columns=["state"], follows=power, interval_seconds=300)


def jobs():
    return set(SnmpJob.objects.values_list("name", flat=True))


def scheduled():
    """Return the nodes that have a schedule of their own, with their interval."""
    nodes = WorkflowNode.objects.filter(master=None).select_related("job")
    return {node.job.name: node.interval_seconds for node in nodes}


class TestApi:
    def test_without_a_choice_it_lists_the_followers_and_deletes_nothing(self, api, power, names, third):
        answer = api.delete(f"{JOBS}{power.pk}/")

        assert answer.status_code == 409
        assert answer.json() == {
            "detail": "Optical power is followed by Names, State. Add ?followers=delete to delete them too, or "
            "?followers=detach to give each one its own schedule.",
            "followers": [
                {"id": names.pk, "name": "Names", "interval_seconds": 300},
                {"id": third.pk, "name": "State", "interval_seconds": 300},
            ],
        }
        assert jobs() == {"Optical power", "Names", "State"}
        assert WorkflowNode.objects.count() == 3

    @pytest.mark.parametrize("query", ["?follower=delete", "?followers=delete&dry_run=1", "?followers=all"])
    def test_a_parameter_that_does_not_exist_deletes_nothing(self, api, power, third, query):
        answer = api.delete(f"{JOBS}{power.pk}/{query}")

        assert answer.status_code == 400
        assert jobs() == {"Optical power", "Names", "State"}

    def test_they_are_deleted_on_request(self, api, power, third):
        before = Olt.objects.get().revision

        answer = api.delete(f"{JOBS}{power.pk}/?followers=delete")

        assert answer.status_code == 204
        assert (jobs(), WorkflowNode.objects.count()) == (set(), 0)
        assert Olt.objects.get().revision > before

    def test_they_are_detached_on_request_and_keep_their_interval(self, api, power, third):
        before = Olt.objects.get().revision

        answer = api.delete(f"{JOBS}{power.pk}/?followers=detach")

        assert answer.status_code == 200
        assert (
            answer.json()["detail"]
            == "Optical power was deleted. These jobs now have their own schedule: Names, State."
        )
        assert [each["interval_seconds"] for each in answer.json()["followers"]] == [1800, 1800]
        assert jobs() == {"Names", "State"}
        assert scheduled() == {"Names": 1800, "State": 1800}
        assert Olt.objects.get().revision > before

    def test_a_node_keeps_the_interval_that_its_master_had_there(self, api, power, third):
        WorkflowNode.objects.filter(job=power).update(own_interval_seconds=900)

        api.delete(f"{JOBS}{power.pk}/?followers=detach")

        assert scheduled() == {"Names": 900, "State": 900}

    def test_another_choice_is_refused(self, api, power, third):
        answer = api.delete(f"{JOBS}{power.pk}/?followers=keep")

        assert answer.status_code == 400
        assert "keep" in answer.json()["followers"][0]
        assert jobs() == {"Optical power", "Names", "State"}

    def test_a_job_without_followers_needs_no_choice(self, api, power, third):
        assert api.delete(f"{JOBS}{third.pk}/").status_code == 204
        assert jobs() == {"Optical power", "Names"}


class TestAdmin:
    def test_the_page_asks_what_becomes_of_the_followers(self, admin_page, power, third):
        page = admin_page.get(reverse("admin:jobs_snmpjob_delete", args=[power.pk])).content.decode()

        assert "State, which follows Optical power" in page
        assert 'name="followers" value="detach"' in page
        assert 'name="followers" value="delete"' in page

    @pytest.mark.parametrize("choice", [{}, {"followers": "keep"}], ids=["none", "another"])
    def test_without_a_choice_nothing_is_deleted(self, admin_page, power, third, choice):
        admin_page.post(reverse("admin:jobs_snmpjob_delete", args=[power.pk]), {"post": "yes", **choice})

        assert jobs() == {"Optical power", "Names", "State"}

    def test_they_are_deleted_on_request(self, admin_page, power, third):
        page = reverse("admin:jobs_snmpjob_delete", args=[power.pk])

        assert admin_page.post(page, {"post": "yes", "followers": "delete"}).status_code == 302
        assert jobs() == set()

    def test_they_are_detached_on_request_and_the_page_reports_it(self, admin_page, power, third):
        page = reverse("admin:jobs_snmpjob_delete", args=[power.pk])

        answer = admin_page.post(page, {"post": "yes", "followers": "detach"})

        said = [str(each) for each in get_messages(answer.wsgi_request)]
        assert "State now has its own schedule: every 30 minutes." in said
        assert scheduled() == {"Names": 1800, "State": 1800}

    def test_a_job_without_followers_is_deleted_as_ever(self, admin_page, third):
        page = reverse("admin:jobs_snmpjob_delete", args=[third.pk])

        assert "Are you sure" in admin_page.get(page).content.decode()
        assert admin_page.post(page, {"post": "yes"}).status_code == 302
        assert "State" not in jobs()

    def test_many_are_deleted_after_the_same_choice(self, admin_page, power, names, third):
        other = make_job("Another")
        chosen = {"action": "delete_selected", "_selected_action": [power.pk, names.pk, other.pk]}

        page = admin_page.post(LIST, chosen).content.decode()
        admin_page.post(LIST, chosen | {"post": "yes"})
        before = jobs()
        admin_page.post(LIST, chosen | {"post": "yes", "followers": "detach"})

        assert "State, which follows Optical power" in page
        assert "Names, which follows" not in page
        assert before == {"Optical power", "Names", "State", "Another"}
        assert (jobs(), scheduled()) == ({"State"}, {"State": 1800})

    def test_a_whole_chain_is_deleted_without_a_choice(self, admin_page, power, names, third):
        chosen = {"action": "delete_selected", "_selected_action": [power.pk, names.pk, third.pk], "post": "yes"}

        admin_page.post(LIST, chosen)

        assert jobs() == set()


def test_no_other_way_deletes_followers_by_accident(power, third):
    with pytest.raises(RestrictedError):
        power.delete()
    with pytest.raises(RestrictedError):
        SnmpJob.objects.filter(pk=power.pk).delete()
