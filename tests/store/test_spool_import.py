"""Spools of version 0.5 become results of this one, and nothing in them is lost."""

import sqlite3
from contextlib import closing
from datetime import timedelta

import pytest
from builders import T0, make_node

from facho.adapters.wire import UnreadableMessage
from facho.engine import oid
from facho.engine.model import (
    Cause,
    Collected,
    Completeness,
    Coverage,
    Identification,
    Lease,
    Outcome,
    RawOid,
    Reading,
    RunResult,
    Status,
    Traffic,
)
from facho.store.spool import Spool

# Written by version 0.5.
PARTIAL = (
    b'{"execution_ids":[101,102],"outcome":{"status":"PARTIAL","cause":"unreachable","error":"no answer","'
    b'error_class":"OltUnreachable","readings":2,"completeness":"PARTIAL","traffic":{"pdus":4,"retransmiss'
    b'ions":0,"varbinds":0,"bytes_sent":0,"bytes_received":0,"rtt_p50":0.02,"rtt_p95":null,"rtt_p99":null,'
    b'"peak_in_flight":0,"sizes":{"rx_dbm":24},"answers_unchanged":0,"answers_parsed":0,"answers_decoded":'
    b'0},"is_temporary":true,"retry_at":"2026-03-01T10:00:00+00:00","seconds":1.5,"clock_set":-3.5},"lease'
    b'":{"olt_id":7,"holder":"noc/3","token":4611686018427387904,"device":"d"},"at":"2026-03-01T10:00:00+0'
    b'0:00","node":{"id":7,"olt_id":1,"name":"node 7","kind":"table","interval":300.0,"olt_name":"OLT-01",'
    b'"priority":40,"master_id":null,"next_check":"2026-03-01T10:00:00+00:00","run_requested_at":null,"col'
    b'umns":["rx_dbm"],"oids":[{"name":"uptime","oid":"1.3.6.1.2.1.1.3.0","decode":"ticks","scalar":true}]'
    b',"timeout":300.0,"retries":2,"retry_delay":1.5,"expected":4.25},"collected":{"completeness":"PARTIAL'
    b'","readings":[{"index":"4194304.7","slot":0,"port":1,"onu":7,"values":{"rx_dbm":-21.53,"serial":"HWT'
    b'C1","last_up":{"$at":"2026-03-01T10:00:00+00:00"},"name":null}},{"index":"4194304.8","slot":0,"port"'
    b':1,"onu":8,"values":{"rx_dbm":-20.0}}],"scalars":{"uptime":7,"raw":{"$bytes":"AP8="},"share":{"$numb'
    b'er":"inf"}},"traffic":{"pdus":4,"retransmissions":0,"varbinds":0,"bytes_sent":0,"bytes_received":0,"'
    b'rtt_p50":null,"rtt_p95":null,"rtt_p99":null,"peak_in_flight":0,"sizes":{},"answers_unchanged":0,"ans'
    b'wers_parsed":0,"answers_decoded":0},"errors":["1/3: no answer"],"coverage":[{"field":"rx_dbm","slot"'
    b':0,"port":1,"completeness":"COMPLETE","rows":1,"reason":""}],"failed_onus":[],"absent":[],"learned":'
    b'{"sizes":{"$items":[[7,[1,null,true]]]}},"had_values":{"rx_dbm":true,"name":null}},"identification":'
    b"null}"
)
IDENTIFIED = (
    b'{"execution_ids":[103],"outcome":{"status":"SUCCESS","cause":null,"error":"","error_class":"","readi'
    b'ngs":0,"completeness":null,"traffic":{"pdus":0,"retransmissions":0,"varbinds":0,"bytes_sent":0,"byte'
    b's_received":0,"rtt_p50":null,"rtt_p95":null,"rtt_p99":null,"peak_in_flight":0,"sizes":{},"answers_un'
    b'changed":0,"answers_parsed":0,"answers_decoded":0},"is_temporary":true,"retry_at":null,"seconds":nul'
    b'l,"clock_set":0.0},"lease":null,"at":"2026-03-01T10:00:00+00:00","node":{"id":7,"olt_id":1,"name":"n'
    b'ode 7","kind":"table","interval":300.0,"olt_name":"OLT-01","priority":40,"master_id":null,"next_chec'
    b'k":"2026-03-01T10:00:00+00:00","run_requested_at":null,"columns":["rx_dbm"],"oids":[{"name":"uptime"'
    b',"oid":"1.3.6.1.2.1.1.3.0","decode":"ticks","scalar":true}],"timeout":300.0,"retries":2,"retry_delay'
    b'":1.5,"expected":4.25},"collected":null,"identification":{"brand":"huawei","seen":{"sysName":"centra'
    b'l","at":{"$at":"2026-03-01T10:00:00+00:00"}}}}'
)


