"""Values that brands report as keys are shown as words, in the language of the reader."""

from importlib.resources import files

import pytest
import yaml
from django.test import Client
from django.utils import translation

from facho.apps.telemetry.models import Onu, OnuEvent
from facho.apps.telemetry.words import ADMIN_STATES, DOWN_CAUSES
from facho.brands import huawei, zte


def columns_of_profiles(name):
    folder = files("facho.brands") / "profiles"
    profiles = [yaml.safe_load(file.read_text()) for file in folder.iterdir() if file.name.endswith(".yaml")]
    return [profile["columns"][name] for profile in profiles if name in profile["columns"]]


def test_every_down_cause_of_a_brand_has_a_label():
    of_profiles = {word for column in columns_of_profiles("down_cause") for word in column.get("words", {}).values()}
    reported = {*huawei.DOWN_CAUSES.values(), *zte.DOWN_CAUSES.values(), *of_profiles}

    assert "dying_gasp" in of_profiles
    assert reported - set(DOWN_CAUSES) == set()


def test_every_administrative_state_of_a_brand_has_a_label():
    of_profiles = {word for column in columns_of_profiles("admin_state") for word in column["words"].values()}

    assert of_profiles | set(huawei.ADMIN_STATES.values()) == set(ADMIN_STATES)


@pytest.mark.parametrize("path", ["/onus/{}/", "/admin/telemetry/onu/{}/change/"], ids=["dashboard", "admin"])
def test_a_spanish_page_shows_no_key(boss, onu, path):
    Onu.objects.filter(pk=onu.pk).update(admin_state="enabled", down_cause="auth_failed")
    client = Client(headers={"accept-language": "es"})
    client.force_login(boss)

    page = client.get(path.format(onu.pk)).content.decode()

    assert "habilitada" in page
    assert "falló la autenticación" in page
    assert "auth_failed" not in page


@pytest.mark.parametrize(
    ("key", "label"),
    [
        pytest.param("dying_gasp", "sin energía", id="known"),
        pytest.param("code_41", "code_41", id="of a newer firmware"),
        pytest.param("", "", id="none"),
    ],
)
def test_an_event_has_the_label_of_its_down_cause(key, label):
    with translation.override("es"):
        event = OnuEvent(field="down_cause", old="", new=key, cause=key)

        assert (event.new_text, event.cause_text) == (label, label)
