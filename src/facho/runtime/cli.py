"""The `facho` command."""

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from facho import __version__

if TYPE_CHECKING:
    from django.core.checks import CheckMessage

    from facho.runtime.config import Config

# Commands by their module in `runtime/commands`. A module is loaded only for its command: most of them need no
# database, are used in shell loops, and start much faster than Django.
LIGHT_COMMANDS = {
    "collect": "read the ONUs of one OLT and print them",
    "probe": "identify an OLT, list the tables it answers and estimate how often they can be read",
    "record": "record the answers of an OLT in a .snmprec file",
    "sim": "simulate an OLT",
    "brands": "list the supported brands, or check a profile",
    "forecast": "predict whether the pollers can run all jobs on time",
    "export": "write the history of ONUs as CSV or Parquet files, one for each OLT and day",
}


def main(argv: Sequence[str] | None = None) -> None:
    """Run a subcommand. A user error ends it with a message, not with a traceback."""
    # Files are for the user that runs Facho: see `files.py`.
    os.umask(0o077)
    words = sys.argv[1:] if argv is None else list(argv)
    typed = next((word for word in words if not word.startswith("-")), "")
    arguments = _parser(typed).parse_args(words)
    # Imported late: `--version` and `--help` need neither.
    from facho.engine.escapes import escape_lines
    from facho.runtime.commands.screen import CommandError
    from facho.runtime.config import ConfigError

    try:
        # Commands with a module of their own return their exit status.
        status = arguments.command(arguments)
        sys.stdout.flush()
    except CommandError as error:
        sys.stderr.write(f"facho: {escape_lines(str(error))}\n")
        sys.exit(error.status)
    except ConfigError as error:
        sys.exit(f"facho: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # The reader closed the pipe. Python must not report that at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    if status is not None:
        sys.exit(status)


def _parser(typed: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="facho", description="Collects ONUs from OLTs over SNMP, on a strict schedule."
    )
    parser.add_argument("--version", action="version", version=f"facho {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    run = _command(commands, "run", run_engine, "run web and engine in one process, on the port of FACHO_PORT")
    run.add_argument("--host", help="address to listen on (FACHO_HOST)")
    run.add_argument("--port", type=int, help="port to listen on (FACHO_PORT)")

    demo = _command(commands, "demo", run_demo, "run Facho with simulated OLTs")
    demo.add_argument("--port", type=int, default=8000, help="port to listen on (default %(default)s)")
    demo.add_argument("--data", type=Path, default=Path("demo-data"), help="data directory (default %(default)s)")
    demo.add_argument("--olts", type=int, default=6, help="number of simulated OLTs (default %(default)s)")
    demo.add_argument("--onus", type=int, default=2100, help="minimum total number of ONUs (default %(default)s)")
    demo.add_argument("--remove", action="store_true", help="remove the simulated OLTs; your own OLTs stay")

    web = _command(commands, "web", run_web, "run the web pages and the API (scale-out mode)")
    web.add_argument("--host", help="address to listen on (FACHO_HOST)")
    web.add_argument("--port", type=int, help="port to listen on (FACHO_PORT)")
    _command(
        commands,
        "scheduler",
        run_scheduler,
        "run a scheduler (scale-out mode); if several run, one is active and the others are on standby",
    )
    worker = _command(commands, "worker", run_worker, "run a worker, which polls OLTs (scale-out mode)")
    worker.add_argument("-c", "--pollers", type=int, help="number of simultaneous runs (FACHO_POLLERS)")

    _command(commands, "migrate", migrate, "create or upgrade the database tables")
    move = _command(commands, "migrate-to", migrate_to, "copy all data to an empty PostgreSQL database and verify it")
    move.add_argument(
        "url",
        metavar="DATABASE_URL",
        help="target, like postgresql://user@host:5432/facho; the password comes from PGPASSWORD",
    )
    move.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    create = _command(commands, "createsuperuser", create_superuser, "create an administrator")
    create.add_argument("--username")
    create.add_argument("--email", default="")
    create.add_argument("--noinput", action="store_true", help="read the password from DJANGO_SUPERUSER_PASSWORD")
    free = _command(commands, "unlock", unlock, "end the lock after failed logins")
    who = free.add_mutually_exclusive_group(required=True)
    who.add_argument("target", nargs="?", metavar="USER|ADDRESS", help="a user name or an IP address")
    who.add_argument("--all", action="store_true", help="end all locks")
    shell = _command(commands, "shell", open_shell, "open a Python shell with all models imported")
    shell.add_argument("-c", "--command", dest="code", help="run this code and exit")
    _command(commands, "check", check, "check the configuration")
    _command(commands, "rotate-keys", rotate_keys, "encrypt all secrets with a new key")
    for name, text in LIGHT_COMMANDS.items():
        light = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        if name == typed:
            module = import_module(f"facho.runtime.commands.{name}")
            module.add_arguments(light)
            light.set_defaults(command=module.run)
    return parser


def _command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    function: Callable[[argparse.Namespace], None],
    text: str,
) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    command.set_defaults(command=function)
    return command


def prepare(*, is_check: bool = False) -> "Config":
    """Create the data directory and key if needed, then start Django. A check leaves file modes as they are."""
    from facho.runtime import config as facho_config
    from facho.runtime import files

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "facho.runtime.settings")
    config = facho_config.load()
    facho_config.prepare(config)
    if not is_check:
        files.tighten(config)
    import django

    django.setup()
    from facho.runtime import checks  # noqa: F401 - registers them
    from facho.runtime.garbage import collect_rarely

    collect_rarely()
    return facho_config.load()


