"""Links of problems."""

from django import template
from django.urls import reverse

from facho.problems.models import Problem

register = template.Library()


@register.filter
def problem_url(problem: Problem) -> str:
    """Return the page of the place that a problem is at; empty if it is at none."""
    if problem.onu_id is not None:
        return reverse("dashboard:onu", args=[problem.onu_id])
    if node := problem.evidence.get("node"):
        return reverse("dashboard:node", args=[node])
    if problem.olt_id is None:
        return ""
    if problem.slot is None or problem.port is None:
        return reverse("dashboard:olt", args=[problem.olt_id])
    return reverse("dashboard:port", args=[problem.olt_id, problem.slot, problem.port])
