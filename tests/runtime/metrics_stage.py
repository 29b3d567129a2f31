"""A registry of its own for each test, and what it says."""

from prometheus_client import CollectorRegistry

from facho.runtime.metrics import Meters

SNAPSHOT = {
    "at": "2026-03-01T10:00:00+00:00",
    "pollers": [{"id": 1, "worker": "noc-1"}, {"id": 2, "worker": "noc-1"}, {"id": 3, "worker": "noc-2"}],
    "stats": {
        "total_pollers": 3,
        "free_pollers": 1,
        "busy_pollers": 2,
        "busy_percentage": 62.5,
        "is_saturated": True,
        "queue_size": 7,
        "delayed": 4,
    },
}


class Counts:
    """Everything that a process which polls counts, and nothing of any other test."""

    def __init__(self):
        self.registry = CollectorRegistry()
        self.meters = Meters(self.registry)

    def of(self, name, **labels):
        """Return the value of one series."""
        return self.registry.get_sample_value(name, labels)

    def split(self, name):
        """Return the series of a metric that are not zero, by the values of their labels."""
        return {
            tuple(sample.labels.values()): sample.value
            for metric in self.registry.collect()
            for sample in metric.samples
            if sample.name == name and sample.value
        }
