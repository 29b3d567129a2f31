"""Alerts through the API: who may do what, what is refused, and what never comes out."""

import pytest
from alert_cast import SECRETS, make_alert, make_channel, make_delivery, make_rule
from cast import T0, make_olt

from facho.alerts.models import Alert, Channel, Delivery, Rule

CHANNEL = {"name": "boss", "kind": "webhook", "url": "https://127.0.0.1/hook", "signing_secret": "sixteen-letters!"}


def test_a_channel_is_made_and_its_secret_stays_inside(api):
    answer = api.post("/api/v1/channels/", CHANNEL, format="json")

    assert answer.status_code == 201
    assert answer.json()["has_signing_secret"] is True
    assert "signing_secret" not in answer.json()
    assert Channel.objects.get().signing_secret.reveal() == "sixteen-letters!"


def test_a_secret_that_is_left_out_stays(api):
    channel = make_channel()

    answer = api.patch(f"/api/v1/channels/{channel.pk}/", {"url": "https://127.0.0.1/other"}, format="json")

    channel.refresh_from_db()
    assert answer.status_code == 200
    assert channel.signing_secret.reveal() == SECRETS["signing_secret"]
    assert channel.url.reveal() == "https://127.0.0.1/other"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        pytest.param("https://127.0.0.1:8443/t0ken/of?key=s3cret", "https://127.0.0.1:8443", id="with a port"),
        pytest.param("https://[::1]/t0ken", "https://[::1]", id="IPv6"),
        pytest.param("", "", id="none"),
    ],
)
def test_of_the_address_of_a_webhook_only_the_host_is_shown(api, url, shown):
    page = f"/api/v1/channels/{make_channel(url=url).pk}/"

    [listed] = api.get("/api/v1/channels/").json()["results"]
    read = api.get(page).json()

    assert listed["url_origin"] == read["url_origin"] == shown
    assert "url" not in read


def test_a_channel_that_could_not_work_is_refused_by_field(api):
    answer = api.post("/api/v1/channels/", CHANNEL | {"url": "ftp://127.0.0.1"}, format="json")

    assert answer.status_code == 400
    assert set(answer.json()) == {"url"}


def test_an_apprise_url_is_checked_and_not_repeated(api):
    channel = {"name": "boss", "kind": "apprise", "apprise_url": "carrier-pigeon://s3cret-word"}
    refused = api.post("/api/v1/channels/", channel, format="json")
    made = api.post("/api/v1/channels/", channel | {"apprise_url": "json://127.0.0.1/s3cret-word"}, format="json")

    assert (refused.status_code, set(refused.json())) == (400, {"apprise_url"})
    assert (made.status_code, made.json()["has_apprise_url"]) == (201, True)
    assert "s3cret-word" not in refused.content.decode() + made.content.decode()
    assert Channel.objects.get().apprise_url.reveal() == "json://127.0.0.1/s3cret-word"


def test_no_answer_about_channels_has_a_secret(api):
    channel = make_channel()
    page = f"/api/v1/channels/{channel.pk}/"
    stored = [getattr(channel, name).token for name in SECRETS]

    answers = [
        api.get("/api/v1/channels/"),
        api.get(page),
        api.options(page),
        api.patch(page, {"kind": "none of them", **SECRETS}, format="json"),
        api.patch(page, SECRETS, format="json"),
        api.post(f"{page}test/"),
        api.get("/api/v1/deliveries/"),
    ]

    assert [answer.status_code for answer in answers] == [200, 200, 200, 400, 200, 202, 200]
    assert not [
        answer
        for answer in answers
        if any(secret in answer.content.decode() for secret in [*SECRETS.values(), *stored])
    ]


def test_a_test_is_a_delivery_to_look_at(api):
    channel = make_channel()

    answer = api.post(f"/api/v1/channels/{channel.pk}/test/")

    assert answer.status_code == 202
    delivery = api.get(f"/api/v1/deliveries/{answer.json()['id']}/").json()
    assert (delivery["news"], delivery["status"], delivery["channel"]) == ("test", "PENDING", channel.pk)


