"""A question to a forecast and its answer, as the engine stores them."""

from typing import Any

QUESTION: dict[str, Any] = {
    "question": {
        "more_olts": 20,
        "more_pollers": -1,
        "interval": {"job": 1, "name": "State", "seconds": 120, "olts": [1, 2]},
    },
    "seed": 1,
}

FIGURES: dict[str, Any] = {
    "olts": 5,
    "dead": 1,
    "pollers": 10,
    "hours": 24,
    "compliance": 99.9,
    "completed": 1438,
    "required": 1440,
    "on_time": 98.4,
    "lateness": {"p50": 0.0, "p95": 1.5, "p99": 4.0, "max": 9.0},
    "busy": 12.3,
    "saturated": 0.0,
    "missed_quotas": 1,
    "jobs": [{"task": "State", "required": 1440, "completed": 1438, "compliance": 99.9, "on_time": 98.4}],
    "lost": {"olt_busy": 1},
    "failures": [{"olt": "OLT-SUR-03", "runs": 10, "answered": 8, "failed": 1}],
    "pool": {"pollers": 4, "on_time": 99.0, "reachable": 99.5},
}

ANSWER: dict[str, Any] = {
    **FIGURES,
    "olts": 25,
    "pollers": 9,
    "on_time": 71.0,
    "busy": 88.0,
    "saturated": 61.0,
    "missed_quotas": 5,
    "took_seconds": 12.3,
    "today": FIGURES,
    "answer": {
        "fits": False,
        "reasons": ["quotas", "saturated", "late"],
        "missed": [
            {"node_id": number, "olt": f"OLT-{number}", "job": "State", "percent": 55.0} for number in range(1, 5)
        ],
        "missed_total": 4,
        "pool_is_automatic": False,
        "changes": {
            "pollers": 14,
            "interval_seconds": 180,
            "more_olts": 7,
            "advice": [{"olt": "OLT-1", "job": "State", "interval_seconds": 600}],
        },
        "unmeasured": 2,
    },
}

YES: dict[str, Any] = {
    **FIGURES,
    "took_seconds": 3.0,
    "today": {**FIGURES, "missed_quotas": 0, "dead": 0},
    "answer": {
        "fits": True,
        "reasons": [],
        "missed": [],
        "missed_total": 0,
        "pool_is_automatic": False,
        "changes": {"pollers": None, "interval_seconds": None, "more_olts": None, "advice": []},
        "unmeasured": 0,
    },
}
