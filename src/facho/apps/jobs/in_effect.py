"""What holds for a node: a setting of its own, or else its job's. The same rule as expressions of queries.

`through` leads to the node from the table that is asked: "node__" from executions, nothing from the nodes themselves.
"""

from django.db.models.functions import Coalesce


def enabled(through: str = "") -> Coalesce:
    return Coalesce(f"{through}own_enabled", f"{through}job__enabled")


def interval_seconds(through: str = "") -> Coalesce:
    return Coalesce(f"{through}own_interval_seconds", f"{through}job__interval_seconds")


def priority(through: str = "") -> Coalesce:
    return Coalesce(f"{through}own_priority", f"{through}job__priority")
