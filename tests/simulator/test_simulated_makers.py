"""Each maker's tables hold what its formulas say, worked out by hand for an ONU that is up and one that is dark."""

from dataclasses import replace

import pytest

from facho.engine import oid
from facho.engine.brand import Position
from facho.engine.oid import parse
from facho.engine.snmp import Missing
from facho.simulator.agent import SimulatedAgent
from facho.simulator.fleet import MAKERS
from facho.simulator.life import Cycle, Down, Onu
from facho.simulator.plant import Plant

NOON = 1794744000.0
DAY = 86400

HUAWEI = "1.3.6.1.4.1.2011.6.128.1.1"
ZTE = "1.3.6.1.4.1.3902"
UFIBER = "1.3.6.1.4.1.41112.1.5.6.2.1"
BDCOM = "1.3.6.1.4.1.3320.10"
VSOL = "1.3.6.1.4.1.37950.1.1.5"
FIBERHOME = "1.3.6.1.4.1.5875.800.3"
NOKIA = "1.3.6.1.4.1.637.61.1.35"
CALIX = "1.3.6.1.4.1.6321.1.2.4.2.6.1.1"
CDATA = "1.3.6.1.4.1.17409.2"
IF_TABLE = "1.3.6.1.2.1.2.2.1"
IF_X_TABLE = "1.3.6.1.2.1.31.1.1.1"

SERIAL = bytes.fromhex("7d4630c3")
# When ONU 7 came up: one hour before noon of a Sunday, which is 2026-11-15.
SINCE_ELEVEN = bytes.fromhex("07ea0b0f0b000000")


def make_onu(onu_id, vendor, chassis):
    """Return ONU 7, or one like it: at noon its powers are exactly what is said here."""
    return Onu(
        position=Position(chassis.shelf, chassis.slots[0], chassis.first_port + 1, onu_id),
        serial=vendor + SERIAL[:3] + bytes([SERIAL[3] + onu_id - 7]),
        mac=bytes([0, 0x25, 0x9E, 1, 2, onu_id]),
        name="Rosa Núñez",
        description="Jr. Lima 120",
        charset="utf-8",
        model="MODEL-1",
        software="V1R2",
        line_profile="LINE-100M",
        service_profile="RESIDENCIAL",
        distance_m=1234,
        enabled=True,
        cycle=Cycle(period=40 * DAY, down=600, phase=600 + 3600 - NOON),
        cause=Down.DYING_GASP,
        rx_dbm=-21.53,
        tx_dbm=2.28,
        olt_rx_dbm=-23.12,
        temperature_c=41.0,
        voltage_v=3.28,
        in_rate=1000.0,
        out_rate=9000.0,
        phase=0.0,
        number=onu_id - 2,
    )


def make_device(brand):
    """Return an OLT with four ONUs on its second port: 7 is up, 9 is dark, 12 has no power, 15 is disabled."""
    maker = MAKERS[brand]
    chassis = maker.chassis(4)
    onus = [make_onu(onu_id, chassis.models[0].vendor, chassis) for onu_id in (7, 9, 12, 15)]
    down = Cycle(period=40 * DAY, down=39 * DAY, phase=2 * DAY - NOON)
    onus[1] = replace(onus[1], cause=Down.LOS, cycle=down)
    onus[2] = replace(onus[2], cause=Down.DYING_GASP, cycle=down)
    onus[3] = replace(onus[3], cause=Down.DEACTIVATED, enabled=False)
    ports = tuple(Position(chassis.shelf, chassis.slots[0], chassis.first_port + number) for number in range(4))
    return maker.with_plant("OLT-CENTRAL-01", 3, Plant(chassis, ports, tuple(onus)))