def test_a_rule_is_made_with_its_settings_channels_and_olts(api, central):
    channel = make_channel()
    asked = {"name": "Weak", "kind": "low_power", "params": {"below_dbm": -28}, "channels": [channel.pk],
             "olts": [central.pk], "severity": "critical"}  # fmt: skip

    answer = api.post("/api/v1/alert-rules/", asked, format="json")

    assert answer.status_code == 201
    assert answer.json()["params"] == {"below_dbm": -28.0, "hysteresis_db": 1.0, "low_onus": 1}
    rule = Rule.objects.get()
    assert ([*rule.channels.all()], [*rule.olts.all()]) == ([channel], [central])


def test_on_call_times_and_escalation_are_set(api):
    channel = api.post(
        "/api/v1/channels/",
        CHANNEL | {"zone": "America/Lima", "on_call_days": [0, 4], "on_call_from": "22:00", "on_call_to": "06:00"},
        format="json",
    ).json()
    asked = {"name": "Gone", "kind": "olt_unreachable", "escalate_minutes": 15, "escalation_channels": [channel["id"]]}

    rule = api.post("/api/v1/alert-rules/", asked, format="json").json()
    kept = api.patch(f"/api/v1/alert-rules/{rule['id']}/", {"escalation_channels": []}, format="json").json()
    refused = api.patch(f"/api/v1/channels/{channel['id']}/", {"on_call_days": [7]}, format="json")

    assert (channel["on_call_days"], channel["on_call_to"]) == ([0, 4], "06:00:00")
    assert (rule["escalation_channels"], kept["escalation_channels"]) == ([channel["id"]], [])
    assert refused.status_code == 400


def test_a_rule_is_changed_and_keeps_what_was_not_named(api, central):
    rule = make_rule(kind="low_power", params={"below_dbm": -28.0, "hysteresis_db": 2.0, "low_onus": 1})
    rule.olts.set([central])

    answer = api.patch(f"/api/v1/alert-rules/{rule.pk}/", {"channels": [make_channel().pk]}, format="json")

    rule.refresh_from_db()
    assert answer.status_code == 200
    assert rule.params["hysteresis_db"] == 2.0
    assert ([*rule.olts.all()], rule.channels.count()) == ([central], 1)


def test_a_rule_that_watches_for_something_else_begins_with_the_defaults(api):
    rule = make_rule(kind="low_power", params={"below_dbm": -28.0, "hysteresis_db": 2.0, "low_onus": 1})

    answer = api.patch(f"/api/v1/alert-rules/{rule.pk}/", {"kind": "port_dark"}, format="json")

    assert answer.json()["params"] == {"dark_onus": 4, "dark_percent": 50}


@pytest.mark.parametrize(
    "wrong",
    [{"params": {"below_dbm": "low"}}, {"params": {"nothing": 1}}, {"quiet_from": "22:00"}, {"channels": [999]}],
    ids=["no number", "unknown setting", "half of quiet hours", "unknown channel"],
)
def test_a_rule_that_means_nothing_is_refused(api, wrong):
    answer = api.post("/api/v1/alert-rules/", {"name": "Weak", "kind": "low_power", **wrong}, format="json")

    assert answer.status_code == 400
    assert not Rule.objects.exists()


def test_alerts_come_with_the_open_ones_first(reader_api, sur, central):
    make_alert(central, recovered_at=T0)
    make_alert(sur)

    answer = reader_api.get("/api/v1/alerts/").json()

    assert [(alert["olt_name"], alert["is_open"]) for alert in answer["results"]] == [
        ("OLT-SUR-03", True),
        ("OLT-CENTRAL-01", False),
    ]
    assert answer["results"][0]["subject"] == "OLT-SUR-03 does not answer"


