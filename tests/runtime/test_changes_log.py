"""Changes as JSON lines in a file and on a syslog server."""

import json
import logging
import socket
import struct

import pytest

from facho.apps.changes.actor import Actor, Interface, acting
from facho.runtime import config, logs, syslog
from facho.runtime.syslog import Syslog

LINE = json.dumps({"actor": "ana", "action": "login"})


@pytest.fixture
def changes():
    """Return the logger of changes, and give it its handlers back."""
    logger = logging.getLogger("facho.changes")
    before = logger.handlers[:]
    yield logger
    for handler in logger.handlers:
        if handler not in before:
            handler.close()
    logger.handlers = before


def settings(tmp_path, **environ):
    (tmp_path / "logs").mkdir(exist_ok=True)
    return config.load({"FACHO_DATA_DIR": str(tmp_path), **environ})


def test_the_file_has_a_line_for_each_change(changes, tmp_path):
    logs.configure_changes(settings(tmp_path, FACHO_CHANGES_LOG="file"), "facho")
    changes.info("%s", LINE)

    assert (tmp_path / "logs" / "changes.log").read_text() == f"{LINE}\n"


def test_without_the_setting_there_is_no_file(changes, tmp_path):
    logs.configure_changes(settings(tmp_path), "facho")
    changes.info("%s", LINE)

    assert not list((tmp_path / "logs").iterdir())


def test_a_syslog_server_gets_each_change_by_udp(changes):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(10)
        changes.addHandler(Syslog(f"syslog://127.0.0.1:{server.getsockname()[1]}"))
        changes.info("%s", LINE)
        line = server.recv(4096).decode()

    assert line.startswith("<134>1 ")
    assert line.endswith(f" facho - change - {LINE}\n")


def test_a_tcp_server_that_drops_the_connection_gets_further_changes(changes):
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(10)
        changes.addHandler(Syslog(f"syslog+tcp://127.0.0.1:{server.getsockname()[1]}"))
        changes.info("first")
        connection, _address = server.accept()
        assert b"first" in connection.recv(4096)
        # Without lingering, closing resets the connection at once.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
        changes.info("lost")
        changes.info("third")
        connection, _address = server.accept()
        with connection:
            connection.settimeout(10)
            assert connection.recv(4096).endswith(b"third\n")


def test_a_server_that_reads_nothing_does_not_block_a_change(changes, monkeypatch):
    monkeypatch.setattr(syslog, "MOST_WAITING", 3)
    with socket.create_server(("127.0.0.1", 0)) as server:
        handler = Syslog(f"syslog+tcp://127.0.0.1:{server.getsockname()[1]}")
        changes.addHandler(handler)
        for _number in range(20):
            changes.info("x" * 2_000_000)

        assert handler.lost > 0


def test_lines_have_the_id_of_their_request(tmp_path):
    record = logging.makeLogRecord({"msg": "refused", "levelname": "WARNING", "name": "facho"})
    with acting(Actor(Interface.API, request_id="req-1")):
        logs.add_request_id(record)

    assert logs.Lines("%(message)s").format(record) == "refused [request req-1]"
    assert json.loads(logs.JsonLines().format(record))["request_id"] == "req-1"
