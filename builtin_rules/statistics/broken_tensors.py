"""Tensors that are not finite: in which order they were computed, and which may pass."""

import re
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np

from builtin_rules.statistics.tensor_selection import (
    SavedTensor,
    TensorKey,
    modes_by_name,
    numbers,
    view,
)
from smdebug.core.collection import CollectionKeys
from smdebug.core.modes import ModeKeys

# The place of a tensor in the order of execution, by its collections; the first that has it counts.
ACTIVATION: Final = 2
SCALARS: Final = "scalars"  # numbers of a log that have no other collection
_PLACES: Final = (
    (5, (CollectionKeys.METRICS, SCALARS, "optimizer", CollectionKeys.GRADIENT_NORMS)),
    (4, (CollectionKeys.GRADIENTS,)),
    (3, (CollectionKeys.LOSSES,)),
    (1, (CollectionKeys.WEIGHTS, CollectionKeys.BIASES, "parameters")),
    (0, (CollectionKeys.INPUTS, CollectionKeys.LABELS, "input_image", "input_sequence")),
)
_GRADIENT, _LOSS = 4, 3
_PARAMETER: Final = 1
_MASK: Final = re.compile(r"(?i)mask|attn|attention")
_DECISIVE: Final = re.compile(r"(?i)loss|weight|grad|norm(?!al)")  # scalars that are no metrics
_HOOK_SCALAR: Final = "scalar/"  # begins the names of numbers that hooks log
_ORDER: Final = "model/execution_order/"
_SEPARATOR: Final = re.compile(r"[/_.]")
_NESTED: Final = re.compile(r"[._]")  # between the names of a module and of one in it
_SKIPPED: Final = "optimizer/skipped"
_ROWS: Final = 10  # of which `_MANY` may not be broken, nor two in a row
_MANY: Final = 3
_SEARCH_ROWS: Final = 20  # as long as a gradient scaler may search its scale


_Row = tuple[TensorKey, ModeKeys | None]  # a tensor in the rows of a mode


class BrokenTensor(NamedTuple):
    """A tensor with elements that are not finite, or with none (`elements` is 0).

    Attributes
    ----------
    elements
        How many are not finite.
    has_nan
        Whether any of them is NaN.
    reduced
        The reduction that is not finite, if only reductions were saved; `elements` is 1 then.
    """

    saved: SavedTensor
    elements: int
    note: str
    has_nan: bool = False
    reduced: float | None = None


