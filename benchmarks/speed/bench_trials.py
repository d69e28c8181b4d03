"""The trials of the benchmarks: written once into a folder, in the layout both libraries read.

Each has a mark with its measures beside it, so that one that is half written, or of another scale,
is written anew.
"""

import json
import math
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rule_core.format.paths import event_key, index_key
from smdebug.core.modes import ModeKeys
from smdebug.core.writer import TrialWriter

Array = NDArray[np.float32]
POOL = 1 << 22  # random numbers that values are cut from
WORKER = "worker_0"
GRADIENTS = {"gradients": "^gradient/"}
FULL_TENSORS = 0.1  # below this scale tensors shrink as well as steps
ROWS = 32  # of every tensor
EVAL_EVERY = 5  # every so many steps of the trial for all rules is one of evaluation


class Size(NamedTuple):
    """How large a trial is: steps, `fewest` at any scale, tensors a step, elements, workers."""

    steps: int
    tensors: int
    elements: int
    workers: int = 1
    fewest: int = 2

    def scaled(self, scale: float) -> "Size":
        """Return so many times the steps; smaller tensors below `FULL_TENSORS`."""
        columns = round(self.elements / ROWS * min(1.0, scale / FULL_TENSORS))
        return self._replace(
            steps=max(self.fewest, round(self.steps * scale)),
            elements=1 if self.elements == 1 else ROWS * max(1, columns),
        )

    @property
    def values(self) -> int:
        """The number of tensors in all steps of all workers."""
        return self.steps * self.tensors * self.workers


SIZES = {
    "small": Size(1000, 50, 256),
    "medium": Size(200, 50, 1 << 16),
    "large": Size(20, 20, 1 << 22),
    "scalars": Size(20_000, 5, 1, fewest=12),
    "reductions": Size(1000, 50, 1),
    "workers": Size(100, 50, 256, 8),
    "rules": Size(200, 50, 1 << 16, fewest=100),  # with less some rule judges nothing
    "opening": Size(10_000, 2, 1),
    "opening-all": Size(100_000, 2, 1),
    "memory": Size(60, 20, 1 << 22),
    "tiny": Size(10, 3, 256, fewest=10),
}


class Values:
    """Cuts arrays out of one pool of normal numbers: cheap, and different at every step."""

    def __init__(self, size: Size) -> None:
        self._pool = np.random.default_rng(0).standard_normal(POOL + size.elements, np.float32)
        self._elements = size.elements
        self._shape = (ROWS, size.elements // ROWS) if size.elements > 1 else (1,)

    def __call__(self, seed: int) -> Array:
        """Return an array of the trial's shape."""
        start = seed * 7919 % POOL
        return self._pool[start : start + self._elements].reshape(self._shape)


def gradients(size: Size, make: Values, step: int, worker: int = 0) -> dict[str, Array]:
    """Return the gradients of one step."""
    names = (f"gradient/layer{number:02}.weight" for number in range(size.tensors))
    return {name: make(step * 97 + n + worker * 31) for n, name in enumerate(names)}


def plain(root: Path, size: Size) -> None:
    """Write a trial of gradients."""
    make = Values(size)
    with ExitStack() as stack:
        writers = [
            stack.enter_context(
                TrialWriter(
                    root,
                    collections=GRADIENTS,
                    worker=f"worker_{number}",
                    num_workers=size.workers,
                    end_job=number == 0,
                )
            )
            for number in range(size.workers)
        ]
        for step in range(size.steps):
            for number, writer in enumerate(writers):
                writer.step(step, gradients(size, make, step, number), mode=ModeKeys.TRAIN)


def repeated(root: Path, size: Size) -> None:
    """Write a trial of gradients all of whose event files are one file, under many names."""
    with TrialWriter(root, collections=GRADIENTS) as writer:
        writer.step(0, gradients(size, Values(size), 0), mode=ModeKeys.TRAIN)
        for event in _copied_indexes(root, size):
            os.link(root / event_key(0, WORKER), event)


def opened(root: Path, size: Size) -> None:
    """Write a trial of losses fast: its event files are copies of the first."""
    with TrialWriter(root, collections={"losses": "^loss/"}) as writer:
        values = {f"loss/{number}": np.float32(1) for number in range(size.tensors)}
        writer.step(0, values, mode=ModeKeys.TRAIN)
        content = (root / event_key(0, WORKER)).read_bytes()
        for event in _copied_indexes(root, size):
            event.write_bytes(content)


def _copied_indexes(root: Path, size: Size) -> Iterator[Path]:
    """Write the index files of all steps after the first; yield where their event files belong."""
    index = json.loads((root / index_key(0, WORKER)).read_bytes())
    for step in range(1, size.steps):
        key = event_key(step, WORKER)
        index["meta"] |= {"mode_step": step, "event_file_name": key}
        event, path = root / key, root / index_key(step, WORKER)
        event.parent.mkdir()
        yield event
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(index), "utf-8")


