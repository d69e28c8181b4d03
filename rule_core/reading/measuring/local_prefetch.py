"""LocalPrefetch: measures in advance what rules will query, based on their earlier queries.

At the first query about a step, everything queried at the steps before it is measured in one pass
over the files of the step. The operating system starts to read the files of the next step, and
other cores measure its large tensors while rules judge this one. Queries that were not prefetched,
or whose files are damaged, use the regular way.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rule_core.exceptions import SMDebugError
from rule_core.format.index_file import Files, IndexFile
from rule_core.format.paths import has_several_modes, worker_of
from rule_core.kernels.cores import measuring_threads
from rule_core.kernels.sweep import has_kernel
from rule_core.model.streaming_statistics import Want
from rule_core.reading.measuring.measurer import Measurer, PartMeasures, Question
from rule_core.reading.measuring.part_reads import (
    PartAhead,
    StepAhead,
    Values,
    measure_part,
    plan_for,
)
from rule_core.reading.step_read_plan import Layouts, Names, StepPlan
from rule_core.storage.base import FileStore

if TYPE_CHECKING:
    from rule_core.modes import ModeKeys

MIN_PREFETCH_BYTES: Final = 1 << 20  # of a step; for less, the overhead exceeds the gain
NEAR_STEPS: Final = 8  # among which the next step is looked for
REMEMBERED: Final = 2  # steps of a mode
LEAST_NAMES: Final = 2  # of tensors that are measured together at once
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class _Prefetched(NamedTuple):
    """The prefetched answers to a question at a step, by tensor, and the tensors queried."""

    values: Values
    queried: set[str]
    plan: StepPlan


class _AccessPattern:
    """What rules query of one worker at the steps of one mode."""

    def __init__(self) -> None:
        self.wants: Mapping[Want, Names] = {}
        self.plan: StepPlan | None = None
        self.in_vain: set[Want] = set()  # queries of many tensors of which none can be measured
        self._latest: list[dict[Want, set[str]]] = []

    def note(self, queries: dict[Want, set[str]]) -> None:
        """Record the queries of a step."""
        settled = self._latest == [queries] * REMEMBERED
        self._latest = [*self._latest[1 - REMEMBERED :], queries]
        if settled:
            return
        wants: dict[Want, set[str]] = {}
        for earlier in self._latest:
            for want, names in earlier.items():
                wants.setdefault(want, set()).update(names)
        combined = {want: frozenset(names) for want, names in wants.items() if names}
        if combined != self.wants:
            self.wants = combined


class LocalPrefetch:
    """Answers queries about the current step from prefetched results.

    Parameters
    ----------
    store
        The store; None if its files cannot be opened, so that only a measurer can answer.
    files, steps
        The growing collections of the known index files and steps.
    layouts
        The growing collection of record layouts.

    Raises
    ------
    SMDebugValueError
        If ``RULE_RUNNER_THREADS`` is no number.

    Attributes
    ----------
    measurer
        Measures somewhere else; its results come first.
    """

    def __init__(
        self, store: FileStore | None, files: Files, steps: Sequence[int], layouts: Layouts
    ) -> None:
        # A wrong setting is reported now, not when it is used.
        self._has_cores = measuring_threads() > 1 and has_kernel()
        self._store = store
        self._files = files
        self._steps = steps
        self._layouts = layouts
        self.measurer: Measurer | None = None
        self._measures: dict[str, PartMeasures] = {}  # by part
        self._step = self._front = -1  # the current step, and the last one reached
        self._next: int | None = None  # the step that is expected after the last one reached
        self._ahead: StepAhead | None = None  # the next step, which is being measured
        self._present: Mapping[str, IndexFile] = {}  # at the current step
        self._plain_parts: set[str] = set()  # the latest parts that are named like their workers
        self._places: dict[tuple[str, str], str] = {}  # by worker and tensor, if there are parts
        self._results: dict[str, dict[Question, _Prefetched]] = {}  # by part
        self._missed: dict[str, dict[Question, set[str]]] = {}
        self._patterns: dict[tuple[str, ModeKeys], _AccessPattern] = {}
        self._latest_plan: StepPlan | None = None  # of any worker
        self._steps_by_mode: dict[ModeKeys | None, list[int]] = {}
        self._sorted = 0  # number of steps in `_steps_by_mode`
        self._last = -1  # the last of them

    def get(self, step: int, worker: str | None, name: str, question: Question) -> Any:
        """Return the prefetched answer, or None; `worker` may be None if there is only one."""
        if step != self._step:
            self._turn_to(step)
        if self._places:
            worker = self._part(worker, name)
        elif worker is None and len(self._present) == 1:
            (worker,) = self._present
        if worker is None:
            return None
        value = self._measured(worker, question).get(name)
        results = self._results.get(worker)
        prefetched = None if results is None else results.get(question)
        if value is not None or prefetched is None:
            return value
        value = prefetched.values.get(name)
        if value is not None:
            prefetched.queried.add(name)
        return value

    def get_all(self, step: int, worker: str, names: Iterable[str], question: Question) -> Values:
        """Return name -> prefetched answer, for the tensors that have one."""
        if step != self._step:
            self._turn_to(step)
        if self._places:
            answers = {name: self.get(step, worker, name, question) for name in names}
            return {name: answer for name, answer in answers.items() if answer is not None}
        names = [*names]
        prefetched = self._results.get(worker, {}).get(question)
        if prefetched is None:
            prefetched = self._measure_now(worker, names, question)
        own: Values = {}
        if prefetched is not None:
            values = prefetched.values
            own = {name: values[name] for name in names if name in values}
        measured = self._measured(worker, question)
        if measured:
            own |= {name: measured[name] for name in names if name in measured}
        if prefetched is not None:
            prefetched.queried.update(own.keys() - measured if measured else own)
        return own

    def _measure_now(
        self, worker: str, names: Sequence[str], question: Question
    ) -> _Prefetched | None:
        """Measure tensors that are queried together and were not foreseen."""
        statistic, before = question
        file = self._present.get(worker)
        if self._store is None or file is None or before is not None or len(names) < LEAST_NAMES:
            return None
        pattern = self._pattern(worker, file.mode)
        want = (statistic, 0)
        if want in pattern.wants or want in pattern.in_vain or worker in self._measures:
            return None
        wants: Mapping[Want, Names] = {want: frozenset(names)}
        latest = self._latest_plan
        if latest is not None and latest.wants == wants:
            wants = latest.wants
        plan = plan_for(self._store, file, wants, self._layouts, latest)
        values = measure_part(self._store, plan, {0: file}).get(want)
        if not values:
            pattern.in_vain.add(want)
            return None
        if pattern.plan is None:
            pattern.plan = self._latest_plan = plan
        prefetched = self._results.setdefault(worker, {})[question] = _Prefetched(
            values, set(), plan
        )
        return prefetched

    def _pattern(self, worker: str, mode: "ModeKeys") -> _AccessPattern:
        """Return the access pattern of a worker in a mode."""
        pattern = self._patterns.get((worker, mode))
        if pattern is None:
            pattern = self._patterns[worker, mode] = _AccessPattern()
        return pattern

    def _measured(self, part: str, question: Question) -> Mapping[str, Any]:
        """Return what the measurer has answered to a question about the current step."""
        measures = self._measures.get(part)
        return _NOTHING if measures is None else measures.values.get(question, _NOTHING)

    def shape(self, step: int, worker: str, name: str) -> tuple[int, ...] | None:
        """Return the shape of a prefetched value, or None."""
        if step != self._step:
            self._turn_to(step)
        part = (self._part(worker, name) if self._places else worker) or ""
        measures = self._measures.get(part)
        if measures is not None and name in measures.shapes:
            return measures.shapes[name]
        for prefetched in self._results.get(part, {}).values():
            if name in prefetched.values:
                return prefetched.plan.shapes[name]
        return None

    def _part(self, worker: str | None, name: str) -> str | None:
        """Return the part of the current step in which a worker saved a tensor."""
        if worker is None:
            workers = {worker_of(part) for part in self._present}
            worker = workers.pop() if len(workers) == 1 else ""
        return self._places.get((worker_of(worker), name))

    def missed(self, step: int, worker: str, name: str, question: Question) -> None:
        """Record a query about the current step that was not prefetched."""
        if step == self._step:
            self._missed.setdefault(worker, {}).setdefault(question, set()).add(name)

    def _back(self, step: int, before: int) -> int | None:
        """Return how many steps of the mode `before` is back, or None for another mode."""
        steps = self._steps_like(step)
        position = bisect_left(steps, before)
        is_same_mode = before < step and position < len(steps) and steps[position] == before
        return bisect_left(steps, step) - position if is_same_mode else None

    def _steps_like(self, step: int) -> Sequence[int]:
        """Return the known steps of the mode of a step, ascending."""
        if len(self._steps) < self._sorted or self._steps[self._sorted - 1] != self._last:
            self._steps_by_mode, self._sorted = {}, 0  # an older step was added
        for new_step in self._steps[self._sorted :]:
            self._steps_by_mode.setdefault(self._mode(new_step), []).append(new_step)
        self._sorted, self._last = len(self._steps), self._steps[-1]
        return self._steps_by_mode.get(self._mode(step), ())

    def _mode(self, step: int) -> "ModeKeys | None":
        return next((file.mode for file in self._files.get(step, {}).values()), None)

    def _turn_to(self, step: int) -> None:
        """Learn from the previous step, and measure the new one."""
        if step > self._step:
            self._learn()
        self._step, self._results, self._missed, self._measures = step, {}, {}, {}
        self._present = self._files.get(step, {})
        self._places = {}
        if self._present.keys() != self._plain_parts and has_several_modes(self._present):
            self._places = {
                (worker_of(part), name): part
                for part, file in self._present.items()
                for name in file.entries
            }
            if len(self._places) < sum(len(file.entries) for file in self._present.values()):
                self._present = {}  # a tensor of a worker is in several parts
        elif self._present.keys() != self._plain_parts:
            self._plain_parts = {*self._present}
        if self.measurer is not None:
            answers = ((part, self.measurer.measures(step, part)) for part in self._present)
            self._measures = {part: measures for part, measures in answers if measures is not None}
        if self._store is None or not self._present:
            return
        if step <= self._front:
            self._measure_here(self._store, {})
            return
        is_expected = self._next in {None, step}
        self._front, self._next = step, self._next_step()
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead.step == step:
            parts = ahead.finish()
            self._read_ahead(self._store, is_expected)
            self._measure_here(self._store, parts)
            return
        if ahead is not None:
            ahead.close()
        self._measure_here(self._store, {})
        self._read_ahead(self._store, is_expected)

    def _measure_here(self, store: FileStore, ahead: Mapping[str, PartAhead]) -> None:
        """Measure what was queried of the previous steps, unless it was measured ahead."""
        for worker, file in self._present.items():
            pattern = self._patterns.get((worker, file.mode))
            if pattern is None or not pattern.wants:
                continue
            part = ahead.get(worker)
            if part is None or part.plan.wants != pattern.wants:
                part, plan = None, self._plan_for(store, file, pattern)
            else:
                plan = part.plan
            self._results[worker] = self._execute(store, plan, self._step, worker, part)

    def _learn(self) -> None:
        for worker, file in self._files.get(self._step, {}).items():
            queries = self._missed.get(worker, {})
            for question, prefetched in self._results.get(worker, {}).items():
                queries.setdefault(question, set()).update(prefetched.queried)
            wants: dict[Want, set[str]] = {}
            for (statistic, before), names in queries.items():
                back = 0 if before is None else self._back(self._step, before)
                if back is not None:
                    wants[statistic, back] = names
            pattern = self._pattern(worker, file.mode)
            pattern.note(wants)
            latest = self._latest_plan
            if latest is not None and latest.wants is not pattern.wants == latest.wants:
                pattern.wants = latest.wants  # so that one plan serves workers that save alike

    def _execute(
        self, store: FileStore, plan: StepPlan, step: int, worker: str, ahead: PartAhead | None
    ) -> dict[Question, _Prefetched]:
        """Return the results of a plan; nothing if the files cannot be read.

        Errors are raised later, by the query itself.
        """
        earlier = self._earlier(plan, step)
        files = self._files_of(earlier, worker)
        return {
            (statistic, earlier[back] if back else None): _Prefetched(values, set(), plan)
            for (statistic, back), values in measure_part(store, plan, files, ahead).items()
            if back in earlier
        }

    def _earlier(self, plan: StepPlan, step: int) -> dict[int, int]:
        """Return the steps that a plan reads at a step, by how many steps back they are."""
        steps = self._steps_like(step) if any(plan.backs) else [step]
        position = bisect_left(steps, step)
        return {back: steps[position - back] for back in plan.backs if back <= position}

    def _files_of(self, steps: Mapping[int, int], worker: str) -> dict[int, IndexFile]:
        """Return the index files of a worker at those of some steps that it has written."""
        return {
            back: self._files[step][worker]
            for back, step in steps.items()
            if worker in self._files.get(step, {})
        }

    def _next_step(self) -> int | None:
        """Return the next step of which anything will be queried, or None."""
        position = bisect_right(self._steps, self._step)
        for step in self._steps[position : position + NEAR_STEPS]:
            for worker, file in self._files.get(step, {}).items():
                pattern = self._patterns.get((worker, file.mode))
                if pattern is not None and pattern.wants:
                    return step
        return None

    def _read_ahead(self, store: FileStore, is_expected: bool) -> None:
        """Let the operating system read the next step's files while this step is evaluated.

        Other cores measure them, if the expectation of the current step has come true, so that
        nothing is measured in vain for rules that skip steps.
        """
        step = self._next
        if step is None:
            return
        ahead = None
        for worker, file in self._files.get(step, {}).items():
            pattern = self._patterns.get((worker, file.mode))
            if pattern is None or pattern.plan is None or pattern.plan.nbytes < MIN_PREFETCH_BYTES:
                continue
            if not pattern.wants or file.event_key is None:
                continue
            is_settled = pattern.plan.wants == pattern.wants
            plan = self._plan_for(store, file, pattern)
            if plan.nbytes < MIN_PREFETCH_BYTES:
                continue
            start, stop = plan.extent
            with suppress(SMDebugError):
                if 2 * plan.nbytes >= stop - start:
                    with store.opened(file.event_key) as opened:
                        opened.read_ahead(plan.extent)
            if is_expected and self._has_cores and is_settled:
                ahead = ahead or StepAhead(store, step)
                with suppress(Exception):  # a statistic may be a user's
                    ahead.add(worker, plan, self._files_of(self._earlier(plan, step), worker))
        if ahead is not None and ahead.begin():
            self._ahead = ahead

    def _plan_for(self, store: FileStore, file: IndexFile, pattern: _AccessPattern) -> StepPlan:
        """Return the plan for a step: that of another worker may fit too; see `plan_for`."""
        plan = pattern.plan
        latest = self._latest_plan
        if plan is not latest and latest is not None and latest.serves(file.entries, pattern.wants):
            plan = latest
        plan = plan_for(store, file, pattern.wants, self._layouts, plan)
        pattern.plan = self._latest_plan = plan
        return plan