def opened_after_an_upgrade(tmp_path, *bodies):
    """Return the spool of a process of version 0.5 that had these records."""
    with closing(sqlite3.connect(tmp_path / "1.sqlite3")) as file:
        file.execute("CREATE TABLE results (id INTEGER PRIMARY KEY AUTOINCREMENT, body BLOB NOT NULL)")
        file.executemany("INSERT INTO results (body) VALUES (?)", [(body,) for body in bodies])
        file.commit()
    return Spool(tmp_path / "1.sqlite3")


def test_results_of_the_last_version_are_read_whole(tmp_path):
    spool = opened_after_an_upgrade(tmp_path, PARTIAL, IDENTIFIED)
    node = make_node(
        7,
        next_check=T0,
        columns=("rx_dbm",),
        retry_delay=timedelta(milliseconds=1500),
        expected=4.25,
        oids=(RawOid("uptime", oid.parse("1.3.6.1.2.1.1.3.0"), "ticks", scalar=True),),
    )
    outcome = Outcome(
        Status.PARTIAL,
        Cause.UNREACHABLE,
        "no answer",
        "OltUnreachable",
        2,
        Completeness.PARTIAL,
        Traffic(pdus=4, rtt_p50=0.02, sizes={"rx_dbm": 24}),
        retry_at=T0,
        seconds=1.5,
        clock_set=timedelta(seconds=-3.5),
    )
    collected = Collected(
        Completeness.PARTIAL,
        (
            Reading("4194304.7", 0, 1, 7, {"rx_dbm": -21.53, "serial": "HWTC1", "last_up": T0, "name": None}),
            Reading("4194304.8", 0, 1, 8, {"rx_dbm": -20.0}),
        ),
        {"uptime": 7, "raw": b"\x00\xff", "share": float("inf")},
        Traffic(pdus=4),
        ("1/3: no answer",),
        (Coverage("rx_dbm", 0, 1, Completeness.COMPLETE, 1),),
        learned={"sizes": {7: [1, None, True]}},
        had_values={"rx_dbm": True, "name": None},
    )

    partial, identified = spool.read(1), spool.read(2)
    spool.close()

    assert partial == RunResult((101, 102), outcome, Lease(7, "noc/3", 2**62, "d"), T0, node, collected)
    assert identified == RunResult(
        (103,),
        Outcome(Status.SUCCESS),
        None,
        T0,
        node,
        identification=Identification("huawei", {"sysName": "central", "at": T0}),
    )


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(PARTIAL[:-7], id="cut off"),
        pytest.param(PARTIAL.replace(b'"outcome"', b'"income"'), id="without an outcome"),
        pytest.param(PARTIAL.replace(b'"AP8="', b'"*"'), id="a tag with another type"),
        pytest.param(PARTIAL.replace(b"300.0", b'"long"'), id="no duration"),
    ],
)
def test_a_result_of_the_last_version_that_is_damaged_is_an_error(tmp_path, body):
    spool = opened_after_an_upgrade(tmp_path, body)

    with closing(spool), pytest.raises(UnreadableMessage):
        spool.read(1)
