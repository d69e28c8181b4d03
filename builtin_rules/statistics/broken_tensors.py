"""Tensors that are not finite: in which order they were computed, and which may pass."""

import re
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, Final, Generic, Protocol, TypeVar

import numpy as np

from builtin_rules.statistics.tensor_selection import SavedTensor, mode_of, numbers, view
from smdebug.core.collection import CollectionKeys
from smdebug.core.modes import ModeKeys

# The place of a tensor in the order of execution, by its collections; the first that has it counts.
ACTIVATION: Final = 2
_PLACES: Final = (
    (5, (CollectionKeys.METRICS, "optimizer", CollectionKeys.GRADIENT_NORMS)),
    (4, (CollectionKeys.GRADIENTS,)),
    (3, (CollectionKeys.LOSSES,)),
    (1, (CollectionKeys.WEIGHTS, CollectionKeys.BIASES, "parameters")),
    (0, (CollectionKeys.INPUTS, CollectionKeys.LABELS, "input_image", "input_sequence")),
)
_GRADIENT, _LOSS = 4, 3
_PARAMETER: Final = 1
_MASK: Final = re.compile(r"(?i)mask|attn|attention")
_ORDER: Final = "model/execution_order/"
_SEPARATOR: Final = re.compile(r"[/_.]")
_NESTED: Final = re.compile(r"[._]")  # between the names of a module and of one in it
_SKIPPED: Final = "optimizer/skipped"
_ROWS: Final = 10  # of which `_MANY` may not be broken, nor two in a row
_MANY: Final = 3
_SEARCH_ROWS: Final = 20  # as long as a gradient scaler may search its scale


_Row = tuple[SavedTensor, ModeKeys | None]  # a tensor in the rows of a mode


class BrokenTensor(Protocol):
    """A tensor, how many of its elements are not finite, and whether any is NaN."""

    @property
    def saved(self) -> SavedTensor:
        """The tensor and its worker."""
        ...

    @property
    def number(self) -> int:
        """How many elements are not finite."""
        ...

    @property
    def has_nan(self) -> bool:
        """Whether any of them is NaN."""
        ...


_B = TypeVar("_B", bound=BrokenTensor)


class ExecutionOrder:
    """The order in which the tensors of a step are computed, by collections and modules."""

    def __init__(self, trial: Any, step: int) -> None:
        self._places = {
            name: place
            for place, collections in reversed(_PLACES)
            for collection in collections
            for name in trial.tensor_names(step=step, collection=collection)
        }
        self._modules = {
            name.removeprefix(_ORDER): _scalar(trial, name)
            for name in trial.tensor_names()
            if name.startswith(_ORDER)
        }
        self._containers = {
            module[: separator.start()]
            for module in self._modules
            for separator in _NESTED.finditer(module)
        }

    def place(self, name: str) -> int:
        """Return the place of a tensor by its collection; that of activations if it has none."""
        return self._places.get(name, ACTIVATION)

    def position(self, broken: BrokenTensor) -> tuple[object, ...]:
        """Return a sort key; gradients are computed in the reverse order, NaN comes first."""
        name = broken.saved.name
        place = self.place(name)
        modules = self._modules.keys() & _possible_modules(name) if self._modules else ()
        module = min(modules, key=lambda module: (-len(module), module), default="")
        number = self._modules.get(module, float("inf"))
        # The output of a container follows those of its modules.
        contains = place == ACTIVATION and module in self._containers
        if place == _GRADIENT:
            number = -number if module else number
        is_output = "_output" in name
        return place, contains, number, is_output, not broken.has_nan, name


def _possible_modules(tensor: str) -> set[str]:
    """Return the names of modules that a tensor may be a parameter, gradient or output of.

    >>> sorted(_possible_modules("gradient/fc1.bias"))
    ['bias', 'fc1', 'fc1.bias', 'gradient', 'gradient/fc1', 'gradient/fc1.bias']
    """
    separators = [*_SEPARATOR.finditer(tensor)]
    starts = [0, *(separator.end() for separator in separators)]
    ends = [*(separator.start() for separator in separators), len(tensor)]
    return {tensor[start:end] for start in starts for end in ends if start <= end}


def _scalar(trial: Any, name: str) -> float:
    tensor = trial.tensor(name)
    step = tensor.first_step
    array = numbers(SavedTensor(tensor, tensor.workers(step)[0]), step)
    return float("inf") if array is None else float(np.min(array))


