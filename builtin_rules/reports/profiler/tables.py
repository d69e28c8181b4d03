"""The tables of the profiler report, ready to render."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from builtin_rules.profiler.statistics.parameters import SECOND_US
from builtin_rules.reports.profiler import findings
from builtin_rules.reports.profiler.report_data import ReportData
from builtin_rules.reports.profiler.sub_rules import SubRule
from builtin_rules.reports.profiler.wording import counted, duration, number, step_name
from builtin_rules.rule_page import rule_summary

SUMMARIES: Final = ("OverallFrameworkMetrics", "OverallSystemUsage")
ROWS: Final = 20  # of a table of operators
NODES: Final = 64  # of a table of nodes
HIGH_PERCENT: Final = 70.0
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
    """One metric of one node: its statistics and a hint, which may be ""."""

    metric: str
    node: str
    numbers: tuple[str, ...]
    hint: str


class ShareRow(NamedTuple):
    """A row of a table of shares: name, percentage and an optional remark."""

    name: str
    percent: float
    more: str = ""


@dataclass(frozen=True, slots=True)
class RuleRow:
    """A row of the table of rules."""

    name: str
    meaning: str
    advice: str
    state: str
    triggered: int
    violations: int
    datapoints: int
    parameters: tuple[str, ...]
    coverage: str


def usage(data: ReportData) -> list[UsageRow]:
    """Return the statistics of the system metrics by metric and node."""
    rows = []
    details = data.details("OverallSystemUsage")
    for name, label in _LABELS.items():
        for node, statistics in sorted(details.get(name, {}).items())[:NODES]:
            if statistics:
                numbers = tuple(number(statistics[statistic]) for statistic in _STATISTICS)
                rows.append(UsageRow(label, node, numbers, _hint(name, statistics, details)))
    return rows


def _hint(name: str, statistics: Mapping[str, float], details: Mapping[str, Any]) -> str:
    """Return what statistics mean, or "" if nothing noteworthy."""
    at_times = "Busy only at times: below 70 % for half of the time."
    has_gpus = any(details.get("GPU", {}).values())
    high, low = {
        "GPU": (
            at_times if statistics["p50"] < HIGH_PERCENT else "",
            "Mostly idle: below 70 % for 95 % of the time.",
        ),
        "GPU memory": ("", "Room for a larger batch."),
        "CPU": ("Busy: GPUs may be waiting for processors.", "")
        if has_gpus
        else ("", "Mostly idle: fewer cores would suffice."),
        "CPU memory": ("Nearly full.", ""),
        "I/O": ("Cores wait for data.", ""),
        "Network": ("", ""),
    }[name]
    return low if statistics["p95"] < HIGH_PERCENT else high


def phases(data: ReportData) -> list[ShareRow]:
    """Return the shares of initialisation, training and finalisation; empty without steps."""
    steps = data.steps
    if steps is None or steps.first_us is None or steps.last_us is None:
        return []
    begin, end = min(data.begin_us, steps.first_us), max(data.end_us, steps.last_us)
    if end <= begin:
        return []
    parts = {
        "initialisation": steps.first_us - begin,
        "training loop": steps.last_us - steps.first_us,
        "finalisation": end - steps.last_us,
    }
    return [
        ShareRow(name, 100 * part / (end - begin), duration(part / SECOND_US))
        for name, part in parts.items()
    ]


def framework(data: ReportData) -> dict[str, list[ShareRow]]:
    """Return the tables of the framework by heading; those without rows are left out."""
    details = data.details("OverallFrameworkMetrics")
    sections = {
        "Steps and time outside of steps": [
            row._replace(name=step_name(row.name)) for row in shares(details.get("phase"))
        ],
        "Forward and backward passes": shares(details.get("forward_backward")),
        "Operators on processors and GPUs": shares(details.get("ratio")),
        **operators(details),
    }
    return {heading: rows for heading, rows in sections.items() if rows}


def operators(details: Mapping[str, Any]) -> dict[str, list[ShareRow]]:
    """Return the tables of operators by heading; those without rows are left out."""
    sections = {
        "Operators on GPUs": shares(details.get("GPU"), details.get("GPU_total")),
        "Operators on processors": shares(details.get("CPU"), details.get("CPU_total")),
        "Other events": shares(details.get("general")),
        "Collectives": shares(details.get("horovod")),
    }
    return {heading: rows for heading, rows in sections.items() if rows}


def shares(
    percents: Mapping[str, float] | None, total_us: Mapping[str, float] | None = None
) -> list[ShareRow]:
    """Return rows of shares, largest first, with the duration of each if known."""
    rows = [
        ShareRow(name, percent, duration(total_us[name] / SECOND_US) if total_us else "")
        for name, percent in (percents or {}).items()
    ]
    omitted = rows[ROWS:]
    if not omitted:
        return rows
    total = ShareRow(f"and {len(omitted)} more", sum(row.percent for row in omitted))
    return [*rows[:ROWS], total]


def step_statistics(details: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each node: kind of step, statistics and number of outliers."""
    for node, statistics in sorted(details.get("step_details", {}).items())[:NODES]:
        numbers = (duration(statistics["step_stats"][name]) for name in ("mean", *_STATISTICS))
        kind = step_name(str(statistics["phase"]))
        yield node, kind, *numbers, f"{statistics['number_of_outliers']:,}"


def boxes(details: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return a row of quartiles and whiskers for each device that has them."""
    names = ("lower", "p25", "p50", "p75", "p95", "upper")
    return [
        (node, device, *(number(box[name]) for name in names))
        for node, devices in sorted(details.items())
        if isinstance(devices, Mapping)
        for device, box in devices.items()
        if isinstance(box, Mapping) and all(name in box for name in names)
    ][: 4 * NODES]


def rules(data: ReportData) -> list[RuleRow]:
    """Return the table of rules, most triggered first, without the two summaries."""
    rows = [_row(row) for row in data.rules if row.name not in SUMMARIES]
    return sorted(rows, key=lambda row: (-row.triggered, row.name.casefold()))


def _row(rule: SubRule) -> RuleRow:
    report = rule.report
    return RuleRow(
        rule.name,
        rule_summary(type(rule.rule)),
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
    """Return how many windows a rule has judged, and why it skipped others."""
    skipped = sorted(rule.skipped.items(), key=lambda item: -item[1])
    reasons = "; ".join(f"{count:,} skipped: {reason}" for reason, count in skipped)
    judged = f"{counted(rule.judged, 'window')} judged"
    return f"{judged}, {reasons}." if reasons else f"{judged}."