@contextmanager
def _recorded(config: "Config") -> Iterator[None]:
    """Record the changes of a command as those of the user of the operating system."""
    from facho.apps.changes.actor import acting, command_line
    from facho.runtime import logs

    logs.configure_changes(config, "cli")
    with acting(command_line()):
        yield


def _take_settings(arguments: argparse.Namespace, *names: str) -> None:
    """Let command line options override the environment."""
    for name in names:
        value = getattr(arguments, name)
        if value is not None:
            os.environ[f"FACHO_{name.upper()}"] = str(value)


def _prepare_role(role: str) -> "Config":
    """Prepare a role of scale-out without contacting a server."""
    config = prepare()
    from facho.runtime import logs
    from facho.runtime.config import ConfigError

    if not config.is_scale:
        raise ConfigError(
            f"`facho {role}` is a role of scale-out. Set FACHO_MODE=scale, DATABASE_URL and FACHO_REDIS_URL, "
            "or use `facho run` for everything in one process."
        )
    logs.configure(config, name=role if role == "web" else f"{role}-{config.worker_name}")
    refuse_on_errors(databases=[])
    return config


def run_web(arguments: argparse.Namespace) -> None:
    _take_settings(arguments, "host", "port")
    config = _prepare_role("web")
    from facho.runtime.roles import web

    web.serve(config, on_ready=lambda: print(f"Facho is listening on http://{config.host}:{config.port}", flush=True))


def run_scheduler(arguments: argparse.Namespace) -> None:
    config = _prepare_role("scheduler")
    from facho.runtime.lock import lock_role
    from facho.runtime.roles import scheduler

    with lock_role(config, "scheduler"):
        scheduler.serve(config, on_ready=lambda: print("The scheduler is on standby.", flush=True))


def run_worker(arguments: argparse.Namespace) -> None:
    _take_settings(arguments, "pollers")
    config = _prepare_role("worker")
    from facho.runtime.config import WORKER_POLLERS
    from facho.runtime.lock import lock_role
    from facho.runtime.roles import worker

    pollers = config.pollers or WORKER_POLLERS
    with lock_role(config, "worker"):
        worker.serve(config, pollers, on_ready=lambda: print(f"The worker has {pollers} pollers.", flush=True))


def run_engine(arguments: argparse.Namespace) -> None:
    _take_settings(arguments, "host", "port")
    config = prepare()
    from django.contrib.auth import get_user_model

    from facho.runtime import embedded, logs
    from facho.runtime.config import ConfigError
    from facho.runtime.lock import EngineLock
    from facho.runtime.upgrade import upgrade

    if config.is_scale:
        raise ConfigError(
            "FACHO_MODE is scale: start `facho web`, `facho scheduler` and `facho worker` instead. Unset "
            "FACHO_MODE to run everything in one process."
        )
    logs.configure(config)
    refuse_on_errors()
    # Before the migrations: a database must not change under a running engine.
    with EngineLock(config) as lock:
        upgrade(verbosity=0)
        if not get_user_model().objects.exists():
            print("There are no users yet. Create one: facho createsuperuser", flush=True)
        here = f"http://{config.host}:{config.port}"
        embedded.serve(config, on_ready=lambda: print(f"Facho is listening on {here}", flush=True), lock=lock)


def run_demo(arguments: argparse.Namespace) -> None:
    from facho.runtime.demo import removal, running

    if arguments.remove:
        removal.run(data=arguments.data, olts=arguments.olts, port=arguments.port, prepare=prepare)
        return
    running.run(port=arguments.port, data=arguments.data, olts=arguments.olts, onus=arguments.onus, prepare=prepare)


def migrate(arguments: argparse.Namespace) -> None:
    prepare()
    refuse_on_errors()
    from facho.runtime.upgrade import upgrade

    upgrade(verbosity=1)


