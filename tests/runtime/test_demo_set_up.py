"""The set-up of the demo: its OLTs, their past, and the OLTs of the visitor."""

import os

import pytest

from facho.apps.changes.models import Change
from facho.apps.inventory.models import Olt, Site
from facho.apps.jobs.models import SnmpJob, WorkflowNode
from facho.brands.huawei import HUAWEI
from facho.runtime import config
from facho.runtime.config import ConfigError
from facho.runtime.demo import removal, running
from facho.runtime.demo.removal import remove
from facho.runtime.demo.setting_up import set_up

FLEET = [
    {"name": "OLT-CENTRAL-01", "brand": "huawei", "host": "127.0.0.1", "port": 16101, "community": "public", "onus": 7},
    {"name": "OLT-NORTE-02", "brand": "zte_c300", "host": "127.0.0.1", "port": 16102, "community": "public", "onus": 7},
]


@pytest.mark.django_db
class TestDemonstration:
    def test_it_sets_up_a_user_and_olts_with_jobs_and_chains(self, django_user_model):
        set_up(FLEET)

        assert django_user_model.objects.get().check_password("demo")
        assert sorted(Olt.objects.values_list("name", "brand")) == [
            ("OLT-CENTRAL-01", "huawei"),
            ("OLT-NORTE-02", "zte_c300"),
        ]
        for olt in Olt.objects.all():
            assert olt.nodes.filter(master=None).exists()
            assert not olt.nodes.filter(master=None, next_run_at=None).exists()
            assert not olt.nodes.filter(master__isnull=False, next_run_at__isnull=False).exists()

    def test_a_second_start_goes_on_with_the_same_data(self, django_user_model):
        set_up(FLEET)
        nodes = list(WorkflowNode.objects.order_by("pk").values())

        set_up([FLEET[0] | {"port": 17001}, FLEET[1]])

        assert list(WorkflowNode.objects.order_by("pk").values()) == nodes
        central = Olt.objects.get(name="OLT-CENTRAL-01")
        assert (central.port, central.device) == (17001, "127.0.0.1:17001")
        assert Olt.objects.get(name="OLT-CENTRAL-01").community.reveal() == "public"
        assert django_user_model.objects.count() == 1

    def test_an_olt_that_is_not_simulated_this_time_is_disabled_and_named(self, capsys):
        set_up(FLEET)

        set_up(FLEET[:1])

        assert list(Olt.objects.filter(enabled=True).values_list("name", flat=True)) == ["OLT-CENTRAL-01"]
        assert "OLT-NORTE-02 is not simulated this time: it is disabled." in capsys.readouterr().out

    def test_an_olt_that_is_simulated_again_is_enabled_again(self, capsys):
        set_up(FLEET)
        set_up(FLEET[:1])

        set_up(FLEET)

        assert Olt.objects.filter(enabled=True).count() == 2
        assert "OLT-NORTE-02 is simulated again: it is enabled." in capsys.readouterr().out

    def test_an_olt_that_the_visitor_disabled_stays_disabled(self):
        set_up(FLEET)
        set_up(FLEET[:1])
        set_up(FLEET)
        Olt.objects.get(name="OLT-NORTE-02").disable()

        set_up(FLEET)
        set_up(FLEET[:1])
        set_up(FLEET)

        assert not Olt.objects.get(name="OLT-NORTE-02").enabled

    def test_an_olt_that_the_visitor_renamed_is_still_the_same(self, capsys):
        set_up(FLEET)
        Olt.objects.filter(name="OLT-NORTE-02").update(name="My name for it")

        set_up([FLEET[0], FLEET[1] | {"port": 17002}])

        assert list(Olt.objects.values_list("name", "port", "enabled")) == [
            ("My name for it", 17002, True),
            ("OLT-CENTRAL-01", 16101, True),
        ]
        assert capsys.readouterr().out == ""

    def test_olts_of_the_visitor_stay_as_they_are(self, capsys):
        set_up(FLEET[:1])
        # The second has the name of one that a larger demonstration simulates.
        for name in ("My OLT", "OLT-NORTE-02"):
            Olt.objects.create(name=name, brand="huawei", host="192.0.2.7", community="private")
        before = list(Olt.objects.exclude(name="OLT-CENTRAL-01").order_by("pk").values())

        set_up(FLEET)
        set_up(FLEET[:1])

        assert list(Olt.objects.exclude(name="OLT-CENTRAL-01").order_by("pk").values()) == before
        assert not WorkflowNode.objects.exclude(olt__name="OLT-CENTRAL-01").exists()
        assert "OLT-NORTE-02 already exists as an OLT of your own" in capsys.readouterr().out

    def test_an_olt_that_the_visitor_gave_another_address_is_the_visitors(self, capsys):
        set_up(FLEET)
        Olt.objects.filter(name="OLT-NORTE-02").update(host="192.0.2.7")
        before = Olt.objects.filter(name="OLT-NORTE-02").values().get()

        set_up(FLEET)
        set_up(FLEET[:1])

        assert Olt.objects.filter(name="OLT-NORTE-02").values().get() == before
        assert "disabled" not in capsys.readouterr().out

    def test_only_the_olts_of_the_demonstration_are_polled_so_often(self):
        set_up(FLEET)
        mine = Olt.objects.create(name="My OLT", brand="huawei", host="192.0.2.7", community="private")
        for job in SnmpJob.objects.filter(brand="huawei", follows=None):
            job.apply_to([mine])

        usual = {node.job.name: node.interval_seconds for node in mine.nodes.filter(master=None)}
        assert usual == {job.name: round(job.interval.total_seconds()) for job in HUAWEI.templates if not job.follows}
        hurried = {n.job.name: n.interval_seconds for n in Olt.objects.get(name="OLT-CENTRAL-01").nodes.all()}
        assert hurried["State"] == hurried["Optical power"] == 30

    def test_olts_of_a_demonstration_that_recorded_nothing_are_known_by_name(self):
        set_up(FLEET)
        # Only retention deletes rows of the record.
        Change.objects.all()._raw_delete("default")
        Olt.objects.create(name="My OLT", brand="huawei", host="192.0.2.7", community="private")

        set_up([FLEET[0] | {"port": 17001}, FLEET[1]])
        set_up(FLEET[1:])

        ports = {name: (port, enabled) for name, port, enabled in Olt.objects.values_list("name", "port", "enabled")}
        assert ports == {
            "OLT-CENTRAL-01": (17001, False),
            "OLT-NORTE-02": (16102, True),
            "My OLT": (161, True),
        }

    def test_it_shows_a_chain_of_three(self):
        set_up(FLEET)

        for olt in Olt.objects.all():
            state = olt.nodes.get(job__name="State")
            assert set(state.chain.values_list("job__name", flat=True)) == {"Traffic", "Names"}

    def test_a_start_that_was_killed_half_way_is_made_up_for(self, monkeypatch):
        def killed(self, olts):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(SnmpJob, "apply_to", killed)
            with pytest.raises(KeyboardInterrupt):
                set_up(FLEET)

        set_up(FLEET)

        assert all(olt.nodes.exists() for olt in Olt.objects.all())
        assert Olt.objects.count() == 2


