"""A VictoriaMetrics of our own, which keeps its data over a kill. What it holds is gone when it ends."""

import http.client
import json
import shutil
import signal
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

from server_process import Launched, NoServerError

Labels = tuple[tuple[str, str], ...]

# Test data may be from any time, and it silently drops what is older than this.
RETENTION = "100y"


class LaunchedVictoria(Launched):
    """VictoriaMetrics on loopback, with the setting that the documentation recommends."""

    name = "VictoriaMetrics"
    stop_signal = signal.SIGTERM

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/api/v1/write"

    def prepare(self) -> None:
        installed = victoria()
        if installed is None:
            raise NoServerError("there is no VictoriaMetrics. Install it: apt-get install victoria-metrics")
        self._binary = installed

    def command(self) -> list[str]:
        return [
            self._binary,
            f"-httpListenAddr=127.0.0.1:{self.port}",
            f"-storageDataPath={self.folder / 'data'}",
            f"-retentionPeriod={RETENTION}",
            "-dedup.minScrapeInterval=1ms",
            "-memory.allowedBytes=256MB",
            # Otherwise the last 30 s are not in the results of queries.
            "-search.latencyOffset=0s",
        ]

    def ask(self) -> None:
        self.get("/health")

    def samples(self, match: str = '{__name__=~"facho_.+"}') -> dict[Labels, list[tuple[int, float]]]:
        """Return time in milliseconds and value of each sample, by the labels of its series."""
        # Accepted samples can be searched after a second.
        self.get("/internal/force_flush")
        lines = self.get("/api/v1/export", **{"match[]": match, "reduce_mem_usage": "0"}).splitlines()
        return {
            tuple(sorted(row["metric"].items())): list(zip(row["timestamps"], row["values"], strict=True))
            for row in _rows(lines)
        }

    def query(self, expression: str) -> Any:
        return json.loads(self.get("/api/v1/query", query=expression))["data"]["result"]

    def get(self, path: str, **query: str) -> str:
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            line.request("GET", f"{path}?{urlencode(query)}" if query else path)
            answer = line.getresponse()
            text = answer.read().decode()
        except http.client.HTTPException as error:
            raise OSError(str(error)) from error
        finally:
            line.close()
        if answer.status not in (200, 204):
            raise OSError(f"HTTP {answer.status}: {text}")
        return text


def _rows(lines: list[str]) -> Iterator[dict[str, Any]]:
    for text in lines:
        yield json.loads(text)


def victoria() -> str | None:
    return shutil.which("victoria-metrics") or shutil.which("victoria-metrics-prod")
