"""Pages of PON ports: one port with its ONUs, timeline and capacity, and the rankings."""

import re
from datetime import timedelta

import pytest
from cast import make_event, make_olt, make_onu, make_port, make_user
from django.db import transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from facho.apps.accounts.roles import Role
from facho.apps.changes.models import Change
from facho.apps.dashboard.pon_ports import COLUMNS, OnuRow, sorted_rows, spans_text
from facho.apps.dashboard.port_timeline import MOST_LINES, lines_of, online_points
from facho.apps.dashboard.templatetags.facho import bit_rate, power_change
from facho.apps.telemetry.history import start_of_day
from facho.apps.telemetry.models import HistoryDay, Onu, OnuEvent, PonPort
from facho.apps.telemetry.port_history import POWER
from facho.engine.chunks import pack_run
from facho.store import history
from problem_rows import make_problem

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def client_of(role):
    client = Client()
    client.force_login(make_user(role))
    return client


@pytest.fixture
def page(db):
    return client_of(Role.VIEWER)


@pytest.fixture
def port(central):
    return make_port(central, 1, 9, online=3, los=16, dying_gasp=7, weak=1, missing=1, read_at=timezone.now())


def add(port, number, **more):
    values = {"slot": port.slot, "port": port.port, "onu": number, "first_seen_at": timezone.now() - 90 * DAY}
    return make_onu(port.olt, number, pon_port=port, **values | more)


def url(port, name="port"):
    return reverse(f"dashboard:{name}", args=[port.olt_id, port.slot, port.port])


def text_of(answer):
    assert answer.status_code == 200
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", answer.content.decode()))


def test_a_port_shows_its_state_in_words(page, port):
    text = text_of(page.get(url(port)))

    assert "Port 1/9 down" in text
    assert "3 of 26 ONUs are online. Not online: 16 loss of signal, 7 power lost. 1 ONU has low power." in text
    assert "1 missing" in text
    assert "20 % used, 102 free" in text


def test_an_empty_port_says_that_there_are_no_onus(page, central):
    text = text_of(page.get(url(make_port(central, 1, 2))))

    assert text.count("There are no ONUs on this port.") == 2
    assert "Nothing happened on this port in this period." in text
    assert "Counters are not read." in text
    assert "Free ids 0–127" in text


@pytest.mark.parametrize(
    ("slot", "number", "path", "title"),
    [
        pytest.param(None, 9, "-/9", "Port 9", id="an OLT without slots"),
        pytest.param(None, None, "-/-", "Port without a place", id="ONUs without a place"),
    ],
)
def test_a_port_without_a_slot_has_a_page(page, central, slot, number, path, title):
    port = make_port(central, slot, number, online=1)
    make_onu(central, 5, slot=slot, port=number, onu=None, name="client-5")

    answer = page.get(f"/olts/{central.pk}/ports/{path}/")

    assert url(port) == f"/olts/{central.pk}/ports/{path}/"
    assert title in text_of(answer)
    assert "client-5" in text_of(answer)
    assert [row.onu.name for row in answer.context["rows"]] == ["client-5"]


@pytest.mark.parametrize("path", ["1/10", "9999999999/1", "-/9"])
def test_an_unknown_port_is_not_found(page, port, path):
    assert page.get(f"/olts/{port.olt_id}/ports/{path}/").status_code == 404


def test_onus_of_other_ports_are_left_out(page, port, norte):
    add(port, 1)
    make_onu(port.olt, 2, slot=1, port=8)
    make_onu(norte, 3, slot=1, port=9)

    assert [row.onu.onu for row in page.get(url(port)).context["rows"]] == [1]


@pytest.mark.parametrize("path", ["/onus/", "{port}"])
def test_an_onu_that_is_down_keeps_its_last_power_and_distance_with_their_age(page, port, path):
    now = timezone.now()
    # ZTE measures 0 m to an ONU without light.
    onu = add(port, 1, state="los", rx_dbm=None, distance_m=0, own_power_at=now)
    last = {
        "last_rx_dbm": -19.25,
        "last_rx_at": now - HOUR,
        "last_distance_m": 4210,
        "last_distance_at": now - 2 * HOUR,
    }
    Onu.objects.filter(pk=onu.pk).update(**last)

    text = text_of(page.get(path.format(port=url(port))))

    assert "-19.25 Before it went down 1 h ago" in text
    assert "4,210 m Before it went down 2 h ago" in text


