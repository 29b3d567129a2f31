"""Events: each has a level and a message, and every caller passes its details."""

import ast
import logging
from collections import Counter
from datetime import timedelta
from functools import cache
from pathlib import Path

import pytest
from builders import T0, make_node

from facho.engine import events
from facho.engine.events import Event, log_event
from facho.engine.scheduling.changes import ChangeKind, OltState, detect_changes

SOURCE = Path(events.__file__).parents[1]

# Chooses its event by the name of a change, and is held to it by a test of its own below.
BY_NAME = {("engine/scheduling/scheduler.py", "_tell_change")}


class Finder(ast.NodeVisitor):
    """Finds each `log_event(...)` of a file with the function that it stands in."""

    def __init__(self):
        self.found = []
        self._functions = []

    def visit_FunctionDef(self, node):
        self._functions.append(node)
        self.generic_visit(node)
        self._functions.pop()

    def visit_AsyncFunctionDef(self, node):
        self.visit_FunctionDef(node)

    def visit_Call(self, node):
        if isinstance(node.func, ast.Name) and node.func.id == "log_event" and self._functions:
            self.found.append((self._functions[-1], node))
        self.generic_visit(node)


@cache
def all_calls():
    """Return the file, the function and the node of each call."""
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        visitor = Finder()
        visitor.visit(ast.parse(path.read_text(encoding="utf-8")))
        name = path.relative_to(SOURCE).as_posix()
        found += ((name, function, call) for function, call in visitor.found)
    return found


def events_in(tree):
    """Return the events that are named there."""
    return {
        Event[node.attr]
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Event"
    }


def keys_in(function):
    """Return what dictionaries that are written down in a function have for keys."""
    return {
        key.value
        for node in ast.walk(function)
        if isinstance(node, ast.Dict)
        for key in node.keys
        if isinstance(key, ast.Constant)
    }


def details_of(function, call):
    named = {keyword.arg for keyword in call.keywords if keyword.arg}
    return named | (keys_in(function) if any(keyword.arg is None for keyword in call.keywords) else set())


def test_each_call_of_tell_gives_what_the_sentence_of_its_event_needs():
    calls = [each for each in all_calls() if (each[0], each[1].name) not in BY_NAME]

    problems = [f"{path}:{call.lineno}: {problem}" for path, function, call in calls
                if (problem := problem_with(function, call))]  # fmt: skip
    assert len(calls) >= 10
    assert problems == []


def problem_with(function, call):
    told, given = events_in(call.args[1]) or events_in(function), details_of(function, call)
    if not told:
        return "the event cannot be known from the source"
    if missing := {event.name: event.names - given for event in told if event.names - given}:
        return f"missing details: {missing}"
    if "olt_id" not in given and any("olt" in event.names for event in told):
        return "names an OLT without olt_id"
    return None


def test_the_exceptions_by_name_exist():
    assert {(path, function.name) for path, function, _ in all_calls()} >= BY_NAME


def states():
    """Return pairs of states of an OLT that lie on either side of each kind of change."""
    node = make_node(7)
    before = OltState(1, "OLT-CENTRAL-01", "10.0.0.7:161", (node,), "digest")
    slower = make_node(7, interval=timedelta(minutes=20))
    other = make_node(7, priority=90)
    return [
        (None, before),
        (before, None),
        (before, OltState(1, "OLT-CENTRAL-01", "10.0.0.8:161", (node, make_node(8)), "other")),
        (before, OltState(1, "OLT-CENTRAL-01", "10.0.0.7:161", (), "digest")),
        (before, OltState(1, "OLT-CENTRAL-01", "10.0.0.7:161", (slower,), "digest")),
        (before, OltState(1, "OLT-CENTRAL-01", "10.0.0.7:161", (other,), "digest")),
    ]


def test_every_kind_of_change_is_an_event_that_can_be_said():
    changes = [change for before, after in states() for change in detect_changes(before, after)]

    for change in changes:
        event = Event[change.kind.name]
        given = {"olt", *change.details, *(["task"] if change.node else [])}
        assert event.names <= given
    assert {change.kind for change in changes} == set(ChangeKind)


def test_no_two_events_are_alike():
    assert len(Event.__members__) == len(list(Event))
    assert [text for text, count in Counter(event.sentence for event in Event).items() if count > 1] == []


@pytest.mark.parametrize("event", Event, ids=lambda event: event.name)
def test_an_event_has_a_level_and_a_sentence_that_can_be_said(event):
    numbers = dict.fromkeys(event.names, 7)

    said = event.sentence % numbers

    assert event.level in (logging.INFO, logging.WARNING, logging.ERROR)
    assert said
    assert "%(" not in said
    assert not said.endswith(".")


def test_every_sentence_is_marked_for_the_catalogue():
    """By the name that makemessages looks for; a sentence in another function is never found."""
    tree = ast.parse(Path(events.__file__).read_text(encoding="utf-8"))
    marked = {
        argument.value
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        if isinstance(call.func, ast.Name) and call.func.id in ("gettext_noop", "ngettext_lazy")
        for argument in call.args
    }

    assert {form for event in Event for form in (event.singular, event.sentence)} == marked


@pytest.mark.parametrize("event", [event for event in Event if event.counts], ids=lambda event: event.name)
def test_an_event_that_counts_says_one_thing_of_one_and_another_of_more(event):
    details = {**dict.fromkeys(event.names, 7), "others": "node 8 (20 min)"}

    one, many = event.form({**details, event.counts: 1}), event.form({**details, event.counts: 2})

    assert (one, many) == (event.singular, event.sentence)
    assert one != many
    assert one % details
    assert set(events.PLACEHOLDER.findall(one)) <= event.names


@pytest.mark.parametrize(
    ("slots", "said"),
    [
        pytest.param(1, "OLT-SUR-03: State missed 1 slot, at 10:05 (olt_busy)", id="one"),
        pytest.param(3, "OLT-SUR-03: State missed 3 slots, the first at 10:05 (olt_busy)", id="several"),
    ],
)
def test_the_log_counts_as_people_do(caplog, slots, said):
    details = {"olt": "OLT-SUR-03", "task": "State", "slot": "10:05", "cause": "olt_busy", "slots": slots}

    log_event(logging.getLogger("facho.tests"), Event.SLOTS_LOST, olt_id=3, **details)

    assert caplog.messages == [said]


def test_an_event_is_a_log_record_with_its_details(caplog):
    caplog.set_level(logging.INFO)

    log_event(logging.getLogger("facho.tests"), Event.TASK_ADDED, olt_id=7, olt="OLT-CENTRAL-01", task="Optical power")

    (record,) = caplog.records
    assert record.getMessage() == "OLT-CENTRAL-01: polling of Optical power started"
    assert (record.event, record.olt_id, record.levelno) == (Event.TASK_ADDED, 7, logging.INFO)
    assert record.details == {"olt": "OLT-CENTRAL-01", "task": "Optical power"}
    assert record.filename == Path(__file__).name


def test_an_event_without_details_says_its_sentence_as_it_is(caplog):
    caplog.set_level(logging.INFO)

    log_event(logging.getLogger("facho.tests"), Event.ENGINE_STOPPED)

    assert caplog.messages == ["the engine is stopping"]


def test_an_event_may_bring_a_traceback_that_is_no_detail(caplog):
    error = OSError(f"nothing since {T0:%H:%M}")

    log_event(logging.getLogger("facho.tests"), Event.CHORE_FAILED, exc_info=error, chore="settle", error=str(error))

    (record,) = caplog.records
    assert record.exc_info[1] is error
    assert record.details == {"chore": "settle", "error": "nothing since 10:00"}
