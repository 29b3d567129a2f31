"""Remarks on columns and OIDs that never have a value. See `engine/remarks.py`."""

from collections.abc import Iterable
from typing import Any

from django.apps import apps
from django.db.models import Prefetch, QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from facho.apps.inventory import labels
from facho.apps.inventory.scopes import restrict
from facho.engine.remarks import blank_columns

HELP = "Columns and OIDs without values in the last runs, one sentence each. Empty if there are none."

# Maximum number of OLTs in a remark on a job.
NAMED = 3


def nodes_with_blanks() -> QuerySet[Any]:
    """Return the nodes with columns that had no value in their last run."""
    # By name, because nodes depend on OLTs.
    nodes: QuerySet[Any] = apps.get_model("jobs", "WorkflowNode")._default_manager.exclude(blank_runs={})
    return nodes.select_related("olt").only("olt__name", "job_id", "blank_runs").order_by("olt__name", "pk")


def with_remarks(user: Any = None) -> "Prefetch[str]":
    """Return the prefetch of the remarks of many OLTs or jobs, with one query, for a user if they name other OLTs."""
    nodes = nodes_with_blanks() if user is None else restrict(nodes_with_blanks(), user)
    return Prefetch("nodes", nodes, to_attr="nodes_with_blanks")


def remarks_on(nodes: Iterable[Any]) -> list[str]:
    """Return a sentence for each column without a value, with its OLTs."""
    columns: dict[str, list[tuple[str, int]]] = {}
    for node in nodes:
        for name, runs in blank_columns(node.blank_runs).items():
            columns.setdefault(name, []).append((node.olt.name, runs))
    remarks = []
    for name, found in sorted(columns.items()):
        olts = ", ".join(dict.fromkeys(olt for olt, _runs in found[:NAMED]))
        if len(found) > NAMED:
            olts = _("%(olts)s and %(n)d more") % {"olts": olts, "n": len(found) - NAMED}
        runs = min(runs for _olt, runs in found)
        sentence = ngettext(
            "%(column)s had no value in the last %(runs)d run on %(olts)s. Check the OID or remove the column.",
            "%(column)s had no value in the last %(runs)d runs on %(olts)s. Check the OID or remove the column.",
            runs,
        )
        remarks.append(sentence % {"column": labels.column(name), "runs": runs, "olts": olts})
    return remarks