def scalars(root: Path, size: Size) -> None:
    """Write a trial of losses, each of one number, that decrease."""
    names = [f"loss/{number}" for number in range(size.tensors)]
    with TrialWriter(root, collections={"losses": "^loss/"}) as writer:
        for step in range(size.steps):
            loss = np.full(1, decreasing(step, size), np.float32)
            writer.step(step, dict.fromkeys(names, loss), mode=ModeKeys.TRAIN)


def decreasing(step: int, size: Size) -> float:
    """Return a loss that falls by 1 % at each step, or to 1e-30 over a long trial."""
    return math.exp(-step * min(0.01, 69 / size.steps))


def reductions(root: Path, size: Size) -> None:
    """Write a trial of reductions of gradients, four for each."""
    names = [f"gradient/layer{number:02}.weight" for number in range(size.tensors)]
    kinds = [("mean", True), ("mean", False), ("max", True), ("std", False)]
    with TrialWriter(root, collections=GRADIENTS) as writer:
        for step in range(size.steps):
            saved = {kind: np.float32(0.1 + step / 1e6) for kind in kinds}
            writer.step(step, mode=ModeKeys.TRAIN, reductions=dict.fromkeys(names, saved))


def for_all_rules(root: Path, size: Size) -> None:
    """Write a trial that has what twelve rules read: weights, gradients, activations, losses."""
    make = Values(size)
    patterns = GRADIENTS | {"weights": r"^layer\d+\.weight$", "losses": "^loss$"}
    with TrialWriter(root, collections=patterns) as writer:
        for step in range(size.steps):
            evaluates = step % EVAL_EVERY == EVAL_EVERY - 1
            writer.step(
                step,
                dict(_healthy(size, make, step, evaluates=evaluates)),
                mode=ModeKeys.EVAL if evaluates else ModeKeys.TRAIN,
            )


def _healthy(size: Size, make: Values, step: int, *, evaluates: bool) -> Iterator[tuple[str, Any]]:
    """Yield the tensors of one step of a training that no rule objects to."""
    layers = (size.tensors - 2) // 4
    loss = decreasing(step, size)
    yield "loss", np.full(1, loss * (1.02 if evaluates else 1.0), np.float32)
    for number in range(layers):
        seed = step * 97 + number
        inputs = make(seed)
        if not evaluates:
            yield f"gradient/layer{number:02}.weight", make(seed + 1) * np.float32(0.01)
        yield f"layer{number:02}.weight", make(number) + np.float32(1e-3) * step * make(number + 1)
        yield f"layer{number:02}_relu_input", inputs
        yield f"layer{number:02}_relu_output", np.maximum(inputs, np.float32(0))
    yield "last_tanh_input", make(step)


WRITERS: dict[str, Callable[[Path, Size], None]] = {
    "small": plain,
    "medium": plain,
    "large": repeated,
    "scalars": scalars,
    "reductions": reductions,
    "workers": plain,
    "rules": for_all_rules,
    "opening": opened,
    "opening-all": opened,
    "memory": repeated,
    "tiny": plain,
}


def written(name: str, folder: Path, scale: float) -> tuple[Path, Size]:
    """Return a trial of the benchmarks and its size; write it if it is not there."""
    size = SIZES[name].scaled(scale)
    root, mark = folder / name, folder / f"{name}.written"
    whole = json.dumps(size)
    if not mark.is_file() or mark.read_text("utf-8") != whole:
        mark.unlink(missing_ok=True)
        shutil.rmtree(root, ignore_errors=True)
        WRITERS[name](root, size)
        mark.write_text(whole, "utf-8")
    return root, size


def warm(root: Path) -> None:
    """Read all files of a trial once, so that they lie in the page cache."""
    buffer = memoryview(bytearray(1 << 22))
    seen = set()
    for path in root.rglob("*"):
        status = path.stat()
        if status.st_ino not in seen and path.is_file():
            seen.add(status.st_ino)
            with path.open("rb", buffering=0) as file:
                while file.readinto(buffer):
                    pass