class ExecutionOrder:
    """The order in which the tensors of a step are computed, by collections and modules."""

    def __init__(self, trial: Any, step: int) -> None:
        self.trial = trial
        self._step = step

    @cached_property
    def _places(self) -> dict[str, int]:
        return {
            name: place
            for place, collections in reversed(_PLACES)
            for collection in collections
            for name in self.trial.tensor_names(step=self._step, collection=collection)
        }

    @cached_property
    def _modules(self) -> dict[str, float]:
        return {
            name.removeprefix(_ORDER): _scalar(self.trial, name)
            for name in self.trial.tensor_names()
            if name.startswith(_ORDER)
        }

    @cached_property
    def _containers(self) -> set[str]:
        return {
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


class Unsettled(NamedTuple):
    """A tensor that was broken in its latest row, that row's step, and whether it is a metric."""

    item: BrokenTensor
    step: int
    is_metric: bool


class PassingValues:
    """Tells values that are broken for good from those that may pass.

    A metric is a logged number that is no loss, norm, weight or gradient. It may be undefined for a
    while, so that only the end of the data tells whether it stays broken.
    """

    def __init__(self) -> None:
        # Whether the tensor was broken in its latest rows, if it was in any of them. All below but
        # `_finite` and `_last` is about these tensors.
        self._history: dict[_Row, deque[bool]] = {}
        self._rows: dict[TensorKey, int] = {}  # for how many rows it has been broken
        self._finite: set[TensorKey] = set()  # those that have been finite
        self._latest: dict[_Row, Unsettled] = {}  # what may pass in the latest row
        self._last: dict[ModeKeys | None, int] = {}  # the latest step of each mode
        self._skipped: set[_Row] = set()  # broken in the latest row, whose update was skipped

    def unsettled(self) -> list[Unsettled]:
        """Return the broken tensors that may pass and were not saved again, by step.

        Gradients and norms have passed once any later step of their mode was judged.
        """
        items = [
            latest
            for (_, mode), latest in self._latest.items()
            if latest.step == self._last[mode] or latest.is_metric or _is_loss(latest)
        ]
        return sorted(items, key=lambda latest: latest.step)

    def lasting(
        self,
        broken: Sequence[BrokenTensor],
        finite: Collection[TensorKey],
        order: ExecutionOrder,
        step: int,
    ) -> set[TensorKey]:
        """Return the tensors of a step that are broken for good; the others may pass.

        Parameters
        ----------
        broken, finite
            The tensors that were examined.
        """
        lasting: set[TensorKey] = set()
        if broken:
            lasting = self._lasting_of(broken, finite, order, step)
        if self._history:
            self._add_finite(finite, order, step)
        self._finite.update(finite)
        return lasting

    def _add_finite(self, finite: Collection[TensorKey], order: ExecutionOrder, step: int) -> None:
        """Record the rows of losses, gradients and metrics that are finite."""
        broken_before = {key for key, _ in self._history}
        passing = [key for key in finite if key in broken_before or order.place(key[0]) >= _LOSS]
        if not passing:
            return
        modes = modes_by_name(order.trial, step, [name for name, _ in passing])
        for key in passing:
            row = key, modes[key[0]]
            self._last[row[1]] = step
            self._rows.pop(key, None)
            self._latest.pop(row, None)
            self._skipped.discard(row)
            rows = self._history.get(row)
            if rows is not None:
                rows.append(False)
                if not any(rows):
                    del self._history[row]

    def _lasting_of(
        self,
        broken: Sequence[BrokenTensor],
        finite: Collection[TensorKey],
        order: ExecutionOrder,
        step: int,
    ) -> set[TensorKey]:
        """Record the rows of tensors that are broken, and return those that are so for good."""
        trial = order.trial
        places = {item.saved.key: order.place(item.saved.name) for item in broken}
        # Workers that saved parameters, all of which are finite.
        sound = {worker for name, worker in finite if order.place(name) == _PARAMETER}
        sound -= {worker for (_, worker), place in places.items() if place == _PARAMETER}
        # Workers with losses, all of which are finite.
        losing = {worker for name, worker in finite if order.place(name) == _LOSS}
        losing -= {worker for (name, worker) in places if order.place(name) == _LOSS}
        norms = trial.tensor_names(step=step, collection=CollectionKeys.GRADIENT_NORMS)
        skips = {worker: is_skipped(trial, step, worker) for worker in {key[1] for key in places}}
        metrics = _metrics(trial, step)
        modes = modes_by_name(trial, step, [name for name, _ in places])
        lasting: set[TensorKey] = set()
        for item in broken:
            key, place = item.saved.key, places[item.saved.key]
            row = key, modes[key[0]]
            skipped = skips[key[1]]
            if key[0] in metrics:
                self._record(item, row, step, is_metric=True, may_pass=key in self._finite)
            elif place < _LOSS:
                lasting.add(key)
            elif key[0] in norms and key[1] in losing and key not in self._finite:
                self._record(item, row, step, is_metric=False, may_pass=False)
            elif self._passes(row, place, skipped=skipped, sound=key[1] in sound):
                may_pass = not skipped or row in self._skipped
                self._record(item, row, step, is_metric=False, may_pass=may_pass)
            else:
                self._record(item, row, step, is_metric=False, may_pass=False)
                lasting.add(key)
            if skipped:
                self._skipped.add(row)
            else:
                self._skipped.discard(row)
        return lasting

    def _record(
        self, item: BrokenTensor, row: _Row, step: int, *, is_metric: bool, may_pass: bool
    ) -> None:
        """Record the latest row of a broken tensor."""
        self._last[row[1]] = step
        self._history.setdefault(row, deque(maxlen=_ROWS))
        self._latest.pop(row, None)
        if may_pass:
            self._latest[row] = Unsettled(item, step, is_metric)

    def _passes(self, row: _Row, place: int, *, skipped: bool, sound: bool) -> bool:
        """Count a row of a broken loss, gradient or norm, and return whether it may pass."""
        key, _ = row
        rows = self._history.setdefault(row, deque(maxlen=_ROWS))
        of_optimizer = place >= _GRADIENT
        if skipped and of_optimizer:
            return True
        rows.append(True)
        self._rows[key] = self._rows.get(key, 0) + 1
        may_search = of_optimizer and (sound or key not in self._finite)
        return _is_rare(rows) or (may_search and self._rows[key] <= _SEARCH_ROWS)


def _metrics(trial: Any, step: int) -> set[str]:
    """Return the names of the metrics at a step."""
    logged = trial.tensor_names(step=step, collection=SCALARS)
    by_hooks = [name for name in trial.tensor_names(step=step) if name.startswith(_HOOK_SCALAR)]
    scalars = {name for name in (*logged, *by_hooks) if not _DECISIVE.search(name)}
    return scalars.union(trial.tensor_names(step=step, collection=CollectionKeys.METRICS))


def _is_rare(rows: Iterable[bool]) -> bool:
    """Return whether the last of some rows is the only one of two, and one of few."""
    flags = [*rows]
    return not all(flags[-2:] if len(flags) > 1 else [False]) and sum(flags) < _MANY


def _is_loss(latest: Unsettled) -> bool:
    saved = latest.item.saved
    trial: Any = saved.tensor.trial
    return saved.name in trial.tensor_names(step=latest.step, collection=CollectionKeys.LOSSES)


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


def is_mask(saved: SavedTensor, step: int, order: ExecutionOrder) -> bool:
    """Return whether a tensor without NaN is a mask: minus infinity on purpose."""
    array = numbers(saved, step)
    if array is None or bool((array == np.inf).any()):
        return False
    if order.place(saved.name) not in {0, ACTIVATION}:
        return False
    finite = array[np.isfinite(array)]
    return _MASK.search(saved.name) is not None or (finite.size > 0 and not finite.any())
