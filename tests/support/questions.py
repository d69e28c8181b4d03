"""The questions that the recorded answers answer: every documented method, many arguments."""

from collections.abc import Iterator
from typing import Any

Query = dict[str, Any]
TRAIN, EVAL = {"$mode": "TRAIN"}, {"$mode": "EVAL"}
PREDICT, GLOBAL = {"$mode": "PREDICT"}, {"$mode": "GLOBAL"}


def trial_queries(steps: tuple[int, ...], mode_steps: tuple[int, ...]) -> Iterator[Query]:
    """Every documented method of a trial."""
    for call in ("attr:name", "attr:num_workers", "workers", "modes", "tensor_names", "steps"):
        yield {"on": "trial", "call": call}
    yield {"on": "trial", "call": "collections"}
    yield {"on": "trial", "call": "steps", "kwargs": {"show_incomplete_steps": True}}
    for mode in (TRAIN, EVAL, PREDICT, GLOBAL):
        yield {"on": "trial", "call": "steps", "args": [mode]}
        yield {"on": "trial", "call": "tensor_names", "kwargs": {"mode": mode}}
    for step in steps:
        for call in ("mode", "mode_step", "mode_modestep", "has_passed_step"):
            yield {"on": "trial", "call": call, "args": [step]}
        yield {"on": "trial", "call": "tensor_names", "kwargs": {"step": step}}
    for step in mode_steps:
        for mode in (TRAIN, EVAL, PREDICT):
            yield {"on": "trial", "call": "global_step", "args": [mode, step]}
            yield {"on": "trial", "call": "has_passed_step", "args": [step, mode]}
            kwargs = {"step": step, "mode": mode}
            yield {"on": "trial", "call": "tensor_names", "kwargs": kwargs}
    for regex in ("loss", ["^w", "fc"], "no such", "("):
        yield {"on": "trial", "call": "tensor_names", "kwargs": {"regex": regex}}
    for name in ("losses", "weights"):
        yield {"on": "trial", "call": "tensor_names", "kwargs": {"collection": name}}
    yield {"on": "trial", "call": "tensor_names_of_collection_object", "args": ["losses"]}
    both = {"regex": "loss", "collection": "losses"}
    yield {"on": "trial", "call": "tensor_names", "kwargs": both}
    for name in ("loss", "nope"):
        yield {"on": "trial", "call": "has_tensor", "args": [name]}
        yield {"on": "trial", "call": "tensor", "args": [name]}


def tensor_queries(
    name: str, steps: tuple[int, ...], mode_steps: tuple[int, ...]
) -> Iterator[Query]:
    """Every documented method of a tensor, but for reductions."""
    on = {"on": "tensor", "name": name}
    for mode in (TRAIN, EVAL, PREDICT, GLOBAL):
        yield {**on, "call": "steps", "args": [mode]}
    yield {**on, "call": "values"}
    yield {**on, "call": "values", "kwargs": {"mode": EVAL}}
    yield {**on, "call": "steps", "kwargs": {"show_incomplete_steps": True}}
    for call in ("value", "shape", "workers", "reduction_values"):
        for step in steps:
            yield {**on, "call": call, "args": [step]}
        for step in mode_steps:
            for mode in (TRAIN, EVAL):
                yield {**on, "call": call, "args": [step], "kwargs": {"mode": mode}}
    for number in (None, 1, 2, 100):
        yield {**on, "call": "prev_steps", "args": [steps[-2], number]}
        yield {**on, "call": "prev_steps", "args": [mode_steps[-1], number, TRAIN]}
    yield {**on, "call": "value", "args": [steps[0]], "kwargs": {"worker": "worker_0"}}
    yield {**on, "call": "value", "args": [steps[0]], "kwargs": {"worker": "nobody"}}


def reduction_queries(name: str, steps: tuple[int, ...]) -> Iterator[Query]:
    """Every reduction, of values and of magnitudes, and one that does not exist."""
    operations = ("min", "max", "mean", "std", "variance", "sum", "prod", "l1", "l2", "nope")
    for step in steps:
        for operation in operations:
            for absolute in (False, True):
                kwargs = {"abs": absolute}
                yield {
                    "on": "tensor",
                    "name": name,
                    "call": "reduction_value",
                    "args": [step, operation],
                    "kwargs": kwargs,
                }


def uneven_queries() -> Iterator[Query]:
    """Questions about the uneven trial, by worker too."""
    yield from trial_queries(steps=(0, 2, 3, 4, 5, 6), mode_steps=(0, 1, 2))
    for name in ("loss", "weight"):
        yield from tensor_queries(name, steps=(0, 2, 4, 5), mode_steps=(0, 1))
        for worker in ("worker_0", "worker_1", "worker_2"):
            on = {"on": "tensor", "name": name, "kwargs": {"worker": worker}}
            for step in (0, 2, 4):
                yield {**on, "call": "value", "args": [step]}
                yield {**on, "call": "shape", "args": [step]}
