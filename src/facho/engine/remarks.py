"""Remarks about columns and OIDs without values for several runs in a row.

Such a job succeeds in every run, so neither its quota nor an alert shows that it reads nothing.
"""

from collections.abc import Mapping

# One empty run can have many reasons; several in a row need attention.
REMARK_AFTER = 3


def count_blank_runs(before: Mapping[str, int], had_values: Mapping[str, bool | None]) -> dict[str, int]:
    """Return for each column the number of consecutive runs without a value. Columns with a value are left out.

    `had_values` is `Outcome.had_values`. A run that cannot tell (None) leaves the count unchanged. A column that the
    job no longer reads is dropped.
    """
    if not had_values:
        return dict(before)
    counts = {name: before.get(name, 0) + (had is False) for name, had in had_values.items() if had is not True}
    return {name: count for name, count in counts.items() if count}


def blank_columns(blank_runs: Mapping[str, int]) -> dict[str, int]:
    """Return the columns that get a remark, with the number of runs without a value."""
    return {name: runs for name, runs in blank_runs.items() if runs >= REMARK_AFTER}
