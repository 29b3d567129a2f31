"""The first discovery of an OLT, of which nobody knows anything yet, gets past an ONU that spoils every request."""

import pytest
from virtual_olt import VirtualOlt, in_virtual_time

from facho.brands import brand
from facho.engine.model import Completeness, JobKind
from facho.simulator.faults import Faults

# What an agent that tells its errors may be asked more than a well one, and in how many seconds.
MORE_PDUS = 200
SECONDS = 600

EVERYTHING = tuple(brand("huawei").columns)


def discover(olt, *columns):
    return in_virtual_time(lambda: olt.collect(JobKind.DISCOVERY, *columns, seconds=SECONDS))


def seven(olt):
    """Return ONU 7 of the first port on which the one before it has the number 6."""
    places = [onu.position for onu in olt.device.plant.onus]
    return next(place for at, place in enumerate(places) if place.onu == 7 and places[at - 1].onu == 6)


@pytest.mark.parametrize("fault", ["gen_err_at", "silent_at"])
@pytest.mark.parametrize(
    "columns",
    [
        pytest.param(("serial",), id="one column"),
        pytest.param(("serial", "name", "state"), id="columns side by side"),
        pytest.param(EVERYTHING, id="more columns than fit into a request"),
    ],
)
def test_everybody_but_the_poisoned_onu_is_found(columns, fault):
    well = VirtualOlt()
    usual = discover(well, *columns)
    sick = VirtualOlt(faults=Faults(**{fault: seven(well)}))
    name = f"ONU {seven(well).slot}/{seven(well).port}/7"

    collected = discover(sick, *columns)

    assert collected.completeness is Completeness.PARTIAL
    assert collected.failed_onus == (name,)
    assert len(collected.readings) >= len(usual.readings) - 1
    assert sick.log.count() <= well.log.count() + MORE_PDUS


def test_only_what_cannot_be_read_is_left_out():
    well = VirtualOlt()
    whole = {reading.index: reading.values for reading in discover(well, "serial", "name", "model").readings}
    sick = VirtualOlt(faults=Faults(gen_err_at=seven(well)))

    read = {reading.index: reading.values for reading in discover(sick, "serial", "name", "model").readings}

    poisoned = [index for index in whole if index not in read]
    assert len(poisoned) == 1
    assert read == {index: values for index, values in whole.items() if index not in poisoned}
