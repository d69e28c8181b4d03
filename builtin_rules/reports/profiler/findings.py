"""The advice of the profiler report, in plain sentences, most important first."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from builtin_rules.profiler import (
    batch_size,
    bottleneck,
    dataloader,
    gpu_memory_increase,
    load_balancing,
    low_gpu_utilization,
    max_initialization_time,
    step_outlier,
)
from builtin_rules.profiler.statistics.parameters import MINUTE_US
from builtin_rules.profiler.traces import (
    collective_not_joined,
    gpu_idle_waits_for_host,
    low_overlap,
    memory_grows,
    small_kernels,
    straggler_rank,
)
from builtin_rules.reports.profiler.report_data import ReportData
from builtin_rules.reports.profiler.sub_rules import FindingSummary, SubRule
from builtin_rules.reports.profiler.wording import counted, number, place

OTHERS_PERCENT: Final = 25.0
UNEVEN_PERCENT: Final = 70.0
# By rule: what to do about its findings, and the parameter that decides; causes before symptoms.
_ADVICE: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "CollectiveNotJoined": ("Find out what the rank did in place of collectives.", "behind"),
        "IOBottleneck": ("Read data faster: GPUs wait for I/O.", "threshold"),
        "CPUBottleneck": ("Reduce the load of the processors: GPUs wait for them.", "threshold"),
        "Dataloader": ("Match the number of loader processes to the cores.", "min_threshold"),
        "LoadBalancing": ("Distribute the work evenly over the GPUs.", "threshold"),
        "MaxInitializationTime": ("Shorten the startup of the job.", "threshold"),
        "GPUMemoryIncrease": ("Find out why GPU memory grows before it is full.", "increase"),
        "MemoryGrows": ("Find out which tensors each step keeps.", "increase"),
        "GPUIdleWaitsForHost": ("Launch kernels earlier: GPUs wait for the process.", "threshold"),
        "SmallKernels": ("Compute in fewer, larger kernels.", "share"),
        "StragglerRank": ("Find out why one rank is slower than the others.", "threshold"),
        "LowOverlap": ("Hide the communication behind the computation.", "threshold"),
        "StepOutlier": ("Find out what slow steps wait for.", "n_outliers"),
        "LowGPUUtilization": ("Keep the GPUs busy.", "threshold_p95"),
        "BatchSize": ("Try a larger batch size or a smaller machine.", "gpu_threshold_p95"),
    }
)
_REDUNDANT_NOTES: Final = ("LowGPUUtilization",)
_SYMPTOMS: Final = ("LowGPUUtilization", "BatchSize")
# Quantities with a deciding parameter other than the usual one of their rule.
_PARAMETERS: Final = MappingProxyType(
    {
        ("Dataloader", dataloader.MANY): "max_threshold",
        ("LowGPUUtilization", low_gpu_utilization.LOW): "threshold_p5",
    }
)
# What a finding means, by rule and quantity; `where` is a device of a node.
_SENTENCES: Final = MappingProxyType(
    {
        ("CollectiveNotJoined", collective_not_joined.BEHIND): (
            "{worker} did not join {measured} collectives that other ranks joined (limit: {limit})."
        ),
        ("CollectiveNotJoined", collective_not_joined.MISMATCHED): (
            "{measured} collectives of {worker} differ from those of the other ranks."
        ),
        ("CollectiveNotJoined", collective_not_joined.NO_DUMP): (
            "The dump of {worker} is missing."
        ),
        ("IOBottleneck", bottleneck.SHARE): (
            "A GPU of {worker} waits for data in {measured} % of the snapshots (limit: {limit} %)."
        ),
        ("CPUBottleneck", bottleneck.SHARE): (
            "A GPU of {worker} waits for processors in {measured} % of the snapshots (limit:"
            " {limit} %)."
        ),
        ("Dataloader", dataloader.FEW): (
            "{worker} has loader processes for {measured} % of its cores; below {limit} % there is"
            " room for more."
        ),
        ("Dataloader", dataloader.MANY): (
            "{worker} has loader processes for {measured} % of its cores; above {limit} % they"
            " compete for cores."
        ),
        ("LoadBalancing", load_balancing.DISTANCE): (
            "{where} are loaded unevenly: the distance between them is {measured} (limit: {limit})."
        ),
        ("MaxInitializationTime", max_initialization_time.MINUTES): (
            "There was no step for {measured} minutes (limit: {limit} minutes)."
        ),
        ("GPUMemoryIncrease", gpu_memory_increase.RISE): (
            "The memory in use on {where} rose by {measured} points at once (limit: {limit})."
        ),
        ("MemoryGrows", memory_grows.GROWTH): (
            "The memory that {where} has in use at least rose by {measured} % from step to step"
            " (limit: {limit} %)."
        ),
        ("GPUIdleWaitsForHost", gpu_idle_waits_for_host.HOST_WAIT): (
            "{where} waits for the process to launch kernels in {measured} % of the time (limit:"
            " {limit} %)."
        ),
        ("SmallKernels", small_kernels.SMALL): (
            "{measured} % of the kernels of {where} are too short to keep it busy (limit:"
            " {limit} %)."
        ),
        ("StragglerRank", straggler_rank.AWAITED): (
            "The other ranks wait for {worker} in {measured} % of the time (limit: {limit} %)."
        ),
        ("LowOverlap", low_overlap.OVERLAP): (
            "Computation hides {measured} % of the communication of {where} (minimum: {limit} %)."
        ),
        ("StepOutlier", step_outlier.OUTLIERS): (
            "{measured} steps of {where} take much longer than the others (limit: {limit})."
        ),
        ("LowGPUUtilization", low_gpu_utilization.HIGH): (
            "The use of {where} is below {measured} % for 95 % of the time (minimum: {limit} %)."
        ),
        ("LowGPUUtilization", low_gpu_utilization.LOW): (
            "The use of {where} is below {measured} % for 5 % of the time, although it is busy at"
            " other times (minimum: {limit} %)."
        ),
        ("BatchSize", batch_size.GPU_P95): (
            "The use of {where} is below {measured} % for 95 % of the time; below {limit} %, with"
            " spare memory and processors, a larger batch fits."
        ),
    }
)


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
    return _ADVICE[rule.name][0]


def worst_first(rule: SubRule) -> list[FindingSummary]:
    """Return the findings of a rule, those met in most windows first."""
    return sorted(rule.findings.values(), key=lambda summary: (-summary.windows, -summary.step))


def deciding_parameter(rule: SubRule, summary: FindingSummary) -> str:
    """Return the parameter whose value is the limit of a finding."""
    return _PARAMETERS.get((rule.name, summary.quantity), _ADVICE[rule.name][1])


def sentence(rule: SubRule, summary: FindingSummary) -> str:
    """Return a finding with its numbers."""
    text = _SENTENCES[rule.name, summary.quantity].format(
        where=place(summary.tensor, summary.worker),
        worker=summary.worker or "the job",
        measured=number(summary.measured),
        limit=number(summary.limit),
    )
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
