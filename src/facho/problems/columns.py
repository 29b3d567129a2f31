"""Columns of problems in files."""

from datetime import timedelta
from typing import Any

from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

from facho.apps.rest.export import Column, column, columns_of, label_of
from facho.problems.models import Problem


def _name(user: Any) -> str | None:
    return user.get_username() if user is not None else None


PROBLEM_COLUMNS = (
    column("id", "id"),
    column("severity", label_of(Problem, "severity"), said=lambda problem: problem.get_severity_display()),
    column("kind", label_of(Problem, "kind"), said=lambda problem: capfirst(problem.get_kind_display())),
    Column("olt_name", _("OLT"), lambda problem: problem.olt.name if problem.olt else None),
    column("place", _("place")),
    *columns_of(Problem, "since", "until"),
    Column("seconds", _("duration (s)"), lambda problem: timedelta(seconds=round(problem.seconds))),
    *columns_of(Problem, "affected", "peak"),
    column("summary", _("summary")),
    column("cause", label_of(Problem, "cause"), said=lambda problem: problem.cause_text),
    column("confidence", label_of(Problem, "confidence"), said=lambda problem: problem.get_confidence_display()),
    *columns_of(Problem, "acknowledged_at"),
    Column("acknowledged_by", label_of(Problem, "acknowledged_by"), lambda problem: _name(problem.acknowledged_by)),
    Column("assignee", label_of(Problem, "assignee"), lambda problem: _name(problem.assignee)),
    column("last_comment", _("last comment")),
)
