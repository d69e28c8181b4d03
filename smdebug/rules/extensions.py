"""Names for rules that smdebug does not have: parameters, evidence, statistics and files."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from rule_core.analysis.plot import Plot, plot
from rule_core.clock import Clock, SystemClock
from rule_core.model.array_difference import ChangeNorms, Norms, Tolerance
from rule_core.model.element_statistics import (
    Activity,
    ActivityFlags,
    NonFiniteCount,
    NonFiniteCounts,
    SingleNumber,
    ZeroCount,
)
from rule_core.model.segments import step_in_segment
from rule_core.model.streaming_statistics import Piece, StreamingStatistic
from rule_core.rules.doc_page import Page
from rule_core.rules.evidence import Explanation, Finding, Measured, Quantity
from rule_core.rules.params import (
    BoolParam,
    ChoiceParam,
    FileParam,
    FloatParam,
    IntParam,
    NamesParam,
    Param,
    PatternsParam,
    TextParam,
    set_parameters,
)
from rule_core.rules.requirements import (
    FlightRecorderDumps,
    FrameworkEvents,
    SystemMetric,
    TensorInput,
    TorchTraces,
)
from rule_core.rules.wants import WantedMeasure
from rule_core.severity import Severity
from rule_core.storage.local_output import LocalOutput
from rule_core.storage.publish import publish
from rule_core.trials.snapshot_view import snapshot

if TYPE_CHECKING:
    from rule_core.profiler.files.time_units import is_on_host
    from rule_core.profiler.rule_helpers.framework_times import FrameworkTimes, is_step, shares
    from rule_core.profiler.rule_helpers.series import (
        aggregate_framework_metrics,
        box_statistics,
        histogram,
        percentiles,
        summary,
    )
    from rule_core.profiler.system.samples import SeriesKey, SystemSamples
    from rule_core.profiler.traces.intervals import union
    from rule_core.storage.uri import read_file
    from rule_core.trials.number_series import NumberSeries, number_series
    from rule_core.trials.run_configuration import run_configuration

__all__ = [
    "Activity",
    "ActivityFlags",
    "BoolParam",
    "ChangeNorms",
    "ChoiceParam",
    "Clock",
    "Explanation",
    "FileParam",
    "Finding",
    "FlightRecorderDumps",
    "FloatParam",
    "FrameworkEvents",
    "FrameworkTimes",
    "IntParam",
    "LocalOutput",
    "Measured",
    "NamesParam",
    "NonFiniteCount",
    "NonFiniteCounts",
    "Norms",
    "NumberSeries",
    "Page",
    "Param",
    "PatternsParam",
    "Piece",
    "Plot",
    "Quantity",
    "SeriesKey",
    "Severity",
    "SingleNumber",
    "StreamingStatistic",
    "SystemClock",
    "SystemMetric",
    "SystemSamples",
    "TensorInput",
    "TextParam",
    "Tolerance",
    "TorchTraces",
    "WantedMeasure",
    "ZeroCount",
    "aggregate_framework_metrics",
    "box_statistics",
    "histogram",
    "is_on_host",
    "is_step",
    "number_series",
    "percentiles",
    "plot",
    "publish",
    "read_file",
    "run_configuration",
    "set_parameters",
    "shares",
    "snapshot",
    "step_in_segment",
    "summary",
    "union",
]

# What few rules need is imported when it is asked for.
_LATE: Final = {
    "profiler.rule_helpers.framework_times": ("FrameworkTimes", "is_step", "shares"),
    "profiler.traces.intervals": ("union",),
    "profiler.rule_helpers.series": (
        *("aggregate_framework_metrics", "box_statistics", "histogram", "percentiles", "summary"),
    ),
    "profiler.system.samples": ("SeriesKey", "SystemSamples"),
    "profiler.files.time_units": ("is_on_host",),
    "storage.uri": ("read_file",),
    "trials.number_series": ("NumberSeries", "number_series"),
    "trials.run_configuration": ("run_configuration",),
}


def __getattr__(name: str) -> Any:
    for module, names in _LATE.items():
        if name in names:
            return getattr(import_module(f"rule_core.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
