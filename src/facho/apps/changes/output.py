"""Changes as JSON lines, for a log file or a syslog server. The handlers are in `runtime/logs.py`."""

import logging
from collections.abc import Sequence
from datetime import UTC
from functools import partial

from django.db import transaction
from django.utils import timezone

from facho.apps.changes.models import Change

logger = logging.getLogger("facho.changes")
# Only its own handlers, if there are any: see FACHO_CHANGES_LOG.
logger.propagate = False
logger.setLevel(logging.INFO)
logger.addHandler(logging.NullHandler())


def send_after_commit(changes: Sequence[Change]) -> None:
    """Log changes when they are stored. A failure here must not fail the request."""
    transaction.on_commit(partial(_send, changes), robust=True)


def _send(changes: Sequence[Change]) -> None:
    # Imported late: the models of all apps import this module.
    from rest_framework.renderers import JSONRenderer

    from facho.apps.changes.serializers import ChangeSerializer

    with timezone.override(UTC):
        for change in changes:
            logger.info("%s", JSONRenderer().render(ChangeSerializer(change).data).decode())
