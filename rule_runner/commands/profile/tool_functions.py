"""The functions of profiles that other tools wrote, as tables."""

from collections.abc import Iterator
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Final

from rule_core.profiler.python_profiles.other_tools import SCALENE, ToolProfile, read_tool_profiles
from rule_core.storage.base import TrialStore
from rule_runner.commands.profile.trials import reading
from rule_runner.errors import UsageError, counted
from rule_runner.escape import printable
from rule_runner.report.tables import Row, TextTable, print_tables

if TYPE_CHECKING:
    from rule_core.profiler.python_profiles.other_tools import FunctionAmounts, ToolProfiles
    from rule_core.profiler.python_profiles.scalene import ScaleneUse

PROBLEMS: Final = 20
THREADS: Final = 10
OWN, WHOLE, MEMORY = "tottime", "cumtime", "memory"
# By what rows are sorted: the position in a row of amounts, and the attribute of a use.
_AMOUNT: Final = {OWN: 1, WHOLE: 2}
_USE: Final = {OWN: "time_s", WHOLE: "time_s", MEMORY: "peak_mb"}


def print_tool_functions(
    store: TrialStore, profiles: list[ToolProfile], *, sort: str, count: int, lines: bool
) -> None:
    """Print the functions, or lines, that took most.

    Raises
    ------
    UsageError
        If the profiles do not have the numbers to sort by.
    TrialError
        If no profile can be read.
    """
    keys = [*(_USE if all(profile.tool == SCALENE for profile in profiles) else _AMOUNT)]
    if sort not in keys:
        names = ", ".join(keys)
        raise UsageError(
            f"Profiles of {profiles[0].tool} are sorted by one of {names}, got {sort!r}."
        )
    with reading():
        sums = read_tool_profiles(store, profiles, lines=lines)
    what = "lines" if lines else "functions"
    tables = [_amounts(amounts, sort, count, what) for amounts in sums.amounts]
    if any(profile.tool == SCALENE for profile in sums.read):
        tables.append(_uses(sums.uses, sort, count, what))
    print_tables(_head(sums, what), tables)


def _head(sums: "ToolProfiles", what: str) -> Iterator[str]:
    tools = sorted({profile.tool for profile in sums.read})
    yield f"profiles: {counted(len(sums.read), 'file')} of {' and '.join(tools)}"
    if sums.threads:
        names = [printable(name) or "unnamed" for name in sums.threads[:THREADS]]
        more = f" and {len(sums.threads) - THREADS} more" if len(sums.threads) > THREADS else ""
        yield f"threads: {len(sums.threads)} ({', '.join(names)}{more})"
    for amounts in sums.amounts:
        if amounts.unit == "s":
            yield f"time: {amounts.total:.4g} s in {len(amounts.rows):,} {what}"
    if sums.elapsed_s:
        yield f"elapsed: {sums.elapsed_s:.4g} s under scalene"
    if sums.peak_mb:
        yield f"memory: {sums.peak_mb:.4g} MB at most"
    for key, problem in [*sums.problems.items()][:PROBLEMS]:
        yield f"skipped: {printable(problem) if key in problem else printable(f'{key}: {problem}')}"


def _amounts(amounts: "FunctionAmounts", sort: str, count: int, what: str) -> TextTable:
    ordered = sorted(amounts.rows, key=itemgetter(_AMOUNT[sort]), reverse=True)
    form = "{:.6f}" if amounts.unit == "s" else "{:,.0f}"
    rows: list[Row] = [
        (form.format(own), form.format(whole), printable(place))
        for place, own, whole in ordered[:count]
    ]
    headings = {"s": (OWN, WHOLE), "bytes": ("own bytes", "all bytes")}
    own, whole = headings.get(amounts.unit, ("own", "all"))
    return TextTable((own, whole, what.removesuffix("s")), rows, what)


def _uses(uses: "list[ScaleneUse]", sort: str, count: int, what: str) -> TextTable:
    ordered = sorted(uses, key=attrgetter(_USE[sort]), reverse=True)
    rows: list[Row] = [
        (
            f"{use.time_s:.3f}",
            f"{use.python_s:.3f}",
            f"{use.native_s:.3f}",
            f"{use.system_s:.3f}",
            f"{use.gpu_s:.3f}",
            f"{use.peak_mb:,.1f}",
            f"{use.allocated_mb:,.1f}",
            printable(use.place),
        )
        for use in ordered[:count]
    ]
    headings = ("time", "python", "native", "system", "gpu", "peak MB", "allocated MB")
    return TextTable((*headings, what.removesuffix("s")), rows, what)