@pytest.mark.django_db
def test_removal_takes_what_the_demonstration_added_and_leaves_the_rest(django_user_model, capsys):
    visitor = django_user_model.objects.create_superuser("visitor")
    set_up(FLEET)
    mine = Olt.objects.create(name="My OLT", brand="huawei", host="192.0.2.7", community="private")
    SnmpJob.objects.get(brand="huawei", name="Discovery").apply_to([mine])
    became_mine = Olt.objects.get(name="OLT-NORTE-02")
    became_mine.host = "192.0.2.8"
    became_mine.community = "private"
    became_mine.save()

    remove([])

    assert set(Olt.objects.values_list("name", flat=True)) == {"My OLT", "OLT-NORTE-02"}
    assert list(django_user_model.objects.all()) == [visitor]
    assert list(Site.objects.values_list("name", flat=True)) == ["Norte"]
    assert set(SnmpJob.objects.filter(brand="huawei").values_list("name", flat=True)) == {"Discovery"}
    assert list(mine.nodes.values_list("job__name", flat=True)) == ["Discovery"]
    assert "1 OLTs of the demo were removed" in capsys.readouterr().out


@pytest.mark.django_db
def test_removal_knows_an_old_demonstration_by_its_names(django_user_model, capsys):
    set_up(FLEET)
    Change.objects.all()._raw_delete("default")
    Olt.objects.create(name="My OLT", brand="huawei", host="192.0.2.7", community="private")

    remove([olt["name"] for olt in FLEET])

    assert list(Olt.objects.values_list("name", flat=True)) == ["My OLT"]
    assert not django_user_model.objects.exists()
    assert "facho createsuperuser" in capsys.readouterr().out


def test_there_is_nothing_to_remove_without_a_directory(tmp_path):
    with pytest.raises(ConfigError, match="There is no demo in"):
        removal.run(data=tmp_path / "typo", olts=6, port=8000, prepare=lambda: pytest.fail("it went on"))


class Prepared(Exception):
    """A demonstration has come to where it would start Django."""


def environment_of_demo(monkeypatch, data, **options):
    """Return what a demonstration leaves of the environment, and adds to it."""
    monkeypatch.setattr(os, "environ", {"DATABASE_URL": "postgresql://production", "FACHO_SECRET_KEYS": "production"})

    def stop():
        raise Prepared

    with pytest.raises(Prepared):
        running.run(data=data, prepare=stop, **{"port": 8123, "olts": 6, "onus": 2100} | options)
    return os.environ


def test_a_demonstration_sees_nothing_of_an_installation_in_the_environment(monkeypatch, tmp_path):
    environment = environment_of_demo(monkeypatch, tmp_path)

    loaded = config.load(environment)
    assert (loaded.data_dir, loaded.host, loaded.port) == (tmp_path, "127.0.0.1", 8123)
    assert loaded.is_sqlite
    assert "FACHO_SECRET_KEYS" not in environment


def test_a_demonstration_has_as_many_pollers_as_it_needs(monkeypatch, tmp_path):
    monkeypatch.setenv("FACHO_POLLERS", "3")
    environment = environment_of_demo(monkeypatch, tmp_path, olts=5000)

    assert config.load(environment).pollers is None


@pytest.mark.parametrize("option", ["olts", "onus", "port"])
def test_a_demonstration_of_nothing_is_refused(option, tmp_path):
    options = {"port": 8000, "olts": 6, "onus": 2100} | {option: 0}

    with pytest.raises(ConfigError, match=f"--{option} is 0"):
        running.run(data=tmp_path, prepare=lambda: pytest.fail("it went on"), **options)
