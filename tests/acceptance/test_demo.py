"""What a stranger sees in the first minute of the demonstration."""

import pytest
from installation import Installation

# Whole installations are started, perhaps on a machine that does other things, too.
pytestmark = pytest.mark.timeout(300)


def test_the_demonstration_fills_the_onu_list(demo: Installation):
    onus = demo.wait_for(lambda: (page := demo.get("onus/", page_size=1))["count"] >= 2000 and page)

    assert onus["results"][0]["olt"]


def test_the_olt_that_never_answers_is_said_to_be_unreachable(demo: Installation):
    def mute():
        olts = demo.get("olts/", search="OLT-SUR-03")["results"]
        return olts and olts[0]["state"] == "unreachable" and olts[0]

    olt = demo.wait_for(mute)

    assert "did not answer" in olt["last_error"]


def test_links_of_a_chain_run_behind_their_master_in_the_same_poller(demo: Installation):
    def chained():
        rows = demo.get("executions/", status="SUCCESS", is_master="false")["results"]
        return rows and rows[0]

    link = demo.wait_for(chained)

    master = demo.get(f"executions/{link['master_execution']}/")
    assert link["poller_id"] == master["poller_id"]
    assert link["started_at"] >= master["ended_at"]


def test_dark_onus_have_a_cause_and_no_power(demo: Installation):
    def dark():
        return demo.get("onus/", state=["los", "dying_gasp"])["results"]

    onus = demo.wait_for(dark)

    assert all(onu["rx_dbm"] is None for onu in onus)


def test_the_pollers_api_is_fresh_and_adds_up(demo: Installation):
    pollers = demo.wait_for(lambda: (answer := demo.get("pollers/")) and not answer["stale"] and answer)
    stats = demo.get("pollers/stats/")

    assert len(pollers["pollers"]) == stats["total_pollers"] == stats["free_pollers"] + stats["busy_pollers"]


def test_a_failure_of_the_network_becomes_a_problem(demo: Installation):
    began = demo.rows("SELECT date_joined FROM auth_user")[0][0].replace(" ", "T")

    def failures():
        problems = demo.get("problems/", kind="port_down")["results"]
        return [problem for problem in problems if problem["since"] > began]

    assert demo.wait_for(failures)[0]["cause"] == "fibre_cut"


def test_no_secret_leaves_the_api(demo: Installation):
    for olt in demo.get("olts/")["results"]:
        assert "community" not in olt