ABSENT = Missing.NO_SUCH_INSTANCE
INDEXES = {
    # 4194304000 + 8192 * slot 1 + 256 * port 1.
    "huawei": ("4194312448.7", "4194312448.9"),
    # 0x10000000 + slot 1 << 16 + port 2 << 8.
    "zte_c300": ("268501504.7", "268501504.9"),
    # 0x11010000 + slot 3 << 8 + port 2.
    "zte_c600": ("285278978.7", "285278978.9"),
    # UBNT7d4630c3 and UBNT7d4630c5, letter by letter.
    "ubiquiti": ("12.85.66.78.84.55.100.52.54.51.48.99.51", "12.85.66.78.84.55.100.52.54.51.48.99.53"),
    # The sixth and the eighth that registered; one before them has left.
    "bdcom_gpon": ("1185", "1187"),
    "vsol_epon": ("2.7", "2.9"),
    # slot 1 << 25 + pon 2 << 19 + onu << 8.
    "fiberhome": ("34604800", "34605312"),
    # (lt 1 + 1) << 25 + 14 << 21 + (pon 2 - 1) << 16 + (ont - 1) << 9.
    "nokia_isam": ("96537600", "96538624"),
    "calix_axos": ("6", "9"),
    # 0x01000000 + (12 uplinks + port 2) << 8 + onu.
    "cdata_epon": ("16780807", "16780809"),
    # 0x480000 + (port 2 - 1) << 12 + onu.
    "cdata_gpon": ("4722695", "4722697"),
    "cdata_fd11": ("1.2.7", "1.2.9"),
}

