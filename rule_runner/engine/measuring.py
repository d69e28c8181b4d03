"""TrialMeasuring: lets others measure a trial for its rules, and says what they did not."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Final

from rule_core.failures import attempt
from rule_core.reading.measuring.executor_measurer import ExecutorMeasurer
from rule_core.reading.source_index import SourceIndex
from rule_core.rules.wants import DeclaredWants, WantedMeasure
from rule_runner.engine.invocation import InProcessInvoker
from rule_runner.errors import listed

if TYPE_CHECKING:
    from rule_core.format.index_file import IndexFile
    from rule_core.model.streaming_statistics import Want
    from rule_core.reading.step_read_plan import Names
    from rule_core.reading.trial_index import TrialIndex
    from rule_core.trials import Trial
    from rule_runner.engine.rule_job import RuleJob

# Classes that every worker can import. Those of a rule file are known to this process only.
_EVERYWHERE: Final = frozenset({"rule_core", "builtin_rules", "smdebug"})


class TrialMeasuring:
    """Measures the base trial of an evaluation in the workers of an executor.

    Parameters
    ----------
    executor
        Where to measure.
    remaining_s
        Returns the remaining seconds of the evaluation.
    """

    def __init__(
        self, executor: Executor, remaining_s: Callable[[], float] = lambda: math.inf
    ) -> None:
        self._executor = executor
        self._remaining_s = remaining_s
        self._index: TrialIndex | None = None
        self._measurer: ExecutorMeasurer | None = None
        self._declared: DeclaredWants | None = None
        self._undeclared: list[str] = []
        self._is_of_others = False

    def attach(self, trials: "Sequence[Trial]") -> None:
        """Let the index of the base trial ask for measures, unless it is in another format."""
        index = trials[0].index if trials else None
        self._is_of_others = isinstance(index, SourceIndex)
        if index is None or index is self._index or self._is_of_others:
            return
        self._index = index
        self._measurer = ExecutorMeasurer(self._executor, index.store, self._remaining_s)
        self._declared = None
        index.measure_with(self._measurer)

    def begin(self, jobs: "Sequence[RuleJob]") -> None:
        """Start to measure what the rules declare, once the trial has steps."""
        index, measurer = self._index, self._measurer
        if index is None or measurer is None or self._declared is not None or not index.steps:
            return
        wants = {
            job.config.configuration_name: _wants(job) for job in jobs if not job.config.profiler
        }
        self._undeclared = [name for name, measures in wants.items() if measures is None]
        declared = self._declared = DeclaredWants(
            [measure for measures in wants.values() for measure in measures or ()]
        )

        def choose(file: "IndexFile") -> "Mapping[Want, Names]":
            return declared.of(file, index.collections, index.collections_version)

        measurer.begin(index.files, index.steps, declared.wants, choose)

    def notes(self) -> Iterator[str]:
        """Yield what was measured in this process although it need not have been."""
        if self._is_of_others:
            yield "The trial is in a format that only this process measures."
        if self._undeclared:
            yield (
                "These rules declare nothing that workers could measure, so that they were judged "
                f"in this process alone: {listed(self._undeclared)}."
            )
        measurer = self._measurer
        if measurer is not None and measurer.lost:
            yield (
                f"{measurer.lost} of {measurer.blocks} blocks were lost by their workers, and "
                f"measured in this process. {measurer.reason}"
            )

    def close(self) -> None:
        """Cancel what is not needed any more."""
        if self._measurer is not None:
            self._measurer.close()


def _wants(job: "RuleJob") -> list[WantedMeasure] | None:
    """Return what a rule declares and workers can import; None without a declaration."""
    invoker = job.invoker
    if not isinstance(invoker, InProcessInvoker):
        return None
    loaded = job.config.loaded
    anywhere = loaded.builtin or loaded.package
    # The declaration may be a user's code.
    declared = attempt(lambda: [WantedMeasure(*each) for each in invoker.wants or ()], lambda _: [])
    measures = [measure for measure in declared if anywhere or _is_everywhere(measure)]
    return measures or ([] if invoker.wants is not None and anywhere else None)


def _is_everywhere(measure: WantedMeasure) -> bool:
    return type(measure.statistic).__module__.partition(".")[0] in _EVERYWHERE
