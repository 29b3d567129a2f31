"""Requests that save at the same moment: each device and each name is taken once, and no answer is a 500."""

import asyncio
import threading
from functools import partial

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from facho.adapters.resolver import Resolver
from facho.apps.inventory import models
from facho.apps.inventory.models import Olt

AT_ONCE = 4


@pytest.fixture
async def post_all(make_thread):
    """Return a function that sends requests at once, each on its own connection, and returns their answers."""
    threads = [make_thread(f"request {number}") for number in range(AT_ONCE)]
    user = await threads[0].run(lambda: User.objects.create_superuser("noc", password="secret"))

    def post(address, body):
        client = APIClient(raise_request_exception=False)
        client.force_authenticate(user)
        return client.post(address, {"brand": "huawei"} | body, format="json").status_code

    async def post_all(address, bodies):
        posts = (partial(post, address, body) for body in bodies)
        return sorted(await asyncio.gather(*(thread.run(each) for thread, each in zip(threads, posts, strict=True))))

    return post_all


@pytest.fixture
def same_moment(monkeypatch):
    """Let every host name be resolved when all requests have come this far, and to one address."""
    barrier = threading.Barrier(AT_ONCE)

    def look_up(name):
        barrier.wait()
        return ("10.0.0.7",)

    monkeypatch.setattr(models, "RESOLVER", Resolver(look_up))


async def test_of_olts_with_one_device_that_are_saved_at_once_one_is_accepted(post_all, same_moment, make_thread):
    bodies = [
        {"name": f"OLT-{number}", "host": f"olt-{number}.example.net", "community": "public"}
        for number in range(AT_ONCE)
    ]

    assert await post_all("/api/v1/olts/", bodies) == [201, 400, 400, 400]
    assert await make_thread("reader").run(Olt.objects.count) == 1


async def test_of_olts_with_one_name_that_are_saved_at_once_one_is_accepted(post_all):
    bodies = [
        {"name": "OLT-CENTRAL-01", "host": f"10.0.0.{number}", "community": "public"} for number in range(AT_ONCE)
    ]

    assert await post_all("/api/v1/olts/", bodies) == [201, 400, 400, 400]


async def test_of_jobs_with_one_name_that_are_saved_at_once_one_is_accepted(post_all):
    body = {"name": "Optical power", "kind": "get", "columns": ["rx_dbm"]}

    assert await post_all("/api/v1/jobs/", [body] * AT_ONCE) == [201, 400, 400, 400]
