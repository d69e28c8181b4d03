"""The sections of the profiler report on single rules: their findings and remedies."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from markdown_it import MarkdownIt
from markupsafe import Markup

from builtin_rules.reports.profiler import charts, findings, tables
from builtin_rules.reports.profiler.charts import RangePlot
from builtin_rules.reports.profiler.moments import FindingMoment, moment_of
from builtin_rules.reports.profiler.report_data import ReportData
from builtin_rules.reports.profiler.sub_rules import SubRule
from builtin_rules.reports.profiler.wording import counted, number, place
from builtin_rules.rule_page import rule_page, rule_summary

MAX_FINDINGS: Final = 20
MAX_STEP_NUMBERS: Final = 100
_WITH_BOXES: Final = ("BatchSize", "LowGPUUtilization", "GPUMemoryIncrease")
_WITH_OPERATORS: Final = ("CPUBottleneck", "IOBottleneck", "StepOutlier")


@dataclass(frozen=True, slots=True)
class RuleSection:
    """The section of a rule with findings.

    Attributes
    ----------
    findings
        Rows of place, measured value, limit, parameter, windows and note.
    moments
        When each of them was first met; None where that cannot be told.
    more
        The number of findings left out.
    remedy
        The rule's own advice.
    boxes, shares, plots, facts
        Statistics, tables, charts and sentences that the rule adds.
    """

    name: str
    meaning: str
    findings: list[tuple[str, ...]]
    moments: list[FindingMoment | None]
    more: int
    remedy: Markup
    boxes: list[tuple[str, ...]] = field(default_factory=list)
    shares: Mapping[str, list[tables.ShareRow]] = field(default_factory=dict)
    plots: list[RangePlot] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)


def sections(data: ReportData) -> Iterator[RuleSection]:
    """Yield a section for each rule with findings, in the order of the advice."""
    names = [advice.rule for advice in findings.advice(data) if advice.rule]
    for name in names:
        yield _section(data, data.rule(name))


def _section(data: ReportData, rule: SubRule) -> RuleSection:
    details = rule.report["Details"]
    ranked = findings.worst_first(rule)
    summaries = ranked[:MAX_FINDINGS]
    return RuleSection(
        rule.name,
        rule_summary(type(rule.rule)),
        [
            (
                place(summary.tensor, summary.worker),
                number(summary.measured),
                number(summary.limit),
                findings.deciding_parameter(rule, summary),
                f"{summary.windows:,}",
                summary.note,
            )
            for summary in summaries
        ],
        [
            moment_of(data, f"at-{rule.name}-{rank}", summary)
            for rank, summary in enumerate(summaries, start=1)
        ],
        len(ranked) - len(summaries),
        remedy(rule),
        tables.boxes(details) if rule.name in _WITH_BOXES else [],
        tables.operators(details) if rule.name in _WITH_OPERATORS else {},
        list(_plots(rule.name, details)),
        list(_facts(rule.name, details)),
    )


def remedy(rule: SubRule) -> Markup:
    """Return a rule's own advice as HTML."""
    html = MarkdownIt("commonmark", {"html": False}).render(rule_page(type(rule.rule)).remedy)
    return Markup(html)  # noqa: S704 - the text of a rule; HTML in it is escaped


def _plots(name: str, details: Mapping[str, Any]) -> Iterator[RangePlot]:
    plots: list[RangePlot | None] = []
    if name == "LoadBalancing":
        plots = [charts.workloads(node, loads["workloads"]) for node, loads in details.items()]
    if name == "StepOutlier":
        plots = [
            charts.histogram(
                f"Steps of {node}",
                ("seconds a step", "percent of the steps"),
                statistics["binedges"],
                statistics["probs"],
            )
            for node, statistics in details.get("step_details", {}).items()
        ]
    yield from (plot for plot in plots[: charts.STEP_CHARTS] if plot is not None)


def _facts(name: str, details: Mapping[str, Any]) -> Iterator[str]:
    if name == "StepOutlier":
        for node, statistics in details.get("step_details", {}).items():
            numbers = statistics["step_numbers"]
            omitted = len(numbers) - MAX_STEP_NUMBERS
            listed = ", ".join(map(str, numbers[:MAX_STEP_NUMBERS]))
            if numbers:
                more = f" and {omitted} more" if omitted > 0 else ""
                yield f"Slow steps of {node}: {listed}{more}."
    if "low_gpu_utilization" in details:
        low = counted(details["low_gpu_utilization"], "snapshot")
        yield f"In {low} some GPU was below gpu_threshold, regardless of the cores."
