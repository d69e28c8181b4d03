"""A trial as the documents describe one: modes, reductions, collections; and one of two workers.

Global step g of `write` is step g - g // 4 of TRAIN, but every fourth one is step g // 4 of EVAL.
"""

from pathlib import Path

import numpy as np

from smdebug import Collection, modes
from smdebug.core.writer import TrialWriter

STEPS = 12
REDUCTIONS = ("min", "max", "mean", "prod", "std", "sum", "variance", "l1", "l2")
BY_NUMPY = {
    **{name: getattr(np, name) for name in ("min", "max", "mean", "prod", "std", "sum", "median")},
    "variance": np.var,
    "l1": lambda values: np.abs(values).sum(),
    "l2": lambda values: np.sqrt((values**2).sum()),
}
NAMES = ["gradient/fc_weight", "loss", "relu_output", "softmax_output", "weight"]
TRAIN_STEPS = [0, 1, 2, 3, 4, 5, 6, 7, 8]
EVAL_STEPS = [0, 1, 2]
EVAL_GLOBAL = [3, 7, 11]


def value(name: str, step: int) -> "np.ndarray[tuple[int, ...], np.dtype[np.float32]]":
    """Return what `write` saves of a tensor at a global step."""
    if name == "loss":
        return np.float32([1 / (step + 1)])
    return np.linspace(-1, 2, 6, dtype=np.float32).reshape(2, 3) * (step + 1)


def write(path: Path, *, steps: int = STEPS, ended: bool = True) -> None:
    """Write the trial; of ``weight`` reductions only, and ``softmax_output`` in EVAL only."""
    collections = [
        Collection("losses", ["loss"]),
        Collection("gradients", ["^gradient"]),
        Collection("relu", ["relu"]),
        Collection("named", tensor_names=["softmax_output"]),
    ]
    writer = TrialWriter(path, collections=collections, end_job=ended)
    for step in range(steps):
        in_training = step % 4 != 3
        names = NAMES[:3] if in_training else ["loss", "softmax_output"]
        weight = value("weight", step)
        stored = {
            (name, absolute): BY_NUMPY[name](np.abs(weight) if absolute else weight)
            for name in REDUCTIONS
            for absolute in (False, True)
        }
        writer.step(
            step,
            {name: value(name, step) for name in names},
            mode=modes.TRAIN if in_training else modes.EVAL,
            mode_step=step - step // 4 if in_training else step // 4,
            reductions={"weight": stored} if in_training else {},
        )
    writer.close()


def write_workers(path: Path, *, ended: bool = True) -> None:
    """Write a trial of two workers, of which the second has not written the last step."""
    writers = [
        TrialWriter(path, worker=f"worker_{rank}", num_workers=2, end_job=ended and rank == 1)
        for rank in range(2)
    ]
    for step in range(4):
        for rank, writer in enumerate(writers):
            if rank == 0 or step < 3:
                writer.step(step, {"w": np.full(2, 10 * step + rank), f"of_{rank}": 1.0})
    for writer in writers:
        writer.close()