class PassingValues(Generic[_B]):
    """Tells values that are broken for good from those that may pass."""

    def __init__(self) -> None:
        self._history: dict[_Row, deque[bool]] = {}
        self._rows: dict[SavedTensor, int] = {}  # for how many rows it has been broken
        self._finite: set[SavedTensor] = set()  # those that have been finite
        # By tensor and mode: what may pass in the latest row, and its step.
        self._latest: dict[_Row, tuple[_B, int]] = {}
        self._last: dict[ModeKeys | None, int] = {}  # the latest step of each mode
        self._skipped: set[_Row] = set()  # broken in the latest row, whose update was skipped

    def unsettled(self) -> list[tuple[_B, int]]:
        """Return the broken tensors that may pass and were not saved again, and their steps.

        Gradients and norms have passed once any later step of their mode was judged.
        """
        items = [
            (item, step)
            for (saved, mode), (item, step) in self._latest.items()
            if step == self._last[mode] or _is_loss_or_metric(saved, step)
        ]
        return sorted(items, key=lambda pair: pair[1])

    def lasting(self, examined: Sequence[_B], order: ExecutionOrder, step: int) -> set[SavedTensor]:
        """Return the tensors of a step that are broken for good; the others may pass."""
        if not examined:
            return set()
        trial: Any = examined[0].saved.tensor.trial
        parameters: dict[str, bool] = {}  # whether all that a worker saved are finite
        for item in examined:
            if order.place(item.saved.name) == _PARAMETER:
                worker = item.saved.worker
                parameters[worker] = parameters.get(worker, True) and not item.number
        skips = {
            worker: is_skipped(trial, step, worker)
            for worker in {item.saved.worker for item in examined if item.number}
        }
        metrics = _metrics(trial, step)
        modes = [*trial.modes_at(step)]
        lasting = set()
        for item in examined:
            name, worker = item.saved.name, item.saved.worker
            place = order.place(name)
            if place < _LOSS:
                lasting.add(item.saved)
                continue
            mode = mode_of(trial, step, [name]) if len(modes) > 1 else next(iter(modes), None)
            if not self._passes(
                item,
                (item.saved, mode),
                place,
                step,
                is_metric=name in metrics,
                skipped=skips.get(worker, False),
                sound=parameters.get(worker, False),
            ):
                lasting.add(item.saved)
        return lasting

    def _passes(
        self,
        item: _B,
        key: _Row,
        place: int,
        step: int,
        *,
        is_metric: bool,
        skipped: bool,
        sound: bool,
    ) -> bool:
        """Record a row of a loss, gradient or metric, and return whether it may pass."""
        is_broken = item.number > 0
        of_optimizer = place >= _GRADIENT and not is_metric
        passes = self._row_passes(
            item, key, place, of_optimizer=of_optimizer, skipped=skipped, sound=sound
        )
        is_known = item.saved in self._finite or not is_metric
        self._last[key[1]] = step
        self._latest.pop(key, None)
        if is_broken and passes and is_known and (not skipped or key in self._skipped):
            self._latest[key] = item, step
        if is_broken and skipped:
            self._skipped.add(key)
        else:
            self._skipped.discard(key)
        return passes

    def _row_passes(
        self,
        item: _B,
        key: _Row,
        place: int,
        *,
        of_optimizer: bool,
        skipped: bool,
        sound: bool,
    ) -> bool:
        saved, is_broken = item.saved, item.number > 0
        rows = self._history.setdefault(key, deque(maxlen=_ROWS))
        if is_broken and skipped and of_optimizer:
            return True
        rows.append(is_broken)
        if not is_broken:
            self._finite.add(saved)
            self._rows.pop(saved, None)
            return True
        self._rows[saved] = self._rows.get(saved, 0) + 1
        if place >= _GRADIENT and not of_optimizer:
            return saved not in self._finite or _is_rare(rows)
        may_search = of_optimizer and (sound or saved not in self._finite)
        return _is_rare(rows) or (may_search and self._rows[saved] <= _SEARCH_ROWS)


def _is_rare(rows: Iterable[bool]) -> bool:
    """Return whether the last of some rows is the only one of two, and one of few."""
    flags = [*rows]
    return not all(flags[-2:] if len(flags) > 1 else [False]) and sum(flags) < _MANY


def _metrics(trial: Any, step: int) -> set[str]:
    return {*trial.tensor_names(step=step, collection=CollectionKeys.METRICS)}


def _is_loss_or_metric(saved: SavedTensor, step: int) -> bool:
    trial: Any = saved.tensor.trial
    losses = trial.tensor_names(step=step, collection=CollectionKeys.LOSSES)
    return saved.name in losses or saved.name in _metrics(trial, step)


def is_skipped(trial: Any, step: int, worker: str) -> bool:
    """Return whether a gradient scaler skipped the update, or has lowered its scale."""
    if trial.has_tensor(_SKIPPED):
        flag = view(SavedTensor(trial.tensor(_SKIPPED), worker), step)
        if flag is not None:
            return bool(flag.any())
    for name in trial.tensor_names(step=step, collection=CollectionKeys.LOSS_SCALES):
        saved = SavedTensor(trial.tensor(name), worker)
        scales = [
            float(np.min(array))
            for earlier in saved.tensor.prev_steps(step, 2)
            if (array := numbers(saved, earlier)) is not None
        ]
        if len(scales) > 1 and scales[-1] < scales[0]:
            return True
    return False


def is_mask(saved: SavedTensor, step: int) -> bool:
    """Return whether a tensor without NaN is a mask: minus infinity on purpose."""
    array = numbers(saved, step)
    trial: Any = saved.tensor.trial
    if array is None or bool((array == np.inf).any()):
        return False
    if ExecutionOrder(trial, step).place(saved.name) not in {0, ACTIVATION}:
        return False
    finite = array[np.isfinite(array)]
    return _MASK.search(saved.name) is not None or (finite.size > 0 and not finite.any())