def migrate_to(arguments: argparse.Namespace) -> None:
    from facho.runtime import config as facho_config

    source = facho_config.load({**os.environ, "FACHO_MODE": "embedded"})
    # Django itself uses the target, where everything is written.
    os.environ.update(DATABASE_URL=arguments.url, FACHO_MODE="embedded")
    target = prepare()
    refuse_on_errors()
    from facho.runtime import migrate_to

    if not migrate_to.move(source, target, is_sure=arguments.yes):
        sys.exit("facho: The copy differs from the source. The target was emptied again.")
    print(
        "All data was copied and verified. The source is unchanged. Set DATABASE_URL to the new address "
        "and start Facho."
    )


def create_superuser(arguments: argparse.Namespace) -> None:
    config = prepare()
    refuse_on_errors(outdated_too=True)
    from django.core.management import CommandError, call_command

    from facho.runtime.config import ConfigError

    if arguments.noinput:
        # With a terminal, Django itself checks the password.
        _check_password(os.environ.get("DJANGO_SUPERUSER_PASSWORD", ""), arguments.username or "")
    try:
        with _recorded(config):
            call_command(
                "createsuperuser",
                username=arguments.username,
                email=arguments.email,
                interactive=not arguments.noinput,
            )
    except CommandError as error:
        raise ConfigError(str(error)) from error


def _check_password(password: str, username: str) -> None:
    from django.contrib.auth import get_user_model
    from django.contrib.auth.password_validation import validate_password
    from django.core.exceptions import ValidationError

    from facho.runtime.config import ConfigError

    try:
        validate_password(password, get_user_model()(username=username))
    except ValidationError as error:
        raise ConfigError(f"DJANGO_SUPERUSER_PASSWORD is not accepted. {' '.join(error.messages)}") from error


def unlock(arguments: argparse.Namespace) -> None:
    config = prepare()
    refuse_on_errors(outdated_too=True)
    from facho.apps.accounts import logins

    with _recorded(config):
        number = logins.unlock_all() if arguments.all else logins.unlock(arguments.target)
    print(f"{number} failed logins were forgotten." if number else "There were no failed logins to forget.")


def open_shell(arguments: argparse.Namespace) -> None:
    config = prepare()
    from django.core.management import call_command

    from facho.runtime.shell import Shell

    with _recorded(config):
        # The imports are printed, unless the output is for a program.
        call_command(Shell(), command=arguments.code, verbosity=0 if arguments.code else 2)


def check(arguments: argparse.Namespace) -> None:
    """Report all problems, including those of the servers."""
    from facho.runtime import config as facho_config

    data_dir = facho_config.load().data_dir
    # A check changes nothing. A new, empty directory would hide that an installation was deleted.
    if not data_dir.is_dir():
        raise facho_config.ConfigError(
            f"The data directory {data_dir} does not exist. If it was deleted, restore a backup. For a new "
            "installation run `facho migrate`, which creates it."
        )
    config = prepare(is_check=True)
    from django.core import checks

    from facho.runtime.checks import loose_files, servers, shared_devices, time_series

    messages = [*checks.run_checks(databases=["default"]), *shared_devices(), *loose_files(config)]
    messages += time_series(config)
    if config.is_scale:
        messages += servers(config)
    for message in messages:
        if message.level == checks.INFO:
            print(message.msg, flush=True)
    _refuse([message for message in messages if message.level >= checks.WARNING and not message.is_silenced()])
    print(f"No problems found. Data in {config.data_dir}, database {config.database['ENGINE']}.")


def rotate_keys(arguments: argparse.Namespace) -> None:
    config = prepare()
    # Before a new key is created: with an unreadable secret there is nothing to rotate.
    refuse_on_errors(outdated_too=True)
    from facho.runtime import keys

    with _recorded(config):
        count = keys.rotate(config)
    print(f"The secrets of {count} OLTs, channels and users are now encrypted with the first key. Start Facho again.")


def refuse_on_errors(*, outdated_too: bool = False, databases: Sequence[str] = ("default",)) -> None:
    """End the command if a check finds an error or, if requested, pending migrations."""
    from django.core import checks

    from facho.runtime.checks import OUTDATED

    messages = checks.run_checks(databases=list(databases))
    _refuse([each for each in messages if each.is_serious() or (outdated_too and each.id == OUTDATED)])


def _refuse(messages: "Sequence[CheckMessage]") -> None:
    from facho.runtime.config import ConfigError

    if messages:
        raise ConfigError("\n".join(f"{message.msg} {message.hint or ''}".strip() for message in messages))


if __name__ == "__main__":
    main()