def test_the_problems_of_a_port_are_those_that_concern_it(page, port):
    own = make_problem(port.olt, key="own", slot=1, port=9)
    card = make_problem(port.olt, key="card", kind="card_down", slot=1, port=None)
    power = {"kind": "power_cut", "slot": None, "port": None}
    cut = make_problem(port.olt, key="cut", evidence={"ports": ["1/8", "1/9"]}, **power)
    make_problem(port.olt, key="elsewhere", evidence={"ports": ["1/8"]}, **power)
    make_problem(port.olt, key="other port", slot=1, port=8)
    make_problem(port.olt, key="other card", kind="card_down", slot=2, port=None)
    make_problem(port.olt, key="job", kind="job_late", slot=None, port=None)
    make_problem(port.olt, key="past", slot=1, port=9, until=timezone.now())

    answer = page.get(url(port))

    assert {each.key for each in answer.context["problems"]} == {own.key, card.key, cut.key}
    assert f'href="/problems/{own.pk}/"' in answer.content.decode()


def test_a_down_a_weak_and_a_missing_onu_are_recognisable_without_colour(page, port):
    add(port, 1, state="los", rx_dbm=-19.0, down_cause="los")
    add(port, 2, rx_dbm=-28.0)
    add(port, 3, missing_since=timezone.now())

    text = text_of(page.get(url(port)))

    assert re.search(r"1/9/1 client-1 .* loss of signal – loss of signal -19.00 Before it went down", text)
    assert re.search(r"1/9/2 client-2 .* online – – -28.00 low", text)
    assert re.search(r"1/9/3 client-3 .* missing 0 s ago not found by discoveries", text)


ORDERS = {
    "place": [1, 2, 3, 4],
    "name": [3, 1, 2, 4],
    "serial": [3, 2, 1, 4],
    "state": [2, 4, 3, 1],
    "since": [2, 1, 3, 4],
    "cause": [2, 4, 1, 3],
    # The power of an ONU that is down is an old one.
    "rx": [3, 1, 2, 4],
    "olt_rx": [2, 1, 3, 4],
    "distance": [1, 3, 2, 4],
    "read": [4, 3, 2, 1],
}


@pytest.fixture
def rows(port):
    now = timezone.now()
    onus = [
        add(port, 1, name="b", serial="C", state_since=now - MINUTE, olt_rx_dbm=-22.0, distance_m=10.0,
            own_read_at=now),
        add(port, 2, name="C", serial="B", state="los", state_since=now - DAY, down_cause="los", rx_dbm=-40.0,
            olt_rx_dbm=-25.0, distance_m=30.0, own_read_at=now - MINUTE),
        add(port, 3, name="A", serial="A", state="logging", state_since=now, rx_dbm=-25.0, distance_m=20.0,
            own_read_at=now - 2 * MINUTE),
        add(port, 4, name=None, serial=None, rx_dbm=None, missing_since=now + MINUTE, own_read_at=now - 3 * MINUTE),
    ]  # fmt: skip
    return [OnuRow(onu) for onu in onus]


def test_every_column_can_be_sorted(rows):
    assert {column.key: [row.onu.onu for row in sorted_rows(rows, column.key)] for column in COLUMNS} == ORDERS


def test_the_reverse_order_has_onus_without_a_value_last(rows):
    assert [row.onu.onu for row in sorted_rows(rows, "-rx")] == [1, 3, 2, 4]
    assert [row.onu.onu for row in sorted_rows(rows, "-place")] == [4, 3, 2, 1]


def test_the_order_is_in_the_url_and_its_link_reverses_it(page, port, rows):
    answer = page.get(f"{url(port)}?sort=rx")

    assert [row.onu.onu for row in answer.context["rows"]] == ORDERS["rx"]
    assert re.search(r'aria-sort="ascending"><a data-nav href="\?sort=-rx"', answer.content.decode())
    unknown = page.get(f"{url(port)}?sort=nothing")
    assert [row.onu.onu for row in unknown.context["rows"]] == ORDERS["place"]


