"""TrialMeasuring: lets others measure a trial for its rules, and says what they did not."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Final

from rule_core.failures import attempt
from rule_core.reading.measuring.executor_measurer import ExecutorMeasurer
from rule_core.reading.measuring.stored import StoredMeasurer
from rule_core.reading.native_index import NativeIndex
from rule_core.rules.wants import DeclaredWants, WantedMeasure
from rule_core.storage.base import ObjectNotFoundError, StorageUnavailableError
from rule_core.storage.uri import open_store
from rule_runner.config.model import RuleJobConfig
from rule_runner.engine.invocation import InProcessInvoker, Invoker
from rule_runner.errors import TrialError, listed, translated
from rule_runner.results.versions import versions

if TYPE_CHECKING:
    from rule_core.trials.trial import Trial
    from rule_runner.engine.rule_job import RuleJob

MOST_PROBLEMS: Final = 20  # of measurement files, in the notes
# Classes that every worker can import. Those of a rule file are known to this process only.
_EVERYWHERE: Final = frozenset({"rule_core", "builtin_rules", "smdebug"})


class TrialMeasuring(ABC):
    """Measures the base trial of an evaluation, as far as its rules declare what they measure."""

    def __init__(self) -> None:
        self._index: NativeIndex | None = None
        self._has_begun = False
        self._undeclared: list[str] = []
        self._is_of_others = False

    def attach(self, trials: "Sequence[Trial]") -> None:
        """Let the index of the base trial ask for measures, unless it is in another format."""
        index = trials[0].index if trials else None
        self._is_of_others = index is not None and not isinstance(index, NativeIndex)
        if not isinstance(index, NativeIndex) or index is self._index:
            return
        self._index, self._has_begun = index, False
        self._attach(index)

    def begin(self, jobs: "Sequence[RuleJob]") -> None:
        """Start to measure what the rules declare, once the trial has steps."""
        index = self._index
        if index is None or self._has_begun or not index.steps:
            return
        self._has_begun = True
        wants = {
            job.config.configuration_name: declared_measures(job.config, job.invoker)
            for job in jobs
            if not job.config.profiler
        }
        self._undeclared = [name for name, measures in wants.items() if measures is None]
        measures = [measure for measures in wants.values() for measure in measures or ()]
        self._begin(index, DeclaredWants(measures))

    def notes(self) -> Iterator[str]:
        """Yield what was measured in this process although it need not have been."""
        if self._is_of_others:
            yield "The trial is in a format that only this process measures."
        if self._undeclared:
            yield (
                "These rules declare nothing that others could measure, so that all they read was "
                f"read in this process: {listed(self._undeclared)}."
            )

    @abstractmethod
    def _attach(self, index: NativeIndex) -> None: ...

    @abstractmethod
    def _begin(self, index: NativeIndex, declared: DeclaredWants) -> None: ...

    @abstractmethod
    def close(self) -> None:
        """Release what is not needed any more."""


class MeasuringOnExecutor(TrialMeasuring):
    """Measures in the workers of an executor.

    Parameters
    ----------
    executor
        Where to measure; it stays open.
    remaining_s
        Returns the remaining seconds of the evaluation.
    """

    def __init__(
        self, executor: Executor, remaining_s: Callable[[], float] = lambda: math.inf
    ) -> None:
        super().__init__()
        self._executor = executor
        self._remaining_s = remaining_s
        self._measurer: ExecutorMeasurer | None = None

    def _attach(self, index: NativeIndex) -> None:
        self._measurer = ExecutorMeasurer(self._executor, index.store, self._remaining_s)
        index.measurer = self._measurer
        index.tensors.measure_with(self._measurer)

    def _begin(self, index: NativeIndex, declared: DeclaredWants) -> None:
        if self._measurer is not None:
            choose = declared.chooser(index)
            self._measurer.begin(index.files, index.steps, declared.wants, choose)

    def notes(self) -> Iterator[str]:
        """Yield what was measured in this process; see `TrialMeasuring`."""
        yield from super().notes()
        measurer = self._measurer
        if measurer is not None and measurer.lost:
            yield (
                f"{measurer.lost} of {measurer.blocks} blocks were lost by their workers, and "
                f"measured in this process. The last reason: {measurer.reason}"
            )

    def close(self) -> None:
        """Cancel what is not needed any more."""
        if self._measurer is not None:
            self._measurer.close()


class StoredMeasuring(TrialMeasuring):
    """Uses the measurement files in a folder, which ``rule-runner measure`` has written.

    Parameters
    ----------
    folder
        A folder or an address.
    """

    def __init__(self, folder: str) -> None:
        super().__init__()
        self._folder = folder
        self._measurer: StoredMeasurer | None = None

    def _attach(self, index: NativeIndex) -> None:
        self._measurer = StoredMeasurer(open_store(self._folder), versions()["rule-runner"])
        index.tensors.measure_with(self._measurer)

    def _begin(self, index: NativeIndex, declared: DeclaredWants) -> None:
        if self._measurer is None:
            return
        problem = f"The measurements in {self._folder!r} cannot be read. "
        causes = (ObjectNotFoundError, StorageUnavailableError)
        with translated(TrialError, *causes, before=problem):
            self._measurer.begin(index.files, index.store, declared.wants)

    def notes(self) -> Iterator[str]:
        """Yield what was measured in this process; see `TrialMeasuring`."""
        yield from super().notes()
        measurer = self._measurer
        if measurer is None:
            return
        yield from measurer.problems[:MOST_PROBLEMS]
        if measurer.changed:
            yield (
                f"{measurer.changed} parts of steps have changed since they were measured, and "
                "were measured again."
            )
        if not measurer.measured:
            yield f"Nothing in {self._folder!r} was measured of this trial for these rules."

    def close(self) -> None:
        """Forget the measurement files."""
        if self._measurer is not None:
            self._measurer.close()


def declared_measures(config: RuleJobConfig, invoker: Invoker | None) -> list[WantedMeasure] | None:
    """Return what a rule declares and other processes can import; None without a declaration."""
    if not isinstance(invoker, InProcessInvoker):
        return None
    anywhere = config.loaded.builtin or bool(config.loaded.package)

    def read() -> list[WantedMeasure] | None:
        wants = invoker.wants
        if wants is None:
            return None
        measures = [WantedMeasure(*want) for want in wants]
        importable = [want for want in measures if anywhere or _is_everywhere(want)]
        return importable if importable or not measures else None

    return attempt(read, lambda _: None)  # the declaration may be a user's code


def _is_everywhere(measure: WantedMeasure) -> bool:
    return type(measure.statistic).__module__.partition(".")[0] in _EVERYWHERE
