"""The findings of the profiler report, in plain sentences: first what is worth doing first."""

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
from builtin_rules.profiler.parameters import MINUTE_US
from builtin_rules.profiler_report.gathered import Gathered
from builtin_rules.profiler_report.sub_rules import Hit, SubRule
from builtin_rules.profiler_report.wording import counted, number, place

OTHERS_PERCENT: Final = 25.0
UNEVEN_PERCENT: Final = 70.0
# What to do about each rule's finding, causes before symptoms; and the parameter that decides.
_ADVICE: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "IOBottleneck": ("Read data faster: GPUs wait for input and output.", "threshold"),
        "CPUBottleneck": ("Relieve the processors: GPUs wait for them.", "threshold"),
        "Dataloader": ("Fit the number of loader processes to the cores.", "min_threshold"),
        "LoadBalancing": ("Spread the work evenly over the GPUs.", "threshold"),
        "MaxInitializationTime": ("Shorten the start of the job.", "threshold"),
        "GPUMemoryIncrease": ("Find out why GPU memory grows before it is full.", "increase"),
        "StepOutlier": ("Find out what the slow steps wait for.", "n_outliers"),
        "LowGPUUtilization": ("Keep the GPUs busy.", "threshold_p95"),
        "BatchSize": ("Try a larger batch, or a smaller machine.", "gpu_threshold_p95"),
    }
)
_NOTE_SAYS_NOTHING: Final = ("LowGPUUtilization",)
_SYMPTOMS: Final = ("LowGPUUtilization", "BatchSize")
# Where another parameter decides than the rule's usual one.
_DECIDES: Final = MappingProxyType(
    {
        ("Dataloader", dataloader.MANY): "max_threshold",
        ("LowGPUUtilization", low_gpu_utilization.LOW): "threshold_p5",
    }
)
# What a finding means, by rule and quantity; `measured` and `limit` are numbers, `where` a place.
_SAID: Final = MappingProxyType(
    {
        ("IOBottleneck", bottleneck.SHARE): (
            "In {measured} % of its snapshots a GPU of {worker} waits for data; {limit} % is the"
            " limit."
        ),
        ("CPUBottleneck", bottleneck.SHARE): (
            "In {measured} % of its snapshots a GPU of {worker} waits for processors; {limit} % is"
            " the limit."
        ),
        ("Dataloader", dataloader.FEW): (
            "On {worker} the processes that load data are {measured} % of the cores; below"
            " {limit} % there is room for more."
        ),
        ("Dataloader", dataloader.MANY): (
            "On {worker} the processes that load data are {measured} % of the cores; beyond"
            " {limit} % they get in each other's way."
        ),
        ("LoadBalancing", load_balancing.DISTANCE): (
            "{where} are loaded differently: the distance between them is {measured}, {limit} is"
            " the limit."
        ),
        ("MaxInitializationTime", max_initialization_time.MINUTES): (
            "For {measured} minutes there was no step; {limit} minutes are the limit."
        ),
        ("GPUMemoryIncrease", gpu_memory_increase.RISE): (
            "The memory in use on {where} rose by {measured} points at once; {limit} points are the"
            " limit."
        ),
        ("StepOutlier", step_outlier.OUTLIERS): (
            "{measured} steps of {where} take far longer than the others; {limit} are the limit."
        ),
        ("LowGPUUtilization", low_gpu_utilization.HIGH): (
            "For 95 % of the time the use of {where} is below {measured} %; {limit} % is the least."
        ),
        ("LowGPUUtilization", low_gpu_utilization.LOW): (
            "For 5 % of the time the use of {where} is below {measured} %, though it is busy at"
            " other times; {limit} % is the least."
        ),
        ("BatchSize", batch_size.GPU_P95): (
            "For 95 % of the time the use of {where} is below {measured} %; below {limit} %, with"
            " memory and processors to spare, there is room."
        ),
    }
)


@dataclass(frozen=True, slots=True)
class Advice:
    """One thing worth doing.

    Attributes
    ----------
    todo
        What to do.
    why
        What was found, with its numbers.
    rule
        Which rule found it; "" if none did.
    parameter
        The parameter that decides, as the report takes it; "" if none does.
    """

    todo: str
    why: str
    rule: str = ""
    parameter: str = ""


def advice(gathered: Gathered) -> list[Advice]:
    """Return what is worth doing, the first thing first.

    Causes come before their symptoms; of either kind first what was met in most of the windows that
    were judged, or took most of the job's time. What no rule judges comes last.
    """
    found = [one for one in gathered.rules if one.hits]
    found.sort(key=lambda one: (one.name in _SYMPTOMS, -_weight(gathered, one)))
    return [*map(_of_rule, found), *_of_framework(gathered)]


def _weight(gathered: Gathered, rule: SubRule) -> float:
    """Return the part of the job that a finding concerns, from 0 to 1."""
    if rule.name == "MaxInitializationTime":  # met once, however long that was
        hit = next(iter(rule.hits.values()))
        return hit.measured * MINUTE_US / max(1, gathered.end_us - gathered.begin_us)
    return rule.met / max(1, rule.judged)


def _of_rule(rule: SubRule) -> Advice:
    hits = worst_first(rule)
    first, more = hits[0], len(hits) - 1
    others = f" The same holds for {counted(more, 'other place')}." if more else ""
    parameter = decides(rule, first)
    return Advice(
        todo(rule), f"{sentence(rule, first)}{others}", rule.name, f"{rule.name}_{parameter}"
    )


def todo(rule: SubRule) -> str:
    """Return in one sentence what to do about a rule's findings."""
    return _ADVICE[rule.name][0]


def worst_first(rule: SubRule) -> list[Hit]:
    """Return where a rule's condition was met: where that was most often first."""
    return sorted(rule.hits.values(), key=lambda one: (-one.windows, -one.step))


def decides(rule: SubRule, hit: Hit) -> str:
    """Return the parameter whose value is the limit of a finding."""
    return _DECIDES.get((rule.name, hit.quantity), _ADVICE[rule.name][1])


def sentence(rule: SubRule, hit: Hit) -> str:
    """Return a finding with its numbers."""
    said = _SAID[rule.name, hit.quantity].format(
        where=place(hit.tensor, hit.worker),
        worker=hit.worker or "the job",
        measured=number(hit.measured),
        limit=number(hit.limit),
    )
    note = f" {hit.note}" if hit.note and rule.name not in _NOTE_SAYS_NOTHING else ""
    windows = f"{hit.windows} of {counted(rule.judged, 'window')}"
    return f"{said}{note} So in {windows} that could be judged."


def _of_framework(gathered: Gathered) -> Iterator[Advice]:
    """Yield what the tables of the framework show that no rule judges."""
    details = gathered.details("OverallFrameworkMetrics")
    others = details.get("phase", {}).get("others", 0.0)
    if others > OTHERS_PERCENT:
        yield Advice(
            "See what the job does outside of its steps.",
            f"{number(others)} % of the time belongs to no step: start, checkpoints, data.",
        )
    uneven = _uneven(details.get("forward_backward", {}))
    if uneven:
        yield uneven


def _uneven(passes: Mapping[str, Any]) -> Advice | None:
    name, share = max(passes.items(), key=lambda one: float(one[1]), default=("", 0.0))
    if len(passes) < 2 or share <= UNEVEN_PERCENT:  # noqa: PLR2004 - forward and backward
        return None
    word = "forward" if name.lower().startswith("forward") else "backward"
    return Advice(
        f"See why the {word} passes take so much longer than the others.",
        f"They take {number(share)} % of the time of both; about a third and two thirds are usual.",
    )