def test_power_and_its_change_are_of_the_onus_with_light(page, port):
    onus = [add(port, 1, rx_dbm=-20.0), add(port, 2, rx_dbm=-26.0), add(port, 3, state="los", rx_dbm=-40.0)]
    yesterday = start_of_day(timezone.now()) - DAY
    before = {onus[0].pk: -20.0, onus[1].pk: -22.0, onus[2].pk: -21.0}
    HistoryDay.objects.create(olt=port.olt, at=yesterday, data=pack_run([*before], {POWER: [*before.values()]}))

    text = text_of(page.get(url(port)))

    assert "Mean -23.00 dBm of 2 ONUs Worst -26.00 dBm client-2" in text
    assert re.search(r"Since yesterday mean -2.0 dB , worst -4.0 dB 2 ONUs compared with their means of", text)
    assert "Largest drop: client-2 -4.0 dB" in text
    assert "Since a week ago – nothing to compare with" in text


def test_traffic_is_shown_with_its_time(page, port):
    onu, now = add(port, 1), timezone.now()
    for minutes, octets in ((6, 0), (1, 375_000_000)):
        with transaction.atomic():
            columns = {"in_octets": [octets // 10], "out_octets": [octets]}
            history.append(port.olt_id, now - minutes * MINUTE, [onu.pk], columns)

    text = text_of(page.get(url(port)))

    assert "To the ONUs 10.0 Mbit/s From the ONUs 1.0 Mbit/s" in text


def test_free_and_reserved_ids_are_shown(page, port):
    for number in (0, 1, 2, 5):
        add(port, number)
    add(port, 4, missing_since=timezone.now())

    text = text_of(page.get(url(port)))

    assert "Free ids 3, 6–127 Reserved 4 by missing ONUs" in text
    assert spans_text([(5, 7), (12, 12)]) == "5–7, 12"


# Timeline


def event(onu, at, new, field="state", old="online", cause=""):
    return make_event(onu, at, field=field, old=old, new=new, cause=cause)


def test_events_of_a_cut_are_one_line(page, port):
    now = timezone.now()
    onus = [add(port, number, state="los" if number < 16 else "dying_gasp") for number in range(23)]
    for number, onu in enumerate(onus):
        at = now - 20 * MINUTE + timedelta(seconds=2 * number)
        event(onu, at, onu.state, cause=onu.state)
        event(onu, at, onu.state, field="down_cause", old="")

    answer = page.get(url(port))

    [line] = answer.context["lines"]
    assert line.text == "16 ONUs lost their signal, 7 ONUs lost power"
    assert (line.start, line.end, line.tone) == (now - 20 * MINUTE, now - 20 * MINUTE + timedelta(seconds=44), "bad")
    assert answer.content.decode().count('<details id="line-') == 1


@pytest.mark.parametrize(
    ("seconds", "lines"),
    [
        pytest.param([0, 60, 120], 1, id="each within a minute of the one before"),
        pytest.param([0, 61], 2, id="more than a minute apart"),
    ],
)
def test_events_that_happened_together_are_joined(port, seconds, lines):
    now = timezone.now()
    events = [event(add(port, each), now + timedelta(seconds=each), "los") for each in seconds]

    assert len(lines_of(events[::-1])) == lines


@pytest.mark.parametrize(
    ("changes", "text", "tone"),
    [
        pytest.param([("state", "los")], "1 ONU lost its signal", "bad", id="one ONU"),
        pytest.param([("state", "online"), ("state", "los")], "1 ONU lost its signal, 1 ONU came online", "bad",
                     id="the worst first"),
        pytest.param([("state", "online")], "1 ONU came online", "good", id="back"),
        pytest.param([("presence", "missing")], "1 ONU went missing", "bad", id="missing"),
        pytest.param([("down_cause", "los")], "1 ONU has another down cause", "quiet", id="a cause without a state"),
        pytest.param([("serial", "X")], "1 ONU has another serial", "quiet", id="serial"),
        pytest.param([("state", "bricked")], "1 ONU has an unknown state", "quiet", id="a state of a newer version"),
    ],
)  # fmt: skip
def test_a_line_says_what_happened(port, changes, text, tone):
    onu, now = add(port, 1), timezone.now()

    [line] = lines_of([event(onu, now, new, field) for field, new in changes])

    assert (line.text, line.tone, line.onu) == (text, tone, onu)


def test_the_range_of_the_timeline_is_in_the_url(page, port):
    onu, now = add(port, 1), timezone.now()
    for days in (0.5, 3, 20, 40):
        event(onu, now - days * DAY, "los")

    counts = {hours: len(page.get(f"{url(port)}?hours={hours}").context["lines"]) for hours in (24, 168, 720, "x")}

    assert counts == {24: 1, 168: 2, 720: 3, "x": 1}


def test_events_from_before_an_onu_came_to_the_port_are_left_out(page, port):
    now = timezone.now()
    moved = add(port, 1, moved_at=now - 2 * MINUTE, moved_from="1/8/4")
    within = add(port, 2, moved_at=now - 2 * MINUTE, moved_from="1/9/7")
    for onu in (moved, within):
        event(onu, now - 9 * MINUTE, "los")

    [line] = page.get(url(port)).context["lines"]

    assert line.onu == within


def test_a_long_timeline_ends_with_a_note(page, port):
    onu, now = add(port, 1), timezone.now()
    OnuEvent.objects.bulk_create(
        OnuEvent(onu=onu, olt=port.olt, at=now - n * 2 * MINUTE, field="state", old="online", new="los", cause="")
        for n in range(MOST_LINES + 1)
    )

    answer = page.get(url(port))

    assert len(answer.context["lines"]) == MOST_LINES
    assert "Earlier events are not shown." in text_of(answer)


def test_the_number_of_onus_online_follows_from_the_events(port):
    now = timezone.now()
    since = now - DAY
    back = add(port, 1)
    down = add(port, 2, state="los")
    new = add(port, 3, first_seen_at=now - 5 * MINUTE)
    gone = add(port, 4, missing_since=now - MINUTE)
    events = [
        event(gone, now - MINUTE, "missing", field="presence", old="present"),
        event(down, now - 3 * MINUTE, "los"),
        event(back, now - 8 * MINUTE, "online", old="los"),
        event(back, now - 9 * MINUTE, "los"),
    ]

    points = online_points([back, down, new, gone], events, since, now)

    changes = [(since, 3), (9, 3), (9, 2), (8, 2), (8, 3), (5, 3), (5, 4), (3, 4), (3, 3), (1, 3), (1, 2), (now, 2)]
    assert points == [(now - at * MINUTE if isinstance(at, int) else at, count) for at, count in changes]


def test_the_charts_have_days_and_the_number_online(page, port):
    onu, other = add(port, 1), add(port, 2)
    today = start_of_day(timezone.now())
    for days, means in ((1, [-20.0, -25.0]), (2, [-20.0, -20.0])):
        data = pack_run([onu.pk, other.pk], {POWER: means})
        HistoryDay.objects.create(olt=port.olt, at=today - days * DAY, data=data)

    chart = page.get(url(port, "port-history")).json()

    ms = [round((today - days * DAY).timestamp() * 1000) for days in (2, 1)]
    assert chart["mean"] == [[ms[0], -20.0], [ms[1], -22.5]]
    assert chart["worst"] == [[ms[0], -20.0], [ms[1], -25.0]]
    assert [count for _at, count in chart["online"]] == [2, 2]
    assert all(chart["from"] <= at <= chart["to"] for at, _count in chart["online"])


# Capacity


@pytest.mark.parametrize(
    ("sent", "stored", "said"),
    [
        pytest.param("64", 64, "The capacity was saved.", id="a number"),
        pytest.param("", None, "The capacity was saved.", id="that of the brand"),
        pytest.param("0", 100, "greater than or equal to 1", id="zero"),
        pytest.param("x", 100, "Enter a whole number.", id="no number"),
    ],
)
def test_an_operator_sets_the_capacity_on_the_page(port, sent, stored, said):
    PonPort.objects.update(capacity=100)
    operator = client_of(Role.OPERATOR)

    answer = operator.post(url(port, "port-capacity"), {"capacity": sent}, follow=True)

    assert said in text_of(answer)
    port.refresh_from_db()
    assert port.capacity == stored
    recorded = [(change.fields, change.interface) for change in Change.objects.filter(object_type="telemetry.ponport")]
    assert recorded == ([({"capacity": [100, stored]}, "page")] if stored != 100 else [])


def test_a_viewer_sees_no_form_and_may_not_send_it(page, port):
    assert "Set the capacity" not in text_of(page.get(url(port)))
    assert "Set the capacity" in text_of(client_of(Role.OPERATOR).get(url(port)))
    assert page.post(url(port, "port-capacity"), {"capacity": "5"}).status_code == 403


# Rankings


@pytest.fixture
def network(central, norte):
    make_port(central, 0, 1, online=40, capacity=40)
    make_port(central, 0, 2, online=2, los=48)
    make_port(norte, 1, 1, online=36, offline=9, weak=8)
    make_port(norte, 1, 2)


C1, C2, N1, N2 = "OLT-CENTRAL-01 0/1", "OLT-CENTRAL-01 0/2", "OLT-NORTE-02 1/1", "OLT-NORTE-02 1/2"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("", [C2, N1, C1, N2], id="the most troubled first"),
        pytest.param("?sort=-used", [C1, C2, N1, N2], id="the fullest first"),
        pytest.param("?sort=-weak", [N1, C1, C2, N2], id="the weakest first"),
        pytest.param("?sort=place", [C1, C2, N1, N2], id="by place"),
        pytest.param("?sort=-place", [N2, N1, C2, C1], id="by place, the last first"),
        pytest.param("?sort=-level", [N2, C1, N1, C2], id="the best first"),
        pytest.param("?sort=online", [C2, N1, C1, N2], id="the fewest online first, empty ones last"),
        pytest.param("?q=norte 1/1", [N1], id="OLT and place"),
        pytest.param("?level=degraded&olt=&q=", [N1], id="level"),
        pytest.param("?used_percent__gt=39", [C2, C1], id="percentage"),
    ],
)
def test_ports_are_ranked_and_filtered(page, network, query, expected):
    answer = page.get(f"/ports/{query}")

    assert answer.status_code == 200
    assert [str(row.port) for row in answer.context["rows"]] == expected


