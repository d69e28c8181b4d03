"""The sections of the profiler report on single rules: what each found, and what to do about it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from markdown_it import MarkdownIt
from markupsafe import Markup

from builtin_rules.profiler_report import charts, findings, tables
from builtin_rules.profiler_report.charts import Picture
from builtin_rules.profiler_report.gathered import Gathered
from builtin_rules.profiler_report.sub_rules import SubRule
from builtin_rules.profiler_report.wording import counted, meaning, number, place

HITS: Final = 20
NUMBERS: Final = 100  # of steps
_WITH_BOXES: Final = ("BatchSize", "LowGPUUtilization", "GPUMemoryIncrease")
_WITH_OPERATORS: Final = ("CPUBottleneck", "IOBottleneck", "StepOutlier")


@dataclass(frozen=True, slots=True)
class Section:
    """What is shown of a rule that found something.

    Attributes
    ----------
    hits
        Where it was met: place, measured, limit, parameter, windows, note.
    more
        How many further places there are.
    remedy
        The rule's own advice.
    boxes, shares, pictures, facts
        What else belongs to it.
    """

    name: str
    meaning: str
    hits: list[tuple[str, ...]]
    more: int
    remedy: Markup
    boxes: list[tuple[str, ...]] = field(default_factory=list)
    shares: Mapping[str, list[tables.Share]] = field(default_factory=dict)
    pictures: list[Picture] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)


def sections(gathered: Gathered) -> Iterator[Section]:
    """Yield a section for each rule that found something, in the order of the advice."""
    names = [one.rule for one in findings.advice(gathered) if one.rule]
    for name in names:
        yield _section(gathered.rule(name))


def _section(rule: SubRule) -> Section:
    details = rule.report["Details"]
    hits = findings.worst_first(rule)
    return Section(
        rule.name,
        meaning(type(rule.rule)),
        [
            (
                place(one.tensor, one.worker),
                number(one.measured),
                number(one.limit),
                findings.decides(rule, one),
                f"{one.windows:,}",
                one.note,
            )
            for one in hits[:HITS]
        ],
        max(0, len(hits) - HITS),
        remedy(rule),
        tables.boxes(details) if rule.name in _WITH_BOXES else [],
        tables.operators(details) if rule.name in _WITH_OPERATORS else {},
        list(_pictures(rule.name, details)),
        list(_facts(rule.name, details)),
    )


def remedy(rule: SubRule) -> Markup:
    """Return a rule's own advice as HTML."""
    page = rule.rule.PAGE
    html = MarkdownIt("commonmark", {"html": False}).render(page.remedy if page else "")
    return Markup(html)  # noqa: S704 - a rule's own text, and HTML in it is escaped


def _pictures(name: str, details: Mapping[str, Any]) -> Iterator[Picture]:
    found: list[Picture | None] = []
    if name == "LoadBalancing":
        found = [charts.workloads(node, one["workloads"]) for node, one in details.items()]
    if name == "StepOutlier":
        found = [
            charts.histogram(
                f"Steps of {node}",
                ("seconds a step", "percent of the steps"),
                one["binedges"],
                one["probs"],
            )
            for node, one in details.get("step_details", {}).items()
        ]
    yield from (one for one in found[: charts.STEP_CHARTS] if one is not None)


def _facts(name: str, details: Mapping[str, Any]) -> Iterator[str]:
    if name == "StepOutlier":
        for node, one in details.get("step_details", {}).items():
            numbers = one["step_numbers"]
            more = f" and {len(numbers) - NUMBERS} more" if len(numbers) > NUMBERS else ""
            shown = ", ".join(map(str, numbers[:NUMBERS]))
            if numbers:
                yield f"Slow steps of {node}: {shown}{more}."
    if "low_gpu_utilization" in details:
        low = counted(details["low_gpu_utilization"], "snapshot")
        yield f"In {low} some GPU was used less than gpu_threshold, whatever the cores did."