# Brand, column, what stands behind the index, the value of ONU 7, and the value of the dark one.
VALUES = [
    ("huawei", f"{HUAWEI}.2.43.1.3", "", b"HWTC\x7d\x46\x30\xc3", b"HWTC\x7d\x46\x30\xc5"),
    ("huawei", f"{HUAWEI}.2.46.1.15", "", 1, 2),
    ("huawei", f"{HUAWEI}.2.46.1.20", "", 1234, -1),
    ("huawei", f"{HUAWEI}.2.46.1.22", "", SINCE_ELEVEN + b"+\x00\x00", bytes.fromhex("07ea0b0c0c0000002b0000")),
    ("huawei", f"{HUAWEI}.2.46.1.24", "", 13, 1),
    ("huawei", f"{HUAWEI}.2.51.1.4", "", -2153, 2147483647),
    ("huawei", f"{HUAWEI}.2.51.1.3", "", 228, 2147483647),
    ("huawei", f"{HUAWEI}.2.51.1.6", "", 7688, 2147483647),
    ("huawei", f"{HUAWEI}.2.51.1.5", "", 3280, 2147483647),
    ("zte_c300", f"{ZTE}.1012.3.28.1.1.5", "", b"ZTEG\x7d\x46\x30\xc3", b"ZTEG\x7d\x46\x30\xc5"),
    ("zte_c300", f"{ZTE}.1012.3.28.2.1.4", "", 3, 1),
    ("zte_c300", f"{ZTE}.1012.3.28.2.1.5", "", SINCE_ELEVEN, bytes.fromhex("07ea0b0c0c000000")),
    ("zte_c300", f"{ZTE}.1012.3.28.2.1.7", "", 9, 2),
    ("zte_c300", f"{ZTE}.1012.3.11.4.1.2", "", 1234, 0),
    ("zte_c300", f"{ZTE}.1012.3.50.12.1.1.10", ".1", 4235, 65535),
    ("zte_c300", f"{ZTE}.1012.3.50.12.1.1.14", ".1", 16140, 65535),
    ("zte_c300", f"{ZTE}.1012.3.50.12.1.1.17", ".1", 164, 65535),
    ("zte_c300", f"{ZTE}.1012.3.50.12.1.1.19", ".1", 10496, 65535),
    ("zte_c300", f"{ZTE}.1015.1010.11.2.1.2", "", -23120, -80000),
    ("zte_c600", f"{ZTE}.1082.500.10.2.3.3.1.2", "", "Rosa Núñez".encode(), "Rosa Núñez".encode()),
    ("zte_c600", f"{ZTE}.1082.500.10.2.3.3.1.6", "", b"ZTEG\x7d\x46\x30\xc3", b"ZTEG\x7d\x46\x30\xc5"),
    ("zte_c600", f"{ZTE}.1082.500.10.2.3.3.1.18", "", b"1,ZTEG7D4630C3", b"1,ZTEG7D4630C5"),
    ("zte_c600", f"{ZTE}.1082.500.10.2.3.8.1.4", "", 4, 2),
    ("zte_c600", f"{ZTE}.1082.500.10.2.3.10.1.2", "", 1234, 0),
    ("zte_c600", f"{ZTE}.1082.500.20.2.2.2.1.10", ".1", 4235, 65535),
    ("zte_c600", f"{ZTE}.1082.500.20.2.2.2.1.14", ".1", 16140, 65535),
    ("zte_c600", f"{ZTE}.1082.500.1.2.4.2.1.2", "", -23120, -80000),
    ("ubiquiti", f"{UFIBER}.1", "", b"UBNT7d4630c3", b"UBNT7d4630c5"),
    ("ubiquiti", f"{UFIBER}.3", "", 1, 2),
    ("ubiquiti", f"{UFIBER}.5", "", 2, 0),
    ("ubiquiti", f"{UFIBER}.6", "", 360000, 0),
    ("ubiquiti", f"{UFIBER}.8", "", 228, 0),
    ("ubiquiti", f"{UFIBER}.9", "", -2153, 0),
    ("bdcom_gpon", f"{IF_TABLE}.2", "", b"GPON0/2:7", b"GPON0/2:9"),
    ("bdcom_gpon", f"{IF_TABLE}.8", "", 1, 2),
    ("bdcom_gpon", f"{IF_X_TABLE}.18", "", "Rosa Núñez".encode(), "Rosa Núñez".encode()),
    ("bdcom_gpon", f"{BDCOM}.3.3.1.2", "", b"BDCM:7D4630C3", b"BDCM:7D4630C5"),
    ("bdcom_gpon", f"{BDCOM}.3.4.1.2", "", -215, -65535),
    ("bdcom_gpon", f"{BDCOM}.3.4.1.3", "", 23, -65535),
    ("bdcom_gpon", f"{BDCOM}.2.3.1.3", "", -231, -65535),
    ("bdcom_gpon", f"{BDCOM}.3.1.1.33", "", 12340, 12340),
    ("bdcom_gpon", f"{BDCOM}.3.1.1.35", "", 1, 6),
    ("vsol_epon", f"{VSOL}.12.1.25.1.4", "", 1, 0),
    ("vsol_epon", f"{VSOL}.12.1.25.1.5", "", b"00:25:9e:01:02:07", b"00:25:9e:01:02:09"),
    ("vsol_epon", f"{VSOL}.12.1.25.1.15", "", 1, 0),
    ("vsol_epon", f"{VSOL}.12.1.25.1.18", "", b"2026/11/15 11:00:00", b"2026/11/12 12:00:00"),
    ("vsol_epon", f"{VSOL}.12.1.29.1.4", "", 1, ABSENT),
    ("vsol_epon", f"{VSOL}.12.2.1.8.1.3", "", b"41.00 C", b"-"),
    ("vsol_epon", f"{VSOL}.12.2.1.8.1.6", "", b"1.69 mW (2.28 dBm)", b"-"),
    ("vsol_epon", f"{VSOL}.12.2.1.8.1.7", "", b"0.01 mW (-21.53 dBm)", b"-"),
    ("fiberhome", f"{FIBERHOME}.10.1.1.2", "", 1, 1),
    ("fiberhome", f"{FIBERHOME}.10.1.1.3", "", 2, 2),
    ("fiberhome", f"{FIBERHOME}.10.1.1.4", "", 7, 9),
    ("fiberhome", f"{FIBERHOME}.10.1.1.10", "", b"FHTT7D4630C3", b"FHTT7D4630C5"),
    ("fiberhome", f"{FIBERHOME}.10.1.1.11", "", 1, 0),
    ("fiberhome", f"{FIBERHOME}.9.3.3.1.2", "", b"PON 1/2/7", ABSENT),
    ("fiberhome", f"{FIBERHOME}.9.3.3.1.6", "", -2153, ABSENT),
    ("fiberhome", f"{FIBERHOME}.9.3.3.1.7", "", 228, ABSENT),
    ("fiberhome", f"{FIBERHOME}.9.6.1.1.1", "", 1234, 0),
    ("nokia_isam", f"{IF_TABLE}.2", "", b"nokia FWLT-C  ONT", b"nokia FWLT-C  ONT"),
    ("nokia_isam", f"{IF_TABLE}.8", "", 1, 2),
    ("nokia_isam", f"{NOKIA}.10.1.1.5", "", b"ALCL\x7d\x46\x30\xc3", b"ALCL\x7d\x46\x30\xc5"),
    ("nokia_isam", f"{NOKIA}.10.1.1.26", "", b"MODEL-1_____________", b"MODEL-1_____________"),
    ("nokia_isam", f"{NOKIA}.10.4.1.3", "", 12, 65534),
    ("nokia_isam", f"{NOKIA}.10.14.1.2", "", -10765, 32768),
    ("nokia_isam", f"{NOKIA}.10.14.1.4", "", 1140, 32768),
    ("nokia_isam", f"{NOKIA}.10.18.1.2", "", -231, 65534),
    ("calix_axos", f"{CALIX}.2", "", b"1005", b"1007"),
    ("calix_axos", f"{CALIX}.4", "", 1, 0),
    ("calix_axos", f"{CALIX}.5", "", 1, -1),
    ("calix_axos", f"{CALIX}.6", "", 70, 0),
    ("calix_axos", f"{CALIX}.7", "", 16904, 0),
    ("calix_axos", f"{CALIX}.8", "", 49, 0),
    ("cdata_epon", f"{CDATA}.3.4.1.1.7", "", b"\x00\x25\x9e\x01\x02\x07", b"\x00\x25\x9e\x01\x02\x09"),
    ("cdata_epon", f"{CDATA}.3.4.1.1.8", "", 1, 2),
    ("cdata_epon", f"{CDATA}.3.4.2.1.4", ".0.0", -2153, 65535),
    ("cdata_epon", f"{CDATA}.3.4.2.1.5", ".0.0", 228, 65535),
    ("cdata_epon", "1.3.6.1.4.1.34592.1.3.100.12.3.1.1.7", "", b"dying-gasp", b"losi"),
    ("cdata_gpon", f"{CDATA}.8.4.1.1.3", "", b"CDTC\x7d\x46\x30\xc3", b"CDTC\x7d\x46\x30\xc5"),
    ("cdata_gpon", f"{CDATA}.8.4.1.1.7", "", 1, 2),
    ("cdata_gpon", f"{CDATA}.8.4.4.1.4", ".0.0", -2153, 65535),
    ("cdata_gpon", f"{CDATA}.8.4.4.1.8", ".0.0", 4100, 65535),
    ("cdata_gpon", f"{CDATA}.3.3.6.1.2", "", -2312, 65535),
    ("cdata_fd11", "1.3.6.1.4.1.34592.1.3.4.1.1.7", "", b"\x00\x25\x9e\x01\x02\x07", b"\x00\x25\x9e\x01\x02\x09"),
    ("cdata_fd11", "1.3.6.1.4.1.34592.1.3.4.1.1.36", "", 70, 0),
    ("cdata_fd11", "1.3.6.1.4.1.34592.1.3.4.1.1.37", "", 16904, 0),
]


