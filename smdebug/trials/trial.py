"""Trial: the documented questions about what a training job saved.

Several trials may look at one `TrialIndex`: each rule has one of its own, with its own
collections and its own horizon, over the same bytes.
"""

from bisect import bisect_right
from collections.abc import Iterable
from typing import Any, Final, Self

from smdebug.core import patterns
from smdebug.core.clock import Clock
from smdebug.core.collection import Collection
from smdebug.core.modes import ModeKeys
from smdebug.core.tensor import StepState, Tensor
from smdebug.exceptions import NoMoreData, StepUnavailable, TensorUnavailable
from smdebug.trials.trial_index import TrialIndex
from smdebug.trials.view import POLL_S, Array, TrialView

MISSED_KEPT: Final = 20
_Asked = tuple[list[Any], set[str], list[str]]  # patterns, members by name, and of which names


class Trial(TrialView):
    """What one training job saved under one root; `create_trial` makes it.

    Queries look for new files first, unless `smdebug.analysis.utils.no_refresh` holds or the
    training job has ended and all was seen. ``mode`` is GLOBAL by default: steps are global steps
    then, and steps within the mode otherwise.

    Attributes
    ----------
    name, path
        Name and root, as given.
    missed
        What was asked for and is not there, in words; at most `MISSED_KEPT`.
    """

    def __init__(self, name: str, path: str, index: TrialIndex, clock: Clock | None = None) -> None:
        super().__init__(index, clock)
        self.name = name
        self.path = path
        self.missed: dict[str, None] = {}
        self._tensors: dict[str, Tensor] = {}
        self._collections: dict[str, Collection] = {}
        self._collections_version = -1
        self._known_members: dict[str, tuple[_Asked, list[str]]] = {}

    def share(self) -> Self:
        """Return another view of the same trial: same bytes, own collections and horizon."""
        return type(self)(self.name, self.path, self.index, self.clock)

    def __repr__(self) -> str:
        return f"Trial(name={self.name!r}, path={self.path!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Trial) and (self.name, self.path) == (other.name, other.path)

    def __hash__(self) -> int:
        return hash((self.name, self.path))

    @property
    def range_steps(self) -> tuple[int | None, int | None] | None:
        """The steps that are loaded, as given to `create_trial`."""
        return self.index.range_steps

    @property
    def num_workers(self) -> int:
        """The number of processes that write the trial, by their own account."""
        return self.index.num_workers

    @property
    def worker_set(self) -> set[str]:
        """The workers whose collections files are there."""
        return set(self.index.workers)

    @property
    def last_complete_step(self) -> int:
        """The last global step that all workers wrote; -1 if there is none."""
        return self.index.last_complete_step if self.horizon is None else self.horizon

    # -- tensors -----------------------------------------------------------------------------

    def tensor_names(
        self,
        first: int | None = None,
        /,
        mode: ModeKeys | None = ModeKeys.GLOBAL,
        regex: Any = None,
        collection: str | Collection | None = None,
        *,
        step: int | None = None,
        show_prefixed_tensors: bool = False,
    ) -> list[str]:
        """Return the names of saved tensors, sorted.

        Parameters
        ----------
        step
            Only those saved at this step; the first positional argument. (A boolean there is what
            older versions took, and has no effect; nor has `show_prefixed_tensors`.)
        mode
            Only those saved in this mode.
        regex
            Only those in which this pattern, or one of these patterns, is found.
        collection
            Only members of this collection; its name may be given.

        Raises
        ------
        ValueError
            If both `regex` and `collection` are given.
        TypeError
            If one of them is of another type.
        re.error, SMDebugValueError
            If a pattern cannot be used.
        """
        del show_prefixed_tensors
        if step is None and not isinstance(first, bool):
            step = first
        if regex is not None and collection is not None:
            msg = "Tensor names are asked for by regex or by collection, got both."
            raise ValueError(msg)
        self.maybe_refresh()
        names = self._names(step, mode or ModeKeys.GLOBAL)
        if regex is not None:
            names = patterns.matching(names, patterns.flatten(regex))
            self._note_missed(names, "pattern", regex)
        elif collection is not None:
            wanted = self._resolve(collection)
            names = self._members(wanted, names)
            self._note_missed(names, "collection", wanted.name)
        return names

    def _note_missed(self, found: object, kind: str, what: object) -> None:
        """Remember what was asked for and is not there, and forget it once it is."""
        text = f"{kind} {what!r}"
        if found:
            self.missed.pop(text, None)
        elif len(self.missed) < MISSED_KEPT:
            self.missed[text] = None

    tensors = tensor_names

    def tensors_in_collection(self, coll_name: str | Collection) -> list[str]:
        """Return the names of a collection's tensors, sorted: the name older versions had."""
        return self.tensor_names(collection=coll_name)

    def tensors_matching_regex(self, regex_list: Any) -> list[str]:
        """Return the names in which a pattern is found, sorted: the name older versions had."""
        return self.tensor_names(regex=regex_list)

    def _names(self, step: int | None, mode: ModeKeys) -> list[str]:
        """Return the names saved at a step of a mode, or at any."""
        index = self.index
        if step is not None:
            place = self._global(step, mode)
            files = index.files.get(-1 if place is None else place, {}).values()
            of_mode = [one.entries for one in files if mode in {ModeKeys.GLOBAL, one.mode}]
            return sorted(of_mode[0] if len(of_mode) == 1 else set().union(*of_mode))
        known = index.names if mode is ModeKeys.GLOBAL else index.names_by_mode.get(mode, {})
        if self.horizon is None:
            return sorted(known)
        return sorted(name for name, steps in known.items() if steps[0] <= self.horizon)

    def _members(self, collection: Collection, names: list[str]) -> list[str]:
        """Return the members of a collection among names, which are often the same again."""
        asked = (collection.include_regex.copy(), collection.tensor_names.copy(), names)
        known = self._known_members.get(collection.name)
        if known is None or known[0] != asked:
            known = self._known_members[collection.name] = asked, collection.members(names)
        return known[1].copy()

    def _resolve(self, collection: object) -> Collection:
        if isinstance(collection, str):
            return self.collection(collection)
        if isinstance(collection, Collection):
            return collection
        msg = f"A collection is given as its name or as a Collection, got {collection!r}."
        raise TypeError(msg)

    def has_tensor(self, tname: str) -> bool:
        """Say whether any step seen so far has the tensor."""
        if not self._knows(tname):
            self.maybe_refresh()
        return self._knows(tname)

    def _knows(self, tname: str) -> bool:
        steps = self.index.names.get(tname)
        return steps is not None and (self.horizon is None or steps[0] <= self.horizon)

    def tensor(self, tname: str) -> Tensor:
        """Return the tensor of this name.

        Raises
        ------
        TensorUnavailable
            If no step seen so far has it.
        """
        if not (self._knows(tname) or self.has_tensor(tname)):
            self._note_missed(None, "tensor", tname)
            raise TensorUnavailable(tname)
        found = self._tensors.get(tname)
        if found is None:
            found = self._tensors[tname] = Tensor(tname, self)
        return found

    # -- steps, modes, workers ---------------------------------------------------------------

    def steps(
        self, mode: ModeKeys | None = ModeKeys.GLOBAL, show_incomplete_steps: bool = False
    ) -> list[int]:
        """Return the steps of a mode, ascending; None is GLOBAL.

        Parameters
        ----------
        show_incomplete_steps
            Also those that some worker has not written yet.
        """
        self.maybe_refresh()
        mode = mode or ModeKeys.GLOBAL
        all_of_them = show_incomplete_steps or self.horizon is not None
        if mode is ModeKeys.GLOBAL:
            steps = self._shown(self.index.steps)
            return steps if all_of_them else self.index.settled(steps)
        known = self._known_steps(mode)
        return [step for step, place in known if all_of_them or self.index.is_settled(place)]

    def _shown(self, steps: list[int]) -> list[int]:
        """Return those of some global steps, ascending, that are shown."""
        return steps[:] if self.horizon is None else steps[: bisect_right(steps, self.horizon)]

    def modes(self) -> list[ModeKeys]:
        """Return the modes seen, in the order of their first steps; GLOBAL is none."""
        firsts = {mode: min(numbers.values()) for mode, numbers in self.index.mode_steps.items()}
        shown = [one for one, at in firsts.items() if self.horizon is None or at <= self.horizon]
        return sorted(shown, key=firsts.__getitem__)

    def mode(self, global_step: int) -> ModeKeys | None:
        """Return the mode of a global step, or None if the step is not known."""
        return self.mode_modestep(global_step)[0]

    def mode_step(self, global_step: int) -> int | None:
        """Return the step within its mode of a global step, or None if it is not known."""
        return self.mode_modestep(global_step)[1]

    def mode_modestep(self, global_step: int) -> tuple[ModeKeys | None, int | None]:
        """Return `mode` and `mode_step` together."""
        if global_step not in self.index.files:
            self.maybe_refresh()
        shown = self.horizon is None or global_step <= self.horizon
        return (self.index.mode_of(global_step) if shown else None) or (None, None)

    def global_step(self, mode: ModeKeys | None, mode_step: int) -> int | None:
        """Return the global step of a step within a mode, or None; a GLOBAL step is itself."""
        place = self._global(mode_step, mode or ModeKeys.GLOBAL)
        if place is None:
            self.maybe_refresh()
            place = self._global(mode_step, mode or ModeKeys.GLOBAL)
        return place

    def workers(self) -> list[str]:
        """Return the workers whose collections files are there, sorted."""
        self.maybe_refresh()
        return list(self.index.workers)

    # -- collections -------------------------------------------------------------------------

    def collections(self) -> dict[str, Collection]:
        """Return the collections by name; changes to them are this trial object's own."""
        if self._collections_version != self.index.collections_version:
            self._collections_version = self.index.collections_version
            for name, collection in self.index.collections.items():
                if name in self._collections:
                    self._collections[name].absorb(collection)
                else:
                    self._collections[name] = collection.copy()
        return self._collections

    def collection(self, coll_name: str) -> Collection:
        """Return a collection; an unknown one is empty, and kept for the caller to fill."""
        return self.collections().setdefault(coll_name, Collection(coll_name))

    def inputs(self, step: int, mode: ModeKeys | None = ModeKeys.GLOBAL) -> list[Array]:
        """Return the values at a step of the tensors of collection ``inputs``."""
        return self._values_of(self.tensor_names(collection="inputs"), step, mode)

    def labels(self, step: int, mode: ModeKeys | None = ModeKeys.GLOBAL) -> list[Array]:
        """Return the values at a step of the tensors with ``label`` in their names."""
        return self._values_of(self.tensor_names(regex="labels*"), step, mode)

    def predictions(self, step: int, mode: ModeKeys | None = ModeKeys.GLOBAL) -> list[Array]:
        """Return the values at a step of the tensors with ``prediction`` in their names."""
        return self._values_of(self.tensor_names(regex="predictions*"), step, mode)

    def _values_of(self, names: list[str], step: int, mode: ModeKeys | None) -> list[Array]:
        """Return values in the order of the number behind the last ``_`` of the names."""
        saved = set(self.tensor_names(step=step, mode=mode))

        def number(name: str) -> int:
            tail = name.rpartition("_")[2]
            return int(tail) if tail.isdecimal() else 0

        there = [name for name in names if name in saved]
        return [self.tensor(name).value(step, mode) for name in sorted(there, key=number)]

    # -- waiting -----------------------------------------------------------------------------

    def has_passed_step(self, step: int, mode: ModeKeys | None = ModeKeys.GLOBAL) -> StepState:
        """Say whether a step is there, was never saved, or may still come."""
        self.maybe_refresh()
        return self._state(step, mode or ModeKeys.GLOBAL)

    def wait_for_steps(
        self, required_steps: Iterable[int], mode: ModeKeys | None = ModeKeys.GLOBAL
    ) -> None:
        """Return when all the steps are there.

        Raises
        ------
        StepUnavailable
            If one of them was not saved, or lies behind the step that is being judged.
        NoMoreData
            If the training job has ended before one of them.
        """
        mode = mode or ModeKeys.GLOBAL
        for step in required_steps:
            refreshing, self.dynamic_refresh = self.dynamic_refresh, self.horizon is None
            try:
                self._wait_for(step, mode)
            finally:
                self.dynamic_refresh = refreshing

    def _wait_for(self, step: int, mode: ModeKeys) -> None:
        while (state := self.has_passed_step(step, mode)) is not StepState.AVAILABLE:
            if state is StepState.UNAVAILABLE or self.horizon is not None:
                known = self._known_steps(mode)
                last = known[-1][0] if known else -1
                if self.loaded_all_steps and step > last:
                    raise NoMoreData(step, mode, last)
                raise StepUnavailable(step, mode)
            self.clock.sleep(POLL_S)
