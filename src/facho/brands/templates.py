"""Jobs that every maker's OLTs can live with. What depends on how slow a maker is stands with the maker."""

from datetime import timedelta

from facho.engine.brand import JobTemplate
from facho.engine.model import JobKind

DISCOVERY = JobTemplate("Discovery", JobKind.DISCOVERY, timedelta(minutes=15), priority=90)

STATE = JobTemplate(
    "State",
    JobKind.TABLE,
    timedelta(minutes=5),
    ("state", "admin_state", "down_cause", "distance_m", "last_up", "last_down"),
    priority=60,
)