@pytest.mark.parametrize(
    ("brand", "column", "behind", "up", "dark"), [pytest.param(*row, id=f"{row[0]} {row[1][12:]}") for row in VALUES]
)
def test_a_column_holds_what_its_formula_says(ask, brand, column, behind, up, dark):
    agent = SimulatedAgent(make_device(brand))
    of_7, of_9 = (f"{column}.{index}{behind}" for index in INDEXES[brand])

    answer = ask(agent, "GET", of_7, of_9, now=NOON)

    assert answer.values == [up, dark]


def test_fiberhome_has_another_index_for_what_the_olt_receives(ask):
    # The number of the port alone, slot 1 << 25 + pon 2 << 19, and then the ONU.
    answer = ask(SimulatedAgent(make_device("fiberhome")), "GET", f"{FIBERHOME}.9.3.7.1.2.34603008.7", now=NOON)

    assert answer.values == [-2312]


@pytest.mark.parametrize(
    ("brand", "column", "values"),
    [
        pytest.param("huawei", f"{HUAWEI}.2.46.1.15", [1, 2, 2, 2], id="huawei run status"),
        pytest.param("huawei", f"{HUAWEI}.2.46.1.1", [1, 1, 1, 2], id="huawei admin status"),
        pytest.param("zte_c300", f"{ZTE}.1012.3.28.2.1.4", [3, 1, 4, 6], id="C300 phases"),
        pytest.param("zte_c600", f"{ZTE}.1082.500.10.2.3.8.1.4", [4, 2, 5, 7], id="C600 phases, one more"),
        pytest.param("zte_c300", f"{ZTE}.1015.1010.11.2.1.2", [-23120, -80000, 65535000, 65535000], id="C300 no light"),
        pytest.param("bdcom_gpon", f"{BDCOM}.3.4.1.2", [-215, -65535, -2147483648, -2147483648], id="bdcom no light"),
        pytest.param("bdcom_gpon", f"{BDCOM}.3.2.1.3", [1, 1, 1, 2], id="bdcom admin"),
        pytest.param("fiberhome", f"{FIBERHOME}.10.1.1.11", [1, 0, 2, 3], id="fiberhome states"),
        pytest.param(
            "vsol_epon",
            f"{VSOL}.12.1.25.1.19",
            [b"2026/11/15 10:50:00", b"2026/11/13 12:00:00", b"2026/11/13 12:00:00", b"N/A"],
            id="v-sol times, and none",
        ),
    ],
)
def test_each_way_of_being_down_has_its_value(ask, brand, column, values):
    rows = walk(ask, brand, column)

    assert [value for _, value in rows] == values


