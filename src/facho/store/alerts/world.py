"""How things stand, for one evaluation of all rules. What several kinds of rules look at is read once."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from facho.apps.alerts.kinds import RuleKind
from facho.apps.alerts.models import Rule
from facho.apps.inventory.models import Olt
from facho.engine.alerts import Firing

# What fires, by the id of the rule; None where nothing is known now, so that its alerts stay as they are.
Firings = dict[int, list[Firing] | None]


@dataclass(frozen=True)
class World:
    """What sources look at."""

    now: datetime
    # As `polling.live.snapshot` gives it.
    snapshot: Mapping[str, Any]
    # When the evaluations began: a scheduler that never spoke is silent since then.
    since: datetime
    # The keys of open alerts, by rule.
    open_keys: Mapping[int, Collection[str]] = field(default_factory=dict)
    _chosen: dict[int, Collection[int]] = field(default_factory=dict)

    @cached_property
    def olts(self) -> Mapping[int, Mapping[str, Any]]:
        """Return the enabled OLTs. What is disabled is not watched."""
        columns = ("pk", "name", "breaker_opened_at", "reachability", "suspect_since", "last_error")
        return {row["pk"]: row for row in Olt.objects.filter(enabled=True).values(*columns)}

    def is_open(self, rule: Rule, key: str) -> bool:
        return key in self.open_keys.get(rule.pk, ())

    def watches(self, rule: Rule, olt_id: int | None) -> bool:
        """Return whether a rule is about an OLT. Events are told of disabled ones too: that they are, for one."""
        chosen = self._chosen_by(rule)
        is_meant = not chosen or olt_id in chosen
        return is_meant and (rule.kind == RuleKind.EVENT or olt_id in self.olts)

    def _chosen_by(self, rule: Rule) -> Collection[int]:
        """Return the OLTs of a rule, which are prefetched without their secrets; none stands for all."""
        if rule.pk not in self._chosen:
            self._chosen[rule.pk] = {olt.pk for olt in rule.olts.all()}
        return self._chosen[rule.pk]
