"""Where each column of a profile stands, written out in full: a slip in a base or a number would read another one."""

import pytest

from facho.brands import PROFILE_IDS, brand
from facho.engine.oid import text

INTERFACES, MORE_INTERFACES = "1.3.6.1.2.1.2.2.1", "1.3.6.1.2.1.31.1.1.1"
ENTERPRISES = "1.3.6.1.4.1"


def below(base, **numbers):
    return {field: f"{base}.{number}" for field, number in numbers.items()}


OIDS = {
    "zte_c600": below(
        f"{ENTERPRISES}.3902.1082.500",
        model="10.2.3.3.1.1",
        name="10.2.3.3.1.2",
        description="10.2.3.3.1.3",
        serial="10.2.3.3.1.6",
        admin_state="10.2.3.8.1.1",
        state="10.2.3.8.1.4",
        last_up="10.2.3.8.1.5",
        last_down="10.2.3.8.1.6",
        down_cause="10.2.3.8.1.7",
        distance_m="10.2.3.10.1.2",
        rx_dbm="20.2.2.2.1.10",
        tx_dbm="20.2.2.2.1.14",
        olt_rx_dbm="1.2.4.2.1.2",
        vendor="20.2.1.2.1.1",
        software="20.2.1.2.1.2",
        equipment_id="20.2.1.2.1.8",
        in_octets="4.2.2.2.1.1",
        out_octets="4.2.2.2.1.44",
    ),
    "ubiquiti": below(
        f"{ENTERPRISES}.41112.1.5.6.2.1",
        serial=1,
        name=2,
        state=3,
        model=4,
        port=5,
        connected_s=6,
        uptime_s=7,
        tx_dbm=8,
        rx_dbm=9,
        out_octets=10,
        in_octets=11,
    ),
    "bdcom_gpon": {
        **below(INTERFACES, place=2, state=8),
        **below(MORE_INTERFACES, in_octets=6, out_octets=10, name=18),
        **below(
            f"{ENTERPRISES}.3320.10",
            serial="3.3.1.2",
            admin_state="3.2.1.3",
            rx_dbm="3.4.1.2",
            tx_dbm="3.4.1.3",
            olt_rx_dbm="2.3.1.3",
            distance_m="3.1.1.33",
            down_cause="3.1.1.35",
            vendor="3.1.1.2",
            model="3.1.1.3",
        ),
    },
    "vsol_epon": below(
        f"{ENTERPRISES}.37950.1.1.5.12",
        state="1.25.1.4",
        mac="1.25.1.5",
        name="1.25.1.9",
        model="1.25.1.13",
        down_cause="1.25.1.15",
        distance_m="1.25.1.17",
        last_up="1.25.1.18",
        last_down="1.25.1.19",
        temperature_c="2.1.8.1.3",
        voltage_v="2.1.8.1.4",
        bias_ma="2.1.8.1.5",
        tx_dbm="2.1.8.1.6",
        rx_dbm="2.1.8.1.7",
        in_octets="1.20.1.3",
        out_octets="1.20.1.10",
        vendor="2.1.2.1.3",
        hardware="2.1.2.1.6",
        software="2.1.2.1.7",
    ),
    "fiberhome": below(
        f"{ENTERPRISES}.5875.800.3",
        name="10.1.1.7",
        loid="10.1.1.8",
        serial="10.1.1.10",
        state="10.1.1.11",
        software="10.1.1.12",
        hardware="10.1.1.13",
        firmware="10.1.1.14",
        rx_dbm="9.3.3.1.6",
        tx_dbm="9.3.3.1.7",
        voltage_v="9.3.3.1.8",
        bias_ma="9.3.3.1.9",
        temperature_c="9.3.3.1.10",
        olt_rx_dbm="9.3.7.1.2",
        distance_m="9.6.1.1.1",
    ),
    "nokia_isam": {
        **below(INTERFACES, admin_state=7, state=8),
        **below(
            f"{ENTERPRISES}.637.61.1",
            serial="35.10.1.1.5",
            name="35.10.1.1.24",
            model="35.10.1.1.26",
            distance_m="35.10.4.1.3",
            uptime_s="35.10.4.1.11",
            rx_dbm="35.10.14.1.2",
            tx_dbm="35.10.14.1.4",
            temperature_c="35.10.14.1.6",
            olt_rx_dbm="35.10.18.1.2",
        ),
    },
    "calix_axos": below(
        f"{ENTERPRISES}.6321.1.2.4.2.6.1.1",
        name=2,
        admin_state=3,
        state=4,
        rx_dbm=6,
        tx_dbm=7,
        olt_rx_dbm=8,
        software=9,
        clei=10,
    ),
    "cdata_gpon": below(
        f"{ENTERPRISES}.17409.2.8.4",
        name="1.1.2",
        serial="1.1.3",
        vendor="1.1.5",
        model="1.1.6",
        state="1.1.7",
        admin_state="1.1.8",
        distance_m="1.1.9",
        registered_s="1.1.12",
        uptime_s="1.1.13",
        last_down="1.1.102",
        down_cause="1.1.103",
        software="2.1.2",
        rx_dbm="4.1.4",
        tx_dbm="4.1.5",
        temperature_c="4.1.8",
    ),
    "cdata_epon": {
        **below(f"{ENTERPRISES}.34592.1.3.100.12.3.1.1", last_down=6, down_cause=7),
        **below(
            f"{ENTERPRISES}.17409.2.3.4",
            name="1.1.2",
            mac="1.1.7",
            state="1.1.8",
            admin_state="1.1.9",
            software="1.1.13",
            distance_m="1.1.15",
            registered_s="1.1.18",
            vendor="1.1.25",
            model="1.1.26",
            hardware="1.1.27",
            rx_dbm="2.1.4",
            tx_dbm="2.1.5",
        ),
    },
    "cdata_fd11": below(
        f"{ENTERPRISES}.34592.1.3.4.1.1", name=4, software=6, mac=7, state=11, distance_m=13, rx_dbm=36, tx_dbm=37
    ),
}


@pytest.mark.parametrize("brand_id", PROFILE_IDS)
def test_the_columns_of_a_profile_stand_where_they_were_found(brand_id):
    assert {field: text(column.oid) for field, column in brand(brand_id).columns.items()} == OIDS[brand_id]