@pytest.mark.parametrize(
    ("brand", "column", "indexes"),
    [
        pytest.param("fiberhome", f"{FIBERHOME}.9.3.3.1.6", [(34604800,)], id="fiberhome optics"),
        pytest.param("fiberhome", f"{FIBERHOME}.9.3.7.1.2", [(34603008, 7)], id="what a fiberhome receives"),
        pytest.param("vsol_epon", f"{VSOL}.12.1.29.1.5", [(2, 7)], id="v-sol's table of those that are up"),
    ],
)
@pytest.mark.parametrize("repetitions", [1, 10])
def test_rows_of_onus_that_are_down_are_not_there_at_all(ask, brand, column, indexes, repetitions):
    assert [index for index, _ in walk(ask, brand, column, repetitions)] == indexes


def test_a_bdcom_has_onus_among_its_ports_in_the_order_of_registration(ask):
    names = walk(ask, "bdcom_gpon", f"{IF_TABLE}.2")

    assert names[0] == ((97,), b"GigaEthernet0/1")
    assert names[13] == ((110,), b"GPON0/1")
    assert names[-4:] == [
        ((1185,), b"GPON0/2:7"),
        ((1187,), b"GPON0/2:9"),
        ((1191,), b"GPON0/2:12"),
        ((1194,), b"GPON0/2:15"),
    ]


def test_a_bdcom_port_lists_the_numbers_of_its_onus(ask):
    answer = ask(
        SimulatedAgent(make_device("bdcom_gpon")), "GET", *[f"{BDCOM}.2.1.1.{column}.111" for column in (4, 5, 6)]
    )

    assert answer.values == [1, 3, b"1185,1187,1191,1194,"]


def test_a_bdcom_says_when_an_interface_changed_as_uptime(ask):
    # Its uptime at noon is 20775.5 days of 300: it started 75.5 days ago, and ONU 7 came an hour ago.
    answer = ask(SimulatedAgent(make_device("bdcom_gpon")), "GET", "1.3.6.1.2.1.1.3.0", f"{IF_TABLE}.9.1185", now=NOON)

    assert answer.values == [7550 * DAY, 7550 * DAY - 360000]


