"""Foresight: measures what rules will ask of a step, learnt from what they asked before.

At the first question about a step, all that was asked of the steps before it is measured in one
pass over the files of the step, and the system is told what the next one will be read from.
What was not foreseen, or is not as it should be, is left to whoever asks.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, Final

from smdebug.core.index import IndexFile, Span
from smdebug.core.measures import Measure, Want
from smdebug.core.record_layout import RecordLayout, learnt_from
from smdebug.core.step_plan import Layouts, Learn, Names, StepPlan
from smdebug.exceptions import SMDebugError
from smdebug.storage.protocol import FileStore, OpenFile

if TYPE_CHECKING:
    from smdebug.core.modes import ModeKeys

WORTH_BRINGING: Final = 1 << 20  # bytes of a step; below that Python's own work is most of it
REMEMBERED: Final = 2  # steps of a mode

Files = Mapping[int, Mapping[str, IndexFile]]
# A measure, and the global step of the value that it compares with.
Question = tuple[Measure, int | None]
Values = dict[str, Any]  # by tensor
Told = dict[Question, Values]
Shapes = dict[str, tuple[int, ...]]  # by tensor


class Found:
    """What was foreseen of a question at a step, by tensor, and which of it was asked for."""

    __slots__ = ("asked", "values")

    def __init__(self, values: Values) -> None:
        self.values = values
        self.asked: set[str] = set()


class _Habit:
    """What rules ask of one worker at the steps of one mode."""

    def __init__(self) -> None:
        self.wants: dict[Want, Names] = {}
        self.plan: StepPlan | None = None
        self._latest: list[dict[Want, set[str]]] = []

    def note(self, asked: dict[Want, set[str]]) -> None:
        """Take note of what was asked of a step."""
        settled = len(self._latest) == REMEMBERED and all(one == asked for one in self._latest)
        self._latest = [*self._latest[1 - REMEMBERED :], asked]
        if settled:
            return
        wants: dict[Want, set[str]] = {}
        for one in self._latest:
            for want, names in one.items():
                wants.setdefault(want, set()).update(names)
        found = {want: frozenset(names) for want, names in wants.items() if names}
        if found != self.wants:
            self.wants = found

    def plan_for(self, file: IndexFile, layouts: Layouts, learn: Learn) -> StepPlan:
        """Return the plan for what an index file says."""
        if self.plan is None or not self.plan.serves(file.entries, self.wants):
            self.plan = StepPlan(file.entries, self.wants, layouts, learn)
        return self.plan


class Foresight:
    """Answers questions about the step in hand from what was measured at once.

    Parameters
    ----------
    store, files, steps
        The trial's files, and the index files and steps that are known; they grow.
    layouts
        Where elements lie in records; it grows.
    """

    def __init__(
        self, store: FileStore, files: Files, steps: Sequence[int], layouts: Layouts
    ) -> None:
        self._store = store
        self._files = files
        self._steps = steps
        self._layouts = layouts
        self._step = -1
        self._present: Mapping[str, IndexFile] = {}  # of the step
        self._told: dict[str, dict[Question, Found]] = {}
        self._shapes: dict[str, Shapes] = {}
        self._missed: dict[str, dict[Question, set[str]]] = {}
        self._habits: dict[tuple[str, ModeKeys], _Habit] = {}
        self._of_mode: dict[ModeKeys | None, list[int]] = {}
        self._sorted = 0  # steps that `_of_mode` has
        self._last = -1  # of them

    def get(self, step: int, worker: str | None, name: str, question: Question) -> Any:
        """Return what was foreseen, or None; without a worker that of the only one."""
        if step != self._step:
            self._turn_to(step)
        if worker is None and len(self._present) == 1:
            (worker,) = self._present
        told = None if worker is None else self._told.get(worker)
        found = None if told is None else told.get(question)
        if found is None:
            return None
        value = found.values.get(name)
        if value is not None:
            found.asked.add(name)
        return value

    def get_all(self, step: int, worker: str, names: Iterable[str], question: Question) -> Values:
        """Return what was foreseen of tensors, without those of which nothing was."""
        if step != self._step:
            self._turn_to(step)
        found = self._told.get(worker, {}).get(question)
        if found is None:
            return {}
        values = {name: found.values[name] for name in names if name in found.values}
        found.asked.update(values)
        return values

    def shape(self, step: int, worker: str, name: str) -> tuple[int, ...] | None:
        """Return the shape of a value of which something was foreseen, or None."""
        if step != self._step:
            self._turn_to(step)
        return self._shapes.get(worker, {}).get(name)

    def missed(self, step: int, worker: str, name: str, question: Question) -> None:
        """Take note of a question about the step in hand that was not foreseen."""
        if step == self._step:
            self._missed.setdefault(worker, {}).setdefault(question, set()).add(name)

    def _back(self, step: int, before: int | None) -> int | None:
        """Return how many steps of its mode an earlier one is back; None if it is none of them."""
        if before is None:
            return 0
        steps = self._like(step)
        at = bisect_left(steps, before)
        is_one = before < step and at < len(steps) and steps[at] == before
        return bisect_left(steps, step) - at if is_one else None

    def _like(self, step: int) -> Sequence[int]:
        """Return the known steps of the mode of a step, ascending."""
        if len(self._steps) < self._sorted or self._steps[self._sorted - 1] != self._last:
            self._of_mode, self._sorted = {}, 0  # an older step has come
        for one in self._steps[self._sorted :]:
            self._of_mode.setdefault(self._mode(one), []).append(one)
        self._sorted, self._last = len(self._steps), self._steps[-1]
        return self._of_mode.get(self._mode(step), ())

    def _mode(self, step: int) -> "ModeKeys | None":
        return next((file.mode for file in self._files.get(step, {}).values()), None)

    def _turn_to(self, step: int) -> None:
        """Learn from the step before, and measure the next one."""
        if step > self._step:
            self._learn()
        self._step, self._told, self._shapes, self._missed = step, {}, {}, {}
        self._present = self._files.get(step, {})
        for worker, file in self._present.items():
            habit = self._habits.get((worker, file.mode))
            if habit is not None and habit.wants:
                plan = self._plan_for(file, habit)
                told, self._shapes[worker] = self._carried_out(plan, step, worker)
                self._told[worker] = {one: Found(values) for one, values in told.items()}
        self._read_ahead()

    def _learn(self) -> None:
        for worker, file in self._files.get(self._step, {}).items():
            asked = self._missed.get(worker, {})
            for question, found in self._told.get(worker, {}).items():
                asked.setdefault(question, set()).update(found.asked)
            wants: dict[Want, set[str]] = {}
            for (one, before), names in asked.items():
                back = self._back(self._step, before)
                if back is not None:
                    wants[one, back] = names
            self._habits.setdefault((worker, file.mode), _Habit()).note(wants)

    def _carried_out(self, plan: StepPlan, step: int, worker: str) -> tuple[Told, Shapes]:
        """Return what a plan gives, and of what shapes; nothing if the files cannot be read.

        Whatever goes wrong, in a measure too, meets the one who asks.
        """
        if not plan.nbytes:
            return {}, {}
        steps = self._like(step) if any(plan.backs) else [step]
        at = bisect_left(steps, step)
        earlier = {back: steps[at - back] for back in plan.backs if back <= at}
        with suppress(Exception), ExitStack() as stack:
            opened = {}
            for back, one in earlier.items():
                file = self._files.get(one, {}).get(worker)
                if file is not None and file.event_key is not None:
                    content = stack.enter_context(self._store.opened(file.event_key))
                    opened[back] = content, file.entries
            found = plan.carry_out(opened) if 0 in opened else {}
            told = {
                (one, earlier[back] if back else None): values
                for (one, back), values in found.items()
                if back in earlier
            }
            return told, {name: plan.shape(name) for name in set().union(*told.values())}
        return {}, {}

    def _read_ahead(self) -> None:
        """Have the system bring what the next step is measured from while this one is judged."""
        at = bisect_right(self._steps, self._step)
        for step in self._steps[at : at + 1]:
            for worker, file in self._files.get(step, {}).items():
                habit = self._habits.get((worker, file.mode))
                if habit is None or not habit.wants or file.event_key is None:
                    continue
                plan = self._plan_for(file, habit)
                start, stop = plan.extent
                if plan.nbytes >= WORTH_BRINGING and 2 * plan.nbytes >= stop - start:
                    with suppress(SMDebugError), self._store.opened(file.event_key) as opened:
                        opened.bring(plan.extent)

    def _plan_for(self, file: IndexFile, habit: _Habit) -> StepPlan:
        """Return the plan for a step; the event file is opened if records of new lengths come."""
        with ExitStack() as stack:
            opened: list[OpenFile] = []

            def learn(_: str, span: Span) -> RecordLayout | None:
                key = file.event_key
                if key is None:
                    return None
                with suppress(SMDebugError, MemoryError):
                    if not opened:
                        opened.append(stack.enter_context(self._store.opened(key)))
                    return learnt_from(opened[0], span, key)
                return None

            return habit.plan_for(file, self._layouts, learn)
