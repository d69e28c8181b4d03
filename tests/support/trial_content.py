"""All that a trial holds, as JSON, asked of whichever smdebug opened it."""

from collections.abc import Mapping
from typing import Any

from answers import encode


def content(trial: Any, modes: Mapping[str, Any]) -> dict[str, Any]:
    """Return names, steps, modes, workers, collections, values, shapes and reductions."""
    return {
        "workers": trial.workers(),
        "names": trial.tensor_names(),
        "modes": [mode.name for mode in trial.modes()],
        "steps": {name: trial.steps(mode) for name, mode in modes.items()},
        "mode_steps": [encode(trial.mode_modestep(step)) for step in trial.steps()],
        "collections": encode(trial.collections()),
        "members": {name: trial.tensor_names(collection=name) for name in trial.collections()},
        "tensors": {name: _tensor(trial.tensor(name), modes) for name in trial.tensor_names()},
    }


def _tensor(tensor: Any, modes: Mapping[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = {"original_name": tensor.original_name, "saved": []}
    for name, mode in modes.items():
        for step in tensor.steps(mode):
            for worker in tensor.workers(step, mode):
                saved = _saved(tensor, step, mode, worker)
                answer["saved"].append([name, step, worker, *saved])
    return answer


def _saved(tensor: Any, step: int, mode: Any, worker: str) -> list[Any]:
    """Return value, shape and reductions at one step of one worker, None where not saved."""
    return [
        _or_none(tensor.value, step, mode, worker),
        _or_none(tensor.shape, step, mode, worker),
        sorted(encode(tensor.reduction_values(step, mode, worker))["$dict"], key=str),
    ]


def _or_none(ask: Any, *args: Any) -> Any:
    try:
        return encode(ask(*args))
    except Exception as err:
        if type(err).__name__ in {"TensorUnavailableForStep", "ShapeUnavailableForStep"}:
            return None
        raise
