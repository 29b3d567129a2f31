"""What a run covered, as an execution keeps it, in words.

columns  by field: on how many ports it is complete, partial, empty, and how many rows it has in all
failed   the first ports that were not read to their end: field, slot, port, reason (slot and port are null
         where it is about the table as a whole)
more     how many more ports failed
"""

from collections.abc import Collection, Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from facho.apps.inventory import labels
from facho.apps.polling.errors import in_words


def column_lines(coverage: Mapping[str, Any]) -> list[str]:
    """Return a line for each column: on how many ports it was read to its end, and where it was not."""
    lines = []
    for name, counts in coverage.get("columns", {}).items():
        ports = counts["complete"] + counts["partial"] + counts["empty"]
        rows = ngettext("%(name)s: %(rows)d row", "%(name)s: %(rows)d rows", counts["rows"])
        whole = ngettext(
            "read completely on %(whole)d of %(ports)d port", "read completely on %(whole)d of %(ports)d ports", ports
        )
        label, whole_ports = labels.column(name), ports - counts["partial"]
        lines.append(f"{rows}; {whole}" % {"name": label, "rows": counts["rows"], "whole": whole_ports, "ports": ports})
    return lines


def failure_lines(coverage: Mapping[str, Any]) -> list[str]:
    """Return a line for each port that failed. Columns that failed on it for one reason share one."""
    groups: dict[tuple[int | None, int | None, str], list[str]] = {}
    for each in coverage.get("failed", ()):
        groups.setdefault((each["slot"], each["port"], each["reason"]), []).append(each["field"])
    lines = []
    for (slot, port, reason), names in groups.items():
        if slot is None and port is None:
            where = _("whole table")
        else:
            where = _("port %(place)s") % {"place": f"{'-' if slot is None else slot}/{port}"}
        lines.append(f"{where} ({labels.columns(names)}): {in_words(reason)}")
    more = coverage.get("more", 0)
    return [*lines, _("and %(n)d more") % {"n": more}] if more else lines


def failure_at(coverage: Mapping[str, Any], fields: Collection[str], slot: int | None, port: int | None) -> str | None:
    """Return the reason why one of these columns was not read to the end on a port, or None."""
    for each in coverage.get("failed", ()):
        is_here = (each["slot"], each["port"]) in ((slot, port), (None, None))
        if each["field"] in fields and is_here:
            return in_words(str(each["reason"]))
    return None
