"""Removal of the demo from its data directory. What the visitor added stays."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

from facho.runtime.config import Config, ConfigError
from facho.runtime.demo.running import prepare_alone
from facho.simulator.fleet import demo_fleet


def run(*, data: Path, olts: int, port: int, prepare: Callable[[], Config]) -> None:
    """Remove the demo. It must not run."""
    if not data.is_dir():
        raise ConfigError(f"There is no demo in {data}. Name its data directory with --data.")
    config = prepare_alone(data, port, prepare)
    from facho.runtime import logs
    from facho.runtime.lock import EngineLock
    from facho.runtime.upgrade import upgrade

    logs.configure(config)
    with EngineLock(config):
        upgrade(verbosity=0)
        remove([spec.name for spec in demo_fleet(olts)])


def remove(names: list[str]) -> None:
    """Delete the OLTs, jobs, sites and the user of the demo. `names` are those of its OLTs in old installations."""
    from django.contrib.auth import get_user_model
    from django.db import transaction

    from facho.apps.changes.actor import acting, command_line
    from facho.apps.inventory.models import Olt, Site
    from facho.apps.jobs.models import SnmpJob
    from facho.runtime.demo import USER
    from facho.runtime.demo.setting_up import added, own_olts

    with acting(command_line("Removed with the demonstration.")), transaction.atomic():
        olts = own_olts(names).values()
        for olt in olts:
            olt.delete()
        # The visitor's OLTs may use them.
        jobs = SnmpJob.objects.filter(pk__in=added(SnmpJob), nodes=None)
        SnmpJob.remove(jobs, SnmpJob.Followers.DETACH)
        for site in Site.objects.filter(pk__in=added(Site), olts=None):
            site.delete()
        users = get_user_model().objects
        own_ids = added(users.model)
        # Earlier versions recorded no reason.
        for user in users.filter(pk__in=own_ids) if own_ids else users.filter(username=USER):
            user.delete()
        left, has_user = Olt.objects.count(), users.exists()
    sys.stdout.write(
        f"{len(olts)} OLTs of the demo were removed with their ONUs, sites, jobs and user. {left} of yours stay.\n"
    )
    if left and not has_user:
        data = os.environ["FACHO_DATA_DIR"]
        sys.stdout.write(f"There are no users now. Create one: FACHO_DATA_DIR={data} facho createsuperuser\n")