def test_a_wrong_filter_is_explained(page, network):
    answer = page.get("/ports/?level=bad")

    assert "bad is not one of the available choices." in text_of(answer)
    assert answer.context["rows"] == []


def test_the_list_has_pages(page, central):
    PonPort.objects.bulk_create(PonPort(olt=central, slot=0, port=n) for n in range(60))

    assert "51 to 60 of 60" in text_of(page.get("/ports/?page=2&sort=place"))


def test_a_port_is_red_everywhere_and_linked(page, network, central):
    port = PonPort.objects.get(olt=central, slot=0, port=2)
    onu = make_onu(central, 3, slot=0, port=2, state="los")

    for path in ("/ports/", f"/olts/{central.pk}/", url(port)):
        assert re.search(r'<span class="badge bad">down</span>', page.get(path).content.decode()), path
    for path in ("/ports/", f"/olts/{central.pk}/", "/onus/", f"/onus/{onu.pk}/"):
        assert f'href="{url(port)}"' in page.get(path).content.decode(), path


def test_a_place_without_a_port_is_no_link(page, central):
    onu = make_onu(central, 3, slot=None, port=None, onu=None)

    assert "/ports/-/" not in page.get(f"/onus/{onu.pk}/").content.decode()


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0, "0 bit/s"), (999.0, "999 bit/s"), (1500.0, "1.5 kbit/s"), (2.5e6, "2.5 Mbit/s"), (1.25e10, "12.5 Gbit/s")],
)
def test_a_bit_rate_has_a_unit(value, shown):
    assert bit_rate(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(0.34, "+0.3 dB"), (-1.25, "-1.2 dB"), (0.04, "0.0 dB"), (-0.04, "0.0 dB")]
)
def test_a_change_of_power_has_a_sign(value, shown):
    assert power_change(value) == shown


def test_a_port_of_another_olt_is_another_page(page, port):
    other = make_port(make_olt("OLT-X"), 1, 9, online=1)

    assert "OLT-X" in text_of(page.get(url(other)))
    assert "1 of 1 ONU is online." in text_of(page.get(url(other)))
