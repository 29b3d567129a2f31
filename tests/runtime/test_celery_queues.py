"""What goes through the broker: one message into one queue, perishable, and without a secret."""

import json
from uuid import uuid4

import pytest
import redis

from facho.adapters.runner.celery import DEFAULT, HIGH, QUEUES, RETRY, own_queue
from facho.runtime import config as facho_config
from facho.runtime.celery import POLL, Sender, make_app

KEY = "dGVzdHMgb25seTogMzIgYnl0ZXMgb2Ygbm8gc2VjcmU="


@pytest.fixture
def broker(own_redis):
    """A server that nobody else puts messages into."""
    client = redis.Redis.from_url(own_redis.url, decode_responses=True)
    yield client
    client.close()


@pytest.fixture
def app(own_redis, tmp_path):
    environ = {
        "FACHO_MODE": "scale",
        "FACHO_REDIS_URL": own_redis.url,
        "DATABASE_URL": "postgresql://facho@127.0.0.1/facho",
        "FACHO_DATA_DIR": str(tmp_path),
        "FACHO_SECRET_KEYS": KEY,
    }
    return make_app(facho_config.load(environ))


@pytest.mark.parametrize("queue", [HIGH, DEFAULT, RETRY])
async def test_a_message_is_in_its_queue_once_and_in_no_other(broker, app, queue):
    sender = Sender(app)
    word = uuid4().hex

    await sender.send(queue, {"claim": {"word": word}, "not_after": "2026-03-02T10:00:20+00:00"}, 20.0)
    sender.close()

    assert {name: broker.llen(name) for name in QUEUES} == dict.fromkeys(QUEUES, 0) | {queue: 1}
    message = json.loads(broker.lindex(queue, 0))
    assert message["headers"]["task"] == POLL
    assert message["headers"]["expires"] is not None


async def test_a_message_for_one_worker_is_in_its_queue_and_does_not_stay_there_forever(broker, app):
    sender, queue = Sender(app), own_queue("noc-1")

    await sender.send(queue, {"claim": {}, "not_after": "2026-03-02T10:00:20+00:00"}, 20.0)
    sender.close()

    assert set(broker.keys("*snmp_*")) == {queue}
    assert broker.llen(queue) == 1
    assert 50 < broker.ttl(queue) <= 60


async def test_a_broker_that_is_unavailable_is_an_error_at_once_and_not_a_wait(own_redis, app):
    sender = Sender(app)
    own_redis.stop()

    with pytest.raises(Exception, match=r"(?i)connect|refused"):
        await sender.send(DEFAULT, {"claim": {}, "not_after": ""}, 20.0)
    sender.close()
