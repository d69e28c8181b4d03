"""Trial: queries over the tensors that a training job saved.

Several trials can share one `TrialIndex`: each rule has its own trial, with its own collections
and horizon, over the same data.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, NamedTuple, Self

from rule_core.clock import Clock
from rule_core.exceptions import NoMoreData, StepUnavailable, TensorUnavailable
from rule_core.format.index_file import shared_names
from rule_core.model import patterns
from rule_core.model.collection import Collection
from rule_core.model.segments import SEGMENT_STEPS, segment_of
from rule_core.modes import ModeKeys
from rule_core.reading.trial_index import TrialIndex
from rule_core.trials.snapshot_view import TrialView
from rule_core.trials.tensor import Array, StepState, Tensor

MISSED_KEPT: Final = 20
SELECTIONS_KEPT: Final = 256  # of names by a pattern or collection


class _Selection(NamedTuple):
    """The names that a query selects of some names, and what they depend on.

    Attributes
    ----------
    include_regex, tensor_names
        Those of the collection when it was queried; empty for patterns.
    """

    names: tuple[str, ...]
    include_regex: list[Any]
    tensor_names: AbstractSet[str]
    selected: list[str]


class _AllNames(NamedTuple):
    """All names of a mode, sorted, since which step all are there, and where their steps are."""

    first_steps: Mapping[str, Sequence[int]]
    since: int
    names: tuple[str, ...]


_NO_NAMES: Final = _AllNames({}, 0, ())


class Trial(TrialView):
    """The tensors that one training job saved, opened by `create_trial`.

    Queries look for new files first, except inside `smdebug.analysis.utils.no_refresh` or once
    all files of an ended training job are loaded. In S3, where each look costs requests, queries
    about single tensors and steps look at most once a second; `steps`, `tensor_names`, `workers`,
    `has_passed_step` and `refresh_data` always look, and so does the first query in a
    `smdebug.analysis.utils.refresh` block. With the default ``mode``, GLOBAL, steps are global
    steps; otherwise they are steps of the mode.

    Attributes
    ----------
    name, path
        The arguments.
    missed
        Descriptions of what was requested but does not exist; at most `MISSED_KEPT`.
    """

    def __init__(self, name: str, path: str, index: TrialIndex, clock: Clock | None = None) -> None:
        super().__init__(index, clock)
        self.name = name
        self.path = path
        self.missed: dict[str, None] = {}
        self._tensors: dict[str, Tensor] = {}
        self._collections: dict[str, Collection] = {}
        self._copied_versions: dict[str, int] = {}  # by name of a collection
        # By the identity of the names, and the name of a collection or patterns.
        self._selections: dict[tuple[int, str | tuple[str, ...]], _Selection] = {}
        self._all_names: dict[ModeKeys, _AllNames] = {}

    @classmethod
    def over(cls, name: str, path: str, index: TrialIndex, clock: Clock | None = None) -> Self:
        """Return a trial over an index; the constructors of subclasses take a path instead."""
        view = object.__new__(cls)
        Trial.__init__(view, name, path, index, clock)
        return view

    def share(self) -> Self:
        """Return another view of the same data, with its own collections and horizon."""
        view = self.over(self.name, self.path, self.index, self.clock)
        view.is_whole = self.is_whole
        return view

    def __repr__(self) -> str:
        return f"Trial(name={self.name!r}, path={self.path!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Trial) and (self.name, self.path) == (other.name, other.path)

    def __hash__(self) -> int:
        return hash((self.name, self.path))

    @property
    def range_steps(self) -> tuple[int | None, int | None] | None:
        """The range of steps passed to `create_trial`."""
        return self.index.range_steps

    @property
    def num_workers(self) -> int:
        """The number of processes that write the trial, as they report it."""
        return self.index.num_workers

    @property
    def worker_set(self) -> set[str]:
        """The workers with collections files; once the job has ended, all workers with steps."""
        return set(self.index.workers)

    @property
    def last_complete_step(self) -> int:
        """The last global step that all workers wrote; -1 before the first."""
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
            Only names saved at this step; the first positional argument. (A boolean in this
            position, as in older versions, and `show_prefixed_tensors` are ignored.)
        mode
            Only names saved in this mode.
        regex
            Only names that contain a match of this pattern or one of these patterns.
        collection
            Only members of this collection, given as an object or by name.

        Raises
        ------
        ValueError
            If both `regex` and `collection` are given.
        TypeError
            If one of them has the wrong type.
        re.error, SMDebugValueError
            If a pattern is invalid.
        """
        del show_prefixed_tensors
        if step is None and not isinstance(first, bool):
            step = first
        if regex is not None and collection is not None:
            raise ValueError("Select tensor names by regex or by collection, not by both.")
        if step is None:
            self.maybe_refresh()
        elif self.dynamic_refresh:
            self._look()
        names = self._names(step, mode or ModeKeys.GLOBAL)
        if regex is not None:
            selected, kind, query = self._matching(names, regex), "pattern", regex
        elif collection is not None:
            queried: object = collection
            if isinstance(collection, str):
                queried = self.collection(collection)
            if not isinstance(queried, Collection):
                raise TypeError(f"A collection must be a name or a Collection, got {collection!r}.")
            selected, kind, query = self._members(queried, names), "collection", queried.name
        else:
            return [*names]
        if self.missed or not selected:
            self._note_missed(selected, kind, query)
        return selected.copy()

    def _note_missed(self, result: object, kind: str, query: object) -> None:
        """Record a query without results, and forget it once it has results."""
        text = f"{kind} {query!r}"
        if result:
            self.missed.pop(text, None)
        elif len(self.missed) < MISSED_KEPT:
            self.missed[text] = None

    tensors = tensor_names

    def tensors_in_collection(self, coll_name: str | Collection) -> list[str]:
        """Return the names of a collection's tensors, sorted (compatibility method)."""
        return self.tensor_names(collection=coll_name)

    def tensors_matching_regex(self, regex_list: Any) -> list[str]:
        """Return the names that contain a match of a pattern, sorted (compatibility method)."""
        return self.tensor_names(regex=regex_list)

    def _names(self, step: int | None, mode: ModeKeys) -> tuple[str, ...]:
        """Return the names saved in a mode, at a step or at any step, sorted."""
        index = self.index
        if step is not None:
            global_step = self._global(step, mode)
            if global_step is None:
                return ()
            files = index.files.get(global_step, {})
            if len(files) == 1 and mode is ModeKeys.GLOBAL:  # as in most trials
                (file,) = files.values()
                return file.layout.names
            return index.tensors.names_at(global_step, mode)
        first_steps = self._steps_by_name(mode)
        horizon = self.horizon
        if horizon is None:
            return shared_names(tuple(sorted(first_steps)))
        keeps = horizon < SEGMENT_STEPS  # names are not forgotten
        kept = self._all_names.get(mode, _NO_NAMES) if keeps else _NO_NAMES
        is_known = kept.first_steps is first_steps and kept.since <= horizon
        if is_known and len(kept.names) == len(first_steps):
            return kept.names
        visible = (name for name, steps in first_steps.items() if self._shows_any(steps))
        names = shared_names(tuple(sorted(visible)))
        if keeps and len(names) == len(first_steps):
            self._all_names[mode] = _AllNames(first_steps, horizon, names)
        return names

    def _matching(self, names: tuple[str, ...], regex: Any) -> list[str]:
        """Return the names that match any of the patterns; do not modify them."""
        query = tuple(patterns.flatten(regex))
        cached = self._selections.get((id(names), query))
        if cached is not None and cached.names is names:
            return cached.selected
        selected = patterns.matching(names, query)
        self._keep(query, _Selection(names, [], set(), selected))
        return selected

    def _members(self, collection: Collection, names: tuple[str, ...]) -> list[str]:
        """Return the members of a collection among names; do not modify them."""
        include_regex, tensor_names = collection.include_regex, collection.fixed_names
        cached = self._selections.get((id(names), collection.name))
        if (
            cached is not None
            and cached.names is names
            and (cached.include_regex, cached.tensor_names) == (include_regex, tensor_names)
        ):
            return cached.selected
        members = collection.members(names)
        self._keep(
            collection.name, _Selection(names, include_regex.copy(), set(tensor_names), members)
        )
        return members

    def _keep(self, query: str | tuple[str, ...], selection: _Selection) -> None:
        if len(self._selections) >= SELECTIONS_KEPT:
            self._selections.clear()
        self._selections[id(selection.names), query] = selection

    def has_tensor(self, tname: str) -> bool:
        """Return whether any step seen so far has the tensor."""
        if not self._knows(tname):
            self._look()
        return self._knows(tname)

    def _knows(self, tname: str) -> bool:
        steps = self.index.names.get(tname)
        return steps is not None and self._shows_any(steps)

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
        tensor = self._tensors.get(tname)
        if tensor is None:
            tensor = self._tensors[tname] = Tensor(tname, self)
        return tensor

    # -- steps, modes, workers ---------------------------------------------------------------

    def steps(
        self, mode: ModeKeys | None = ModeKeys.GLOBAL, show_incomplete_steps: bool = False
    ) -> list[int]:
        """Return the steps of a mode, ascending; None is GLOBAL.

        Parameters
        ----------
        show_incomplete_steps
            Whether to include steps that some worker has not written yet.
        """
        self.maybe_refresh()
        mode = mode or ModeKeys.GLOBAL
        with_incomplete = show_incomplete_steps or self.horizon is not None
        if mode is ModeKeys.GLOBAL:
            steps = self._visible(self.index.steps)
            return list(steps) if with_incomplete else self.index.settled(steps)
        pairs = self._known_steps(mode)
        return [
            step
            for step, global_step in pairs
            if with_incomplete or self.index.settled([global_step])
        ]

    def modes(self) -> list[ModeKeys]:
        """Return the modes seen so far, without GLOBAL, in the order of their first steps."""
        index, horizon = self.index, self.horizon
        firsts = {
            mode: step
            for mode in index.mode_steps
            if (step := index.first_of_mode(mode, horizon)) is not None
        }
        visible = [mode for mode, step in firsts.items() if horizon is None or step <= horizon]
        return sorted(visible, key=firsts.__getitem__)

    def segment(self, step: int) -> int:
        """Return the segment of a global step: how often the training was resumed before it.

        A training that is resumed from a checkpoint repeats steps. The steps from one resume to
        the next are a segment; the first is 0. While a rule judges a step, it sees the steps of
        that segment only.
        """
        return segment_of(step)

    def mode(self, global_step: int) -> ModeKeys | None:
        """Return the mode of a global step, or None if the step is unknown."""
        return self.mode_modestep(global_step)[0]

    def mode_step(self, global_step: int) -> int | None:
        """Return the mode step of a global step, or None if the step is unknown."""
        return self.mode_modestep(global_step)[1]

    def modes_at(self, global_step: int) -> dict[ModeKeys, int]:
        """Return the mode step of a global step in each of its modes, TRAIN first.

        Most steps have one mode. A training and an evaluation of one step have a global step in
        common; `mode` is TRAIN then. The dictionary is empty if the step is unknown.
        """
        modes = self.index.tensors.modes_at(global_step)
        if not modes:
            self._look()
            modes = self.index.tensors.modes_at(global_step)
        return modes.copy() if self._is_visible(global_step) else {}

    @property
    def _global_to_mode(self) -> "StepModes":
        """The mode and mode step of each global step; public rules read it as in smdebug."""
        return StepModes(self)

    def mode_modestep(self, global_step: int) -> tuple[ModeKeys | None, int | None]:
        """Return `mode` and `mode_step` together."""
        return next(iter(self.modes_at(global_step).items()), (None, None))

    def global_step(self, mode: ModeKeys | None, mode_step: int) -> int | None:
        """Return the global step of a mode step, or None; a GLOBAL step is returned unchanged."""
        step = self._global(mode_step, mode or ModeKeys.GLOBAL)
        if step is None:
            self._look()
            step = self._global(mode_step, mode or ModeKeys.GLOBAL)
        return step

    def workers(self) -> list[str]:
        """Return the workers with collections files, sorted."""
        self.maybe_refresh()
        return list(self.index.workers)

    # -- collections -------------------------------------------------------------------------

    def collections(self) -> dict[str, Collection]:
        """Return the collections by name; changes to them affect this trial object only."""
        for name in self.index.collections:
            self.collection(name)
        return self._collections

    def collection(self, coll_name: str) -> Collection:
        """Return a collection; an unknown name creates an empty one for the caller to fill."""
        version = self.index.collections_version
        own = self._collections.get(coll_name)
        if own is not None and self._copied_versions.get(coll_name) == version:
            return own
        self._copied_versions[coll_name] = version
        shared = self.index.collections.get(coll_name)
        if own is None:
            own = Collection(coll_name) if shared is None else shared.copy()
            self._collections[coll_name] = own
        elif shared is not None:
            own.absorb(shared)
        return own

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
        """Return values ordered by the number after the last ``_`` of their names."""
        saved = set(self.tensor_names(step=step, mode=mode))

        def number(name: str) -> int:
            tail = name.rpartition("_")[2]
            return int(tail) if tail.isdecimal() else 0

        available = [name for name in names if name in saved]
        return [self.tensor(name).value(step, mode) for name in sorted(available, key=number)]

    # -- waiting -----------------------------------------------------------------------------

    def has_passed_step(self, step: int, mode: ModeKeys | None = ModeKeys.GLOBAL) -> StepState:
        """Return whether a step was saved, was never saved, or may still be saved."""
        self.maybe_refresh()
        return self._state(step, mode or ModeKeys.GLOBAL)

    def wait_for_steps(
        self, required_steps: Iterable[int], mode: ModeKeys | None = ModeKeys.GLOBAL
    ) -> None:
        """Wait until all the steps are available.

        Raises
        ------
        StepUnavailable
            If one of them was not saved, or comes after the step that is being evaluated.
        NoMoreData
            If the training job ended before one of them.
        """
        mode = mode or ModeKeys.GLOBAL
        for step in required_steps:
            if step == self.judged and mode is ModeKeys.GLOBAL and step in self.index.files:
                continue
            refreshing, self.dynamic_refresh = self.dynamic_refresh, self.horizon is None
            try:
                self._wait_for(step, mode)
            finally:
                self.dynamic_refresh = refreshing

    def _wait_for(self, step: int, mode: ModeKeys) -> None:
        while True:
            self._look()
            state = self._state(step, mode)
            if state is StepState.AVAILABLE:
                return
            if state is StepState.UNAVAILABLE or self.horizon is not None:
                pairs = self._known_steps(mode)
                last = pairs[-1][0] if pairs else -1
                if self.loaded_all_steps and step > last and self.judged is None:
                    raise NoMoreData(step, mode, last)
                raise StepUnavailable(step, mode)
            self.clock.sleep(self.pause_s)


class StepModes(Mapping[int, tuple[ModeKeys, int]]):
    """A live view of a trial: ``trial._global_to_mode[step]`` is ``(mode, mode_step)``."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial

    def __getitem__(self, global_step: int) -> tuple[ModeKeys, int]:
        """Return the mode and mode step of a visible global step."""
        mode, mode_step = self._trial.mode_modestep(global_step)
        if mode is None or mode_step is None:
            raise KeyError(global_step)
        return mode, mode_step

    def __iter__(self) -> Iterator[int]:
        return iter(self._trial.steps(show_incomplete_steps=True))

    def __len__(self) -> int:
        return len(self._trial.steps(show_incomplete_steps=True))

    def __repr__(self) -> str:
        return repr(dict(self))
