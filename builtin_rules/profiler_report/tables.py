"""The tables of the profiler report, ready for its page: every cell is text or a share."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from builtin_rules.profiler_report import findings
from builtin_rules.profiler_report.gathered import Gathered
from builtin_rules.profiler_report.sub_rules import SubRule
from builtin_rules.profiler_report.wording import (
    SECOND_US,
    counted,
    duration,
    meaning,
    number,
    step_name,
)

SUMMARIES: Final = ("OverallFrameworkMetrics", "OverallSystemUsage")
ROWS: Final = 20  # of a table of operators
NODES: Final = 64  # of a table of nodes
MARK: Final = 70.0  # percent
_STATISTICS: Final = ("min", "p50", "p95", "p99", "max")
_LABELS: Final = {
    "CPU": "Processors (%)",
    "CPU memory": "Memory (%)",
    "GPU": "GPUs (%)",
    "GPU memory": "GPU memory (%)",
    "I/O": "I/O wait (%)",
    "Network": "Network (bytes/s)",
}


class UsageRow(NamedTuple):
    """One metric of one node: its statistics, and what they mean; "" if nothing."""

    metric: str
    node: str
    numbers: tuple[str, ...]
    hint: str


class Share(NamedTuple):
    """A row of a table of shares: name, percent, and what else is said of it."""

    name: str
    percent: float
    more: str = ""


@dataclass(frozen=True, slots=True)
class RuleRow:
    """What the table of rules says of one."""

    name: str
    meaning: str
    advice: str
    state: str
    triggered: int
    violations: int
    datapoints: int
    parameters: tuple[str, ...]
    coverage: str


def usage(gathered: Gathered) -> list[UsageRow]:
    """Return the statistics of the system metrics by metric and node."""
    found = []
    details = gathered.details("OverallSystemUsage")
    for name, label in _LABELS.items():
        for node, one in sorted(details.get(name, {}).items())[:NODES]:
            if one:
                numbers = tuple(number(one[statistic]) for statistic in _STATISTICS)
                found.append(UsageRow(label, node, numbers, _hint(name, one, details)))
    return found


def _hint(name: str, one: Mapping[str, float], details: Mapping[str, Any]) -> str:
    """Return what statistics mean, by the mark at 70 %."""
    busy, usual = one["p95"], one["p50"]
    if name == "GPU" and busy < MARK:
        return "Little used: below 70 % for 95 % of the time."
    if name == "GPU":
        return "Busy at times only: below 70 % for half of the time." if usual < MARK else ""
    if name == "GPU memory":
        return "Room for a larger batch." if busy < MARK else ""
    if name == "CPU":
        return _hint_of_cores(busy=busy >= MARK, has_gpus=any(details.get("GPU", {}).values()))
    if busy < MARK or name == "Network":
        return ""
    return {"CPU memory": "Nearly full.", "I/O": "Cores wait for data."}[name]


def _hint_of_cores(*, busy: bool, has_gpus: bool) -> str:
    if has_gpus:
        return "Busy: where GPUs wait, it may be for this." if busy else ""
    return "" if busy else "Little used: fewer cores would do."


def phases(gathered: Gathered) -> list[Share]:
    """Return how the job divides into start, steps and end; empty without steps."""
    steps = gathered.steps
    whole = gathered.end_us - gathered.begin_us
    if steps is None or steps.first_us is None or steps.last_us is None or whole <= 0:
        return []
    parts = {
        "initialisation": steps.first_us - gathered.begin_us,
        "training loop": steps.last_us - steps.first_us,
        "finalisation": gathered.end_us - steps.last_us,
    }
    return [
        Share(name, 100 * max(0, part) / whole, duration(max(0, part) / SECOND_US))
        for name, part in parts.items()
    ]


def framework(gathered: Gathered) -> dict[str, list[Share]]:
    """Return the tables of the framework by heading; those without rows are left out."""
    details = gathered.details("OverallFrameworkMetrics")
    found = {
        "Steps and the time outside of them": [
            one._replace(name=step_name(one.name)) for one in shares(details.get("phase"))
        ],
        "Forward and backward passes": shares(details.get("forward_backward")),
        "Operators on processors and on GPUs": shares(details.get("ratio")),
        **operators(details),
    }
    return {heading: rows for heading, rows in found.items() if rows}


def operators(details: Mapping[str, Any]) -> dict[str, list[Share]]:
    """Return the tables of operators by heading; those without rows are left out."""
    found = {
        "Operators on GPUs": shares(details.get("GPU"), details.get("GPU_total")),
        "Operators on processors": shares(details.get("CPU"), details.get("CPU_total")),
        "Other events": shares(details.get("general")),
        "Collectives": shares(details.get("horovod")),
    }
    return {heading: rows for heading, rows in found.items() if rows}


def shares(
    percents: Mapping[str, float] | None, total_us: Mapping[str, float] | None = None
) -> list[Share]:
    """Return rows of shares, the largest first, with the time of each if it is known."""
    rows = [
        Share(name, percent, duration(total_us[name] / SECOND_US) if total_us else "")
        for name, percent in (percents or {}).items()
    ]
    more = len(rows) - ROWS
    if more <= 0:
        return rows
    rest = Share(f"and {more} more", sum(one.percent for one in rows[ROWS:]))
    return [*rows[:ROWS], rest]


def step_statistics(details: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each node: kind of step, statistics, and how many are outliers."""
    for node, one in sorted(details.get("step_details", {}).items())[:NODES]:
        numbers = (duration(one["step_stats"][name]) for name in ("mean", *_STATISTICS))
        kind = step_name(str(one["phase"]))
        yield node, kind, *numbers, f"{one['number_of_outliers']:,}"


def boxes(details: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return a row of quartiles and whiskers for each device of each node that has them."""
    names = ("lower", "p25", "p50", "p75", "p95", "upper")
    return [
        (node, device, *(number(one[name]) for name in names))
        for node, devices in sorted(details.items())
        if isinstance(devices, Mapping)
        for device, one in devices.items()
        if isinstance(one, Mapping) and all(name in one for name in names)
    ][: 4 * NODES]


def rules(gathered: Gathered) -> list[RuleRow]:
    """Return the table of rules without the two that sum up, the most triggered first."""
    found = [_row(one) for one in gathered.rules if one.name not in SUMMARIES]
    return sorted(found, key=lambda one: (-one.triggered, one.name.casefold()))


def _row(rule: SubRule) -> RuleRow:
    report = rule.report
    return RuleRow(
        rule.name,
        meaning(type(rule.rule)),
        findings.todo(rule) if rule.triggered else "",
        state(rule),
        report["RuleTriggered"],
        report["Violations"],
        report["Datapoints"],
        tuple(report["RuleParameters"].splitlines()),
        coverage(rule),
    )


def state(rule: SubRule) -> str:
    """Return ``failed``, ``found``, ``not judged`` or ``nothing``."""
    if rule.failure:
        return "failed"
    if rule.triggered:
        return "found"
    return "nothing" if rule.judged else "not judged"


def coverage(rule: SubRule) -> str:
    """Return how many windows a rule has judged, and why it has not judged others."""
    skipped = sorted(rule.skipped.items(), key=lambda one: -one[1])
    reasons = "; ".join(f"{count:,} not: {reason}" for reason, count in skipped)
    judged = f"{counted(rule.judged, 'window')} judged"
    return f"{judged}, {reasons}." if reasons else f"{judged}."
