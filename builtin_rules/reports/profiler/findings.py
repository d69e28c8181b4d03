"""The advice of the profiler report, in plain sentences, most important first."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from builtin_rules.profiler.statistics.parameters import MINUTE_US
from builtin_rules.reports.profiler.report_data import ReportData
from builtin_rules.reports.profiler.sub_rules import FindingSummary, SubRule
from builtin_rules.reports.profiler.wording import counted, number, place
from builtin_rules.rule_page import finding_texts
from smdebug.rules.extensions import Finding

OTHERS_PERCENT: Final = 25.0
UNEVEN_PERCENT: Final = 70.0
_REDUNDANT_NOTES: Final = ("LowGPUUtilization",)
_SYMPTOMS: Final = ("LowGPUUtilization", "BatchSize")


@dataclass(frozen=True, slots=True)
class Advice:
    """One piece of advice.

    Attributes
    ----------
    todo
        What to do.
    why
        The finding, with its numbers.
    rule
        The rule with the finding; "" if no rule has it.
    parameter
        The deciding parameter, by its name in the report; "" if there is none.
    """

    todo: str
    why: str
    rule: str = ""
    parameter: str = ""


def advice(data: ReportData) -> list[Advice]:
    """Return all advice, most important first.

    Causes come before symptoms. Among each, rules are ordered by the share of judged windows, or
    of the job's duration, that their findings cover. Advice that no rule gives comes last.
    """
    rules = [rule for rule in data.rules if rule.findings]
    rules.sort(key=lambda rule: (rule.name in _SYMPTOMS, -_weight(data, rule)))
    return [*map(_of_rule, rules), *_of_framework(data)]


def _weight(data: ReportData, rule: SubRule) -> float:
    """Return the share of the job that the findings of a rule cover, from 0 to 1."""
    if rule.name == "MaxInitializationTime":  # one finding, however long it lasted
        summary = next(iter(rule.findings.values()))
        return summary.measured * MINUTE_US / max(1, data.end_us - data.begin_us)
    return rule.met / max(1, rule.judged)


def _of_rule(rule: SubRule) -> Advice:
    worst, *rest = worst_first(rule)
    also = f" The same applies to {counted(len(rest), 'other place')}." if rest else ""
    parameter = deciding_parameter(rule, worst)
    return Advice(
        todo(rule), f"{sentence(rule, worst)}{also}", rule.name, f"{rule.name}_{parameter}"
    )


def todo(rule: SubRule) -> str:
    """Return one sentence on what to do about the findings of a rule."""
    return finding_texts(rule.name).remedy


def worst_first(rule: SubRule) -> list[FindingSummary]:
    """Return the findings of a rule, those met in most windows first."""
    return sorted(rule.findings.values(), key=lambda summary: (-summary.windows, -summary.step))


def deciding_parameter(rule: SubRule, summary: FindingSummary) -> str:
    """Return the parameter whose value is the limit of a finding."""
    return finding_texts(rule.name).limited_by[summary.quantity]


def sentence(rule: SubRule, summary: FindingSummary) -> str:
    """Return a finding with its numbers."""
    finding = Finding(
        summary.step,
        worker=summary.worker,
        measured=summary.measured,
        limit=summary.limit,
        quantity=summary.quantity,
    )
    where = place(summary.tensor, summary.worker)
    text = finding_texts(rule.name).explain(finding, where, f"window {summary.step}").summary
    note = f" {summary.note}" if summary.note and rule.name not in _REDUNDANT_NOTES else ""
    return f"{text}{note} Met in {summary.windows} of {counted(rule.judged, 'judged window')}."


def _of_framework(data: ReportData) -> Iterator[Advice]:
    """Yield advice from the framework metrics, which no rule judges."""
    details = data.details("OverallFrameworkMetrics")
    outside = details.get("phase", {}).get("others", 0.0)
    if outside > OTHERS_PERCENT:
        yield Advice(
            "Check what the job does between steps.",
            f"{number(outside)} % of the time is outside of steps: startup, checkpoints, data.",
        )
    uneven = _uneven(details.get("forward_backward", {}))
    if uneven:
        yield uneven


def _uneven(passes: Mapping[str, Any]) -> Advice | None:
    name, share = max(passes.items(), key=lambda item: float(item[1]), default=("", 0.0))
    if len(passes) == 1 or share <= UNEVEN_PERCENT:
        return None
    direction = "forward" if name.lower().startswith("forward") else "backward"
    return Advice(
        f"Find out why the {direction} passes take so much longer than the others.",
        f"They take {number(share)} % of the time of both; a third forward and two thirds backward "
        "is typical.",
    )
