"""Rules and deliveries that a user with a scope sees. See `apps/inventory/scopes.py`."""

from collections.abc import Collection
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _
from rest_framework.exceptions import PermissionDenied

from facho.alerts.kinds import OF_OLTS
from facho.alerts.models import Channel, Delivery, Rule
from facho.apps.inventory.models import Olt
from facho.apps.inventory.scopes import visible_ids


def restrict_rules(rules: QuerySet[Rule], user: Any) -> QuerySet[Rule]:
    """Return the rules that name OLTs of the user's scope and no others. A rule without OLTs is about all of them."""
    ids = visible_ids(user)
    if ids is None:
        return rules
    named = Rule.olts.through._default_manager.filter(rule=OuterRef("pk"))
    return rules.filter(Exists(named), ~Exists(named.exclude(olt__in=ids)), kind__in=OF_OLTS)


def check_channel(user: Any, channel: Channel) -> None:
    """Refuse to change a channel of other rules: with another destination, the user would get their messages."""
    if is_used_beyond(user, channel):
        raise PermissionDenied(shared_refusal(channel))


def is_used_beyond(user: Any, channel: Channel) -> bool:
    """Return whether rules use a channel that the user does not see."""
    rules = Rule.objects.filter(Q(channels=channel) | Q(escalation_channels=channel))
    seen = restrict_rules(Rule.objects.all(), user)
    return visible_ids(user) is not None and rules.exclude(pk__in=seen).exists()


def shared_refusal(channel: Channel) -> str:
    return _("%(channel)s sends alerts of OLTs outside your scope, so you cannot change it.") % {"channel": channel}


def restrict_deliveries(deliveries: QuerySet[Delivery], user: Any) -> QuerySet[Delivery]:
    """Return the messages about OLTs that the user sees, and test messages."""
    ids = visible_ids(user)
    return deliveries if ids is None else deliveries.filter(Q(alert__isnull=True) | Q(alert__olt__in=ids))


def check_rule(user: Any, kind: str, olts: Collection[Olt]) -> None:
    """Refuse a rule that watches more than the user sees."""
    if visible_ids(user) is None:
        return
    if kind not in OF_OLTS:
        raise ValidationError({"kind": _("This concerns all OLTs. It needs a user without a scope.")})
    if not olts:
        raise ValidationError({"olts": _("Choose OLTs of your scope. A rule without OLTs watches all of them.")})
