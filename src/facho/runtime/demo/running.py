"""Start of the demo, and its simulated OLTs."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from facho.runtime.config import Config, ConfigError
from facho.runtime.demo import PASSWORD, USER
from facho.simulator.fleet import demo_fleet
from facho.simulator.stories import DARK

# First port of the simulated OLTs, if free.
FIRST_UDP_PORT = 16101


def run(*, port: int, data: Path, olts: int, onus: int, prepare: Callable[[], Config]) -> None:
    """Run the demo until it is stopped."""
    for name, value in (("--olts", olts), ("--onus", onus), ("--port", port)):
        if value < 1:
            raise ConfigError(f"{name} is {value}. Write 1 or more.")
    config = prepare_alone(data, port, prepare)
    from facho.runtime import embedded, logs
    from facho.runtime.demo.past import Past
    from facho.runtime.demo.setting_up import first_start, set_up
    from facho.runtime.lock import EngineLock
    from facho.runtime.serving import listen
    from facho.runtime.upgrade import upgrade

    logs.configure(config)
    with EngineLock(config):
        # Fail before the setup if the port is in use.
        listen(config.host, config.port).close()
        upgrade(verbosity=0)
        began = first_start()
        with simulated(olts, onus, began) as fleet:
            specs = demo_fleet(olts, onus, dark_since=began.timestamp() - DARK)
            set_up(fleet, Past(specs, began))
            embedded.serve(config, on_ready=lambda: _welcome(config, fleet))


def prepare_alone(data: Path, port: int, prepare: Callable[[], Config]) -> Config:
    """Prepare the data directory of the demo. Settings of another installation in the environment are hidden."""
    for name in [name for name in os.environ if name.startswith("FACHO_") or name == "DATABASE_URL"]:
        del os.environ[name]
    os.environ |= {"FACHO_DATA_DIR": str(data), "FACHO_HOST": "127.0.0.1", "FACHO_PORT": str(port)}
    return prepare()


@contextlib.contextmanager
def simulated(olts: int, onus: int, began: datetime) -> Iterator[list[dict[str, Any]]]:
    """Run a fleet during a `with`. It ends with this process in any case, because its standard input is ours."""
    ports = ",".join(str(FIRST_UDP_PORT + number) for number in range(olts))
    options = [f"--olts={olts}", f"--onus={onus}", f"--ports={ports}", f"--began={began.timestamp()!r}"]
    # In its own session: Ctrl-C is for this process, and the fleet ends last.
    with subprocess.Popen(  # noqa: S603 - our own module
        [sys.executable, "-m", "facho.simulator", *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        line = process.stdout.readline() if process.stdout else ""
        if not line:
            raise ConfigError("The simulated OLTs did not start. The reason is in the lines above.")
        try:
            yield json.loads(line)
        finally:
            # Leaving the block closes its standard input and waits for it.
            process.terminate()


def _welcome(config: Config, fleet: list[dict[str, Any]]) -> None:
    onus = sum(olt["onus"] for olt in fleet)
    sys.stdout.write(
        f"\n  Facho polls {len(fleet)} simulated OLTs with {onus} ONUs.\n\n"
        f"    Open      http://{config.host}:{config.port}/\n"
        f"    Log in    {USER} / {PASSWORD}\n"
        f"    API       http://{config.host}:{config.port}/api/v1/docs/\n"
        f"    Data      {config.data_dir}\n\n"
        "  Ctrl-C stops it; the next start continues with the same data.\n\n"
    )
    sys.stdout.flush()
