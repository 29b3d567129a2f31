"""Whom a command asks: addresses as people write them, and secrets that nobody sees."""

import argparse

import pytest

from facho.engine.snmp import Agent, Community, User, Version
from facho.runtime.commands.screen import USAGE, CommandError
from facho.runtime.commands.target import add_arguments, agent_of


def options(*words):
    parser = argparse.ArgumentParser()
    add_arguments(parser, timeout=60)
    return parser.parse_args(["192.0.2.10", *words])


def nobody(question):
    raise AssertionError(f"nobody was to be asked: {question}")


def test_a_bad_address_is_refused_with_a_sentence():
    with pytest.raises(CommandError) as caught:
        agent_of(argparse.Namespace(**{**vars(options()), "host": "192.0.2.10:snmp"}), {})

    assert caught.value.status == USAGE


def test_the_community_is_public_unless_somebody_says_otherwise():
    assert agent_of(options(), {}).credentials == Community("public")


def test_a_community_from_the_environment_need_not_stand_on_the_command_line():
    assert agent_of(options(), {"FACHO_COMMUNITY": "s3cret"}).credentials == Community("s3cret")
    assert agent_of(options("--community=other"), {"FACHO_COMMUNITY": "s3cret"}).credentials == Community("other")


def test_version_1_is_asked_for_by_name():
    assert agent_of(options("--version=1"), {}) == Agent("192.0.2.10", 161, Version.V1, Community("public"))


def test_passwords_of_a_user_come_from_the_environment():
    words = ("--version=3", "--user=noc", "--auth=SHA256", "--priv=AES128")

    agent = agent_of(options(*words), {"FACHO_AUTH_KEY": "first-secret", "FACHO_PRIV_KEY": "second-secret"}, nobody)

    assert agent.version is Version.V3
    assert agent.credentials == User("noc", "SHA256", "first-secret", "AES128", "second-secret")
    assert "secret" not in repr(agent)


def test_passwords_that_are_not_there_are_asked_for():
    words = ("--version=3", "--user=noc", "--auth=SHA256", "--priv=AES128")

    agent = agent_of(options(*words), {}, lambda question: f"typed for {question}")

    assert agent.credentials.auth_key == "typed for Authentication password: "
    assert agent.credentials.priv_key == "typed for Privacy password: "


def test_a_user_without_keys_is_asked_for_nothing():
    assert agent_of(options("--version=3", "--user=noc"), {}, nobody).credentials == User("noc")


def test_where_nobody_can_type_the_variables_are_named(monkeypatch):
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)

    with pytest.raises(CommandError, match="FACHO_AUTH_KEY"):
        agent_of(options("--version=3", "--user=noc", "--auth=SHA256"), {})


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        pytest.param(["--version=3"], "needs a user", id="v3 without a user"),
        pytest.param(["--user=noc"], "--version 3", id="a user without v3"),
        pytest.param(["--version=3", "--user=noc", "--community=x"], "no community", id="v3 with a community"),
        pytest.param(["--version=3", "--user=noc", "--priv=AES128"], "--auth", id="encrypted and not signed"),
    ],
)
def test_what_does_not_fit_together_is_refused(words, sentence):
    with pytest.raises(CommandError, match=sentence):
        agent_of(options(*words), {}, nobody)


@pytest.mark.parametrize("seconds", ["0", "-1", "inf", "nan", "soon"])
def test_a_timeout_is_a_number_above_nothing(seconds, capsys):
    with pytest.raises(SystemExit) as ended:
        options(f"--timeout={seconds}")

    assert ended.value.code == USAGE
