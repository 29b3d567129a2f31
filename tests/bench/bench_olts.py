"""How long adding a fleet takes, with the usual jobs: by the API, by an import and in the admin. It is not a test.

Each way adds the same number of OLTs to an empty database, without a web server in between. The ratio compares the
last tenth of the API requests with the first tenth: it is about 1 if a request costs the same in a large fleet.

python tests/bench/bench_olts.py [OLTS]
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

OLTS = 1000
# All of them should be there within this time, in seconds.
LIMIT = 60.0
BRAND = "huawei"


def installed(folder: str, database: str | None = None) -> None:
    """Make the tables, as an installation has them, in a database of our own unless one is named."""
    for name in [name for name in os.environ if name.startswith("FACHO_") or name == "DATABASE_URL"]:
        del os.environ[name]
    os.environ |= {
        "FACHO_DATA_DIR": folder,
        "FACHO_ALLOWED_HOSTS": "testserver",
        "DJANGO_SETTINGS_MODULE": "facho.runtime.settings",
    }
    if database:
        os.environ["DATABASE_URL"] = database
    import django
    from django.core.management import call_command

    from facho.runtime import config
    from facho.runtime.garbage import collect_rarely

    config.prepare(config.load())
    django.setup()
    collect_rarely()
    call_command("migrate", verbosity=0)


def clients() -> tuple[Any, Any]:
    from django.contrib.auth import get_user_model
    from django.test import Client
    from rest_framework.test import APIClient

    boss = get_user_model().objects.create_superuser("boss", password="-")
    api, admin = APIClient(), Client()
    api.force_authenticate(boss)
    admin.force_login(boss)
    return api, admin


def host(number: int) -> str:
    return f"127.{number // 62500}.{number // 250 % 250}.{number % 250 + 1}"


def one_by_one(api: Any, olts: int) -> list[float]:
    """Add OLTs and apply the usual jobs to each in turn, and return how long each took."""
    masters = usual_masters()
    took = []
    for number in range(olts):
        before = time.perf_counter()
        olt = post(api, number, BRAND)
        for job in masters:
            api.post(f"/api/v1/jobs/{job}/apply/", {"olts": [olt]}, format="json")
        took.append(time.perf_counter() - before)
    return took


def by_api(api: Any, olts: int, brand: str = BRAND) -> None:
    """Add OLTs, then apply each job to all of them with one request."""
    added = [post(api, number, brand) for number in range(olts)]
    for job in usual_masters() if brand else ():
        api.post(f"/api/v1/jobs/{job}/apply/", {"olts": added}, format="json")


def post(api: Any, number: int, brand: str) -> int:
    body = {"name": f"OLT-{number}", "brand": brand, "host": host(number), "community": "public"}
    return int(api.post("/api/v1/olts/", body, format="json").json()["id"])


def usual_masters() -> list[int]:
    from facho.apps.jobs.templates import propose

    return [job.pk for job in propose(BRAND) if job.follows_id is None]


def by_import(admin: Any, olts: int, brand: str = BRAND) -> None:
    """Import one file, then apply the usual jobs to all OLTs in the list of workflows."""
    from django.core.files.uploadedfile import SimpleUploadedFile
    from django.urls import reverse

    rows = "".join(f"OLT-{number},{brand},{host(number)},161,1,2c,1\n" for number in range(olts))
    text = f"name,brand,host,port,enabled,version,max_in_flight\n{rows}"
    file = SimpleUploadedFile("olts.csv", text.encode(), content_type="text/csv")
    admin.post(reverse("dashboard:import-olts"), {"file": file, "community": "public"})
    if brand:
        apply_usual(admin)


def in_admin(admin: Any, olts: int) -> None:
    """Add OLTs by the form, then apply the usual jobs to all of them."""
    from django.urls import reverse

    form = {"brand": BRAND, "port": "161", "enabled": "on", "version": "2c", "community": "public"}
    form |= {"max_in_flight": "1", "max_pdus_per_second": "", "location": ""}
    for number in range(olts):
        admin.post(reverse("admin:inventory_olt_add"), {**form, "name": f"OLT-{number}", "host": host(number)})
    apply_usual(admin)


def apply_usual(admin: Any) -> None:
    from django.urls import reverse

    from facho.apps.inventory.models import Olt

    first = Olt.objects.order_by("pk").values_list("pk", flat=True)[0]
    form = {"action": "apply_usual", "select_across": "1", "_selected_action": [first]}
    admin.post(reverse("admin:jobs_workflow_changelist"), form)


def measured(name: str, olts: int, nodes: int, work: Callable[[], object]) -> None:
    """Do it, and print how long it took. A way that did not add everything stops the benchmark."""
    from facho.apps.inventory.models import Olt
    from facho.apps.jobs.models import SnmpJob, WorkflowNode

    before = time.perf_counter()
    work()
    took = time.perf_counter() - before
    there = Olt.objects.count(), WorkflowNode.objects.count()
    if there != (olts, olts * nodes):
        sys.exit(f"{name}: {there[0]} OLTs and {there[1]} nodes are there, not {olts} and {olts * nodes}.")
    verdict = "" if took < LIMIT else f"  more than {LIMIT:.0f} s"
    sys.stdout.write(f"{name:<40}{took:8.1f} s{1000 * took / olts:10.2f} ms an OLT{verdict}\n")
    Olt.objects.all().delete()
    SnmpJob.objects.all().delete()


def main() -> None:
    olts = int(sys.argv[1]) if len(sys.argv) > 1 else OLTS
    with tempfile.TemporaryDirectory(prefix="facho-bench-") as folder:
        installed(folder)
        api, admin = clients()
        from facho.brands import BRANDS

        jobs = len(BRANDS[BRAND].templates)
        single: list[float] = []
        measured("API, with the usual jobs", olts, jobs, lambda: by_api(api, olts))
        measured("API, OLT by OLT with each job", olts, jobs, lambda: single.extend(one_by_one(api, olts)))
        tenth = max(olts // 10, 1)
        sys.stdout.write(f"{'  last tenth over first tenth':<40}{sum(single[-tenth:]) / sum(single[:tenth]):8.2f}\n")
        measured("API, without a brand", olts, 1, lambda: by_api(api, olts, brand=""))
        measured("import, with the usual jobs", olts, jobs, lambda: by_import(admin, olts))
        measured("import, without a brand", olts, 1, lambda: by_import(admin, olts, brand=""))
        measured("admin, with the usual jobs", olts, jobs, lambda: in_admin(admin, olts))


if __name__ == "__main__":
    main()
