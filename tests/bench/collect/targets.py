"""What Facho is to reach beside the others, and whether it did."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from cases import Row

FACHO = "facho"
WALK = "snmpbulkwalk"
EXPORTER = "snmp_exporter"

TIMES_FASTER = 8.0
CPU_AIM = 1 / 3
AGENT_SHARE = 0.40

NOTHING_BESIDE = "there is nothing to compare with"


@dataclass(frozen=True)
class Verdict:
    """One target; `is_met` None where it could not be measured."""

    target: str
    is_met: bool | None
    detail: str

    @property
    def word(self) -> str:
        return "NOT MEASURED" if self.is_met is None else "OK" if self.is_met else "MISSED"


def verdicts(rows: Sequence[Row]) -> list[Verdict]:
    """Return every target with what became of it."""
    return [_never_slower(rows), _much_faster(rows), _cheaper(rows), *_easier_on_the_olt(rows)]


def beside(rows: Iterable[Row], row: Row, client: str) -> Row | None:
    """Return what another collector took in the same case."""
    return next((other for other in rows if other.case == row.case and other.client == client), None)


def _pairs(rows: Sequence[Row], window: str, other: str) -> Iterator[tuple[Row, Row]]:
    for row in rows:
        against = beside(rows, row, other)
        if row.client.startswith(FACHO) and row.client.endswith(window) and against is not None:
            yield row, against


def _never_slower(rows: Sequence[Row]) -> Verdict:
    target = "never slower than snmpbulkwalk, window 1"
    ratios = {row.case: walk.wall / row.wall for row, walk in _pairs(rows, "window 1", WALK)}
    return _at_least(target, ratios, 1.0, "{:.2f} times as fast")


def _much_faster(rows: Sequence[Row]) -> Verdict:
    target = f"{TIMES_FASTER:g} times as fast as snmpbulkwalk at 10 ms, window 8"
    pairs = [pair for pair in _pairs(rows, "window 8", WALK) if pair[0].latency_ms == 10]
    return _at_least(target, {row.case: walk.wall / row.wall for row, walk in pairs}, TIMES_FASTER, "{:.1f} times")


def _at_least(target: str, ratios: dict[str, float], least: float, words: str) -> Verdict:
    if not ratios:
        return Verdict(target, None, NOTHING_BESIDE)
    worst = min(ratios, key=lambda case: ratios[case])
    reached = sum(ratio >= least for ratio in ratios.values())
    detail = f"{words.format(ratios[worst])} in the worst case, {worst}; reached in {reached} of {len(ratios)}"
    return Verdict(target, ratios[worst] >= least, detail)


def _cheaper(rows: Sequence[Row]) -> Verdict:
    target = "CPU a value at most that of snmp_exporter (aim: a third)"
    shares = {
        f"{row.case}, {row.client.partition(', ')[2]}": row.cpu_per_value / other.cpu_per_value
        for row, other in _pairs(rows, "", EXPORTER)
    }
    if not shares:
        return Verdict(target, None, NOTHING_BESIDE)
    worst, best = max(shares, key=lambda case: shares[case]), min(shares.values())
    aim = "aim reached" if shares[worst] <= CPU_AIM else "aim not reached"
    return Verdict(target, shares[worst] <= 1, f"{best:.0%} to {shares[worst]:.0%}, worst at {worst}; {aim}")


def _easier_on_the_olt(rows: Sequence[Row]) -> Iterator[Verdict]:
    """Give a verdict for each serial OLT: the more optical columns, the more is gained by asking for them together."""
    found = [(row, walk) for row, walk in _pairs(rows, "window 1", WALK) if row.agent_seconds and walk.agent_seconds]
    target = f"at most {AGENT_SHARE:.0%} of the agent time of column-by-column walks"
    if not found:
        yield Verdict(target, None, NOTHING_BESIDE)
    for row, walk in found:
        share = (row.agent_seconds or 0) / (walk.agent_seconds or 1)
        yield Verdict(f"{target}: {row.case}", share <= AGENT_SHARE, f"{share:.0%}")