@pytest.mark.parametrize(
    ("wish", "found"),
    [
        ("is_open=true", ["OLT-SUR-03"]),
        ("is_open=false", ["OLT-CENTRAL-01"]),
        ("is_acknowledged=true", ["OLT-CENTRAL-01"]),
        ("severity=info", ["OLT-CENTRAL-01"]),
        ("kind=low_power", []),
        ("opened_before=2025-06-01T10:00:00Z", []),
        ("search=sur", ["OLT-SUR-03"]),
    ],
)
def test_alerts_are_narrowed(reader_api, sur, central, wish, found):
    make_alert(central, recovered_at=T0, acknowledged_at=T0, severity="info")
    make_alert(sur)

    answer = reader_api.get(f"/api/v1/alerts/?{wish}").json()

    assert [alert["olt_name"] for alert in answer["results"]] == found


def test_an_alert_is_acknowledged_once(api, sur, boss):
    alert = make_alert(sur)

    first = api.post(f"/api/v1/alerts/{alert.pk}/acknowledge/")
    second = api.post(f"/api/v1/alerts/{alert.pk}/acknowledge/")

    assert (first.status_code, second.status_code) == (202, 202)
    assert first.json()["acknowledged_by"] == "boss"
    assert first.json()["acknowledged_at"] == second.json()["acknowledged_at"]


def test_a_message_that_failed_is_sent_again_on_request(api, sur):
    delivery = make_delivery(make_channel(), make_alert(sur), status="FAILED", next_try_at=None)

    first = api.post(f"/api/v1/deliveries/{delivery.pk}/retry/")
    second = api.post(f"/api/v1/deliveries/{delivery.pk}/retry/")

    assert (first.status_code, first.json()["status"]) == (202, "PENDING")
    assert second.status_code == 409


def test_a_logged_in_user_may_read_and_no_more(reader_api, sur):
    alert, channel, rule = make_alert(sur), make_channel(), make_rule()
    delivery = make_delivery(channel, alert, status="FAILED")

    read = [
        reader_api.get(f"/api/v1/{path}/").status_code for path in ("alerts", "alert-rules", "channels", "deliveries")
    ]
    changed = [
        reader_api.post(f"/api/v1/alerts/{alert.pk}/acknowledge/"),
        reader_api.post(f"/api/v1/channels/{channel.pk}/test/"),
        reader_api.post(f"/api/v1/deliveries/{delivery.pk}/retry/"),
        reader_api.post("/api/v1/channels/", CHANNEL, format="json"),
        reader_api.patch(f"/api/v1/alert-rules/{rule.pk}/", {"enabled": False}, format="json"),
        reader_api.delete(f"/api/v1/channels/{channel.pk}/"),
    ]

    assert read == [200] * 4
    assert [answer.status_code for answer in changed] == [403] * 6
    assert Delivery.objects.count() == 1
    assert Alert.objects.get().acknowledged_at is None


@pytest.mark.parametrize("path", ["alerts", "alert-rules", "channels", "deliveries"])
def test_a_list_costs_the_same_however_long_it_is(api, path, django_assert_max_num_queries):
    for number in range(10):
        olt, channel, rule = make_olt(f"OLT-{number}"), make_channel(f"channel {number}"), make_rule(f"rule {number}")
        rule.olts.set([olt])
        rule.channels.set([channel])
        make_delivery(channel, make_alert(olt, rule=rule))

    with django_assert_max_num_queries(5):
        answer = api.get(f"/api/v1/{path}/")

    assert answer.json()["count"] == 10


def test_a_rule_is_about_the_olts_that_were_chosen_last(api, sur):
    page = f"/api/v1/alert-rules/{make_rule(kind='olt_unreachable').pk}/"

    chosen = api.patch(page, {"olts": [sur.pk]}, format="json").json()
    sur.delete()
    lost = api.get(page).json()
    renamed = api.patch(page, {"name": "The south"}, format="json").json()
    about_all = api.patch(page, {"olts": []}, format="json").json()

    assert [each["has_lost_its_olts"] for each in (chosen, lost, renamed, about_all)] == [False, True, True, False]


def test_a_new_rule_remembers_that_it_is_about_some(api, sur):
    rule = {"name": "The south", "kind": "olt_unreachable", "olts": [sur.pk]}

    made = api.post("/api/v1/alert-rules/", rule, format="json").json()
    sur.delete()

    assert api.get(f"/api/v1/alert-rules/{made['id']}/").json()["has_lost_its_olts"] is True