def test_a_v_sol_port_counts_its_onus(ask):
    agent = SimulatedAgent(make_device("vsol_epon"))

    answer = ask(agent, "GET", f"{VSOL}.12.1.27.1.2.2", f"{VSOL}.12.1.27.1.3.2", f"{VSOL}.12.1.27.1.2.1")

    assert answer.values == [4, 1, 0]


def test_ports_have_names_and_numbers_of_their_own(ask):
    c600, cdata, nokia = (
        dict(walk(ask, brand, f"{IF_X_TABLE}.1")) for brand in ("zte_c600", "cdata_epon", "nokia_isam")
    )

    assert c600[(285278978,)] == b"gpon_olt-1/3/2"
    # 0x01000D00, as on a box with 12 uplinks.
    assert cdata[(16780544,)] == b"pon0/0/1"
    assert nokia[(96537600,)] == b" ONT"


SYSTEM = {
    "huawei": ("1.3.6.1.4.1.2011.2.123", b"Huawei Integrated Access Software"),
    "zte_c300": ("1.3.6.1.4.1.3902.1082.1001.320.2.1", b"C320 Version V2.1.0 Software, "),
    "zte_c600": ("1.3.6.1.4.1.3902.1082.1001.600.1.1", b"C600 Version "),
    "ubiquiti": ("1.3.6.1.4.1.41112.1.5", b"EdgeOS v4"),
    "bdcom_gpon": ("1.3.6.1.4.1.3320.1.390.0", b"BDCOM(tm) GP3600-16B Software"),
    "vsol_epon": ("1.3.6.1.4.1.37950.1.1.5.10.14.1", b"V1600D"),
    "fiberhome": ("1.3.6.1.4.1.5875.800.1001.11", b"AN5516-01"),
    "nokia_isam": ("1.3.6.1.4.1.637.61.1", b"Nokia ISAM"),
    "calix_axos": ("1.3.6.1.4.1.6321.1.2.4", b"Calix E7-2"),
    "cdata_epon": ("1.3.6.1.4.1.17409", b"FD12"),
    "cdata_gpon": ("1.3.6.1.4.1.17409", b"FD16"),
    "cdata_fd11": ("1.3.6.1.4.1.17409", b"FD11"),
}


@pytest.mark.parametrize("brand", MAKERS)
def test_a_device_says_what_it_is(ask, brand):
    answer = ask(
        SimulatedAgent(make_device(brand)), "GET", "1.3.6.1.2.1.1.2.0", "1.3.6.1.2.1.1.1.0", "1.3.6.1.2.1.1.5.0"
    )

    object_id, descr, name = answer.values
    assert oid.text(object_id) == SYSTEM[brand][0]
    assert descr.startswith(SYSTEM[brand][1])
    assert name == b"OLT-CENTRAL-01"


def test_a_large_ubiquiti_calls_itself_by_the_maker_of_its_chip(ask):
    agent = SimulatedAgent(MAKERS["ubiquiti"].build("OLT-CENTRAL-01", 1500, 1))

    object_id, descr = ask(agent, "GET", "1.3.6.1.2.1.1.2.0", "1.3.6.1.2.1.1.1.0").values

    assert (oid.text(object_id), descr[:18]) == ("1.3.6.1.4.1.4413", b"UISP Fiber OLT XGS")


def walk(ask, brand, column, repetitions=25):
    """Return index and value of each row of a column, as a walk by GETBULK finds them."""
    agent, prefix, rows = SimulatedAgent(make_device(brand)), parse(column), []
    last = prefix
    while True:
        answer = ask(agent, "GET_BULK", last, repetitions=repetitions, now=NOON)
        for name, value in answer:
            if not name.startswith(prefix) or value is Missing.END_OF_MIB_VIEW:
                return rows
            rows.append((oid.unpack(name[len(prefix) :]), value))
        last = answer.oids[-1]
