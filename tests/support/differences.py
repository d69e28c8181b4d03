"""Where our answers differ from those of smdebug 1.0.34, why, and what ours are.

An entry stands for the recorded questions to which it applies, in the samples that it names. What
our answer is, is worked out here from the recorded answers or from the files themselves, never
by the code under test.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import rawtrial
from answers import encode
from recorded import Session

Json = Any
NUMBERS = "biufc"
WIDER = {"float16": "float32"}


@dataclass(frozen=True, slots=True)
class Asked:
    """One recorded question of a session; `root` is the trial's folder."""

    session: Session
    query: dict[str, Json]
    root: Path

    @property
    def call(self) -> str:
        return str(self.query["call"])

    @property
    def args(self) -> list[Json]:
        return list(self.query.get("args") or [])

    @property
    def kwargs(self) -> dict[str, Json]:
        return dict(self.query.get("kwargs") or {})

    @property
    def name(self) -> str:
        return str(self.query.get("name", ""))

    @property
    def recorded(self) -> Json:
        return self.query["out"]

    def raised(self, *names: str) -> bool:
        """Return whether the old library raised one of these."""
        out = self.recorded
        exc = out.get("$exc", {}) if isinstance(out, dict) else {}
        return str(exc.get("type", "")).rpartition(".")[2] in names

    def elsewhere(self, call: str, args: list[Json], name: str = "") -> Json:
        """Return the recorded answer to another question of the session."""
        for other in self.session.queries:
            asked = Asked(self.session, other, self.root)
            if (asked.call, asked.args, asked.kwargs, asked.name) == (call, args, {}, name):
                return copy.deepcopy(other["out"])
        raise LookupError(call)

    def saved(self, step: int | None = None) -> "np.ndarray":
        """Return the saved value that the question is about, out of the event file."""
        step = int(self.args[0]) if step is None else step
        return rawtrial.saved_value(self.root, self.name, step)


@dataclass(frozen=True, slots=True)
class Difference:
    """One reason to answer otherwise than the old library."""

    samples: tuple[str, ...]
    reason: str
    applies: Callable[[Asked], bool]
    ours: Callable[[Asked], Json]


def raises(name: str) -> Callable[[Asked], Json]:
    """Return what a recorded exception of this class looks like."""
    return lambda _: {"$exc": {"type": name}}


def reduced(asked: Asked) -> Json:
    """Return a reduction of the saved value, element by element, as numpy computes it."""
    value = asked.saved()
    operation = asked.args[1]
    flat = value.reshape(-1)
    # The magnitude of the least integer needs a wider type.
    flat = np.abs(flat) if asked.kwargs.get("abs") else flat
    wide = flat.astype(WIDER.get(flat.dtype.name, flat.dtype))
    if operation in {"l1", "l2"}:
        wide = wide if wide.dtype.kind == "f" else wide.astype(np.float64)
        found = np.linalg.norm(wide, int(operation[1]))
        return encode(found.astype(value.dtype if value.dtype.kind == "f" else np.float64))
    functions = {"variance": np.var, "median": np.median}
    return encode(functions.get(operation, getattr(np, operation, None))(flat))


def shapes_by_step(asked: Asked) -> Json:
    """Return the shapes of the recorded values."""
    pairs = asked.elsewhere("values", [], asked.name)["$dict"]
    return {"$dict": [[step, {"$tuple": value["$nd"]["shape"]}] for step, value in pairs]}


def is_norm(asked: Asked) -> bool:
    """Return whether it is a computed norm of anything but a vector of numbers."""
    return (
        asked.call == "reduction_value"
        and asked.args[1] in {"l1", "l2"}
        and asked.session.sample != "types"
        and not (asked.name.startswith(("shaperaw/", "labels_text")))
        and asked.saved().ndim != 1
    )


def of_types(*prefixes: str) -> Callable[[Asked], bool]:
    """Return whether the tensor is of one of these types (the sample names them so)."""
    return lambda asked: asked.name.partition("/")[0] in prefixes


def typed(asked: Asked) -> Json:
    """Return value, shape or reduction as the file has them."""
    value = asked.saved()
    assert value.dtype.name == asked.name.partition("/")[0]
    if asked.call == "reduction_value":
        return raises("SMDebugValueError")(asked) if asked.args[1] == "nope" else reduced(asked)
    return encode(value.shape if asked.call == "shape" else value)


def explicit(answers: dict[str, Json]) -> Callable[[Asked], Json]:
    """Return the answer written down for a call and its arguments."""
    return lambda asked: answers[_signature(asked)]


def asks(answers: dict[str, Json], title: str) -> Callable[[Asked], bool]:
    """Return whether an answer is written down for the question, in the session of this title."""
    return lambda asked: asked.session.title == title and _signature(asked) in answers


def _signature(asked: Asked) -> str:
    worker = asked.kwargs.get("worker", "")
    return " ".join(map(str, (asked.call, *asked.args, *([worker] if worker else []))))


WINDOW = {"attr:last_complete_step": 9}
UNDERSCORES: dict[str, Json] = {
    "workers 0": ["worker_0", "worker_1"],
    "value 0 worker_0": encode(np.zeros(2, np.float32)),
    "value 0 worker/0": {"$exc": {"type": "InvalidWorker"}},
}
INCOMPLETE: dict[str, Json] = {
    "has_passed_step 2 {'$mode': 'TRAIN'}": {"$stepstate": "AVAILABLE"},
    "wait_for_steps [2] {'$mode': 'TRAIN'}": None,
}
ALL = ("hook", "running", "sparse", "types", "workers", "workers_running")
SHARED = ("a_modes_dtypes", "c_multiworker", "d_running", "f_sparse_steps")

DIFFERENCES = (
    Difference(
        (*ALL, *SHARED),
        "documentation: trial.modes() returns a list (semantics 2, [option: list])",
        lambda asked: asked.call == "modes",
        lambda asked: asked.recorded["items"],
    ),
    Difference(
        SHARED,
        "documentation: steps(mode=None) returns all steps (semantics 2, [fix])",
        lambda asked: asked.call == "steps" and asked.args == [None],
        lambda asked: asked.elsewhere("steps", []),
    ),
    Difference(
        (*ALL, *SHARED),
        "semantics 2: a mode or mode step without data has no tensors [fix: return []]",
        lambda asked: asked.call == "tensor_names" and asked.raised("KeyError"),
        lambda _: [],
    ),
    Difference(
        ("a_modes_dtypes",),
        "documentation: tensor.shapes() exists (semantics 4, [fix: implement])",
        lambda asked: asked.call == "shapes",
        shapes_by_step,
    ),
    Difference(
        ("a_modes_dtypes",),
        "semantics 2: labels and inputs take the step in the mode that was asked [fix]",
        lambda asked: asked.call in {"labels", "inputs"} and asked.args == [0, {"$mode": "EVAL"}],
        lambda asked: asked.elsewhere(asked.call, [4]),  # EVAL step 0 is global step 4
    ),
    Difference(
        ("a_modes_dtypes",),
        "semantics 4: prev_steps of 0 steps are none [fix 0 -> []]",
        lambda asked: asked.call == "prev_steps" and asked.args[1] == 0,
        lambda _: [],
    ),
    Difference(
        ("a_modes_dtypes",),
        "semantics 4: prev_steps of a negative number [fix: ValueError]",
        lambda asked: asked.call == "prev_steps" and (asked.args[1] or 0) < 0,
        raises("ValueError"),
    ),
    Difference(
        ("a_modes_dtypes",),
        "format 4.2: a documented exception type in place of numpy's private TypeErrors",
        lambda asked: asked.name == "labels_text" and asked.call == "reduction_value",
        raises("SMDebugTypeError"),
    ),
    Difference(
        ("a_modes_dtypes", "b_reductions"),
        "semantics 4: computed norms are element-wise for every rank [fix]",
        is_norm,
        reduced,
    ),
    Difference(
        ("types",),
        "semantics 4: computed norms are element-wise for every rank [fix]",
        lambda asked: (
            asked.call == "reduction_value"
            and asked.args[1] in {"l1", "l2"}
            and asked.name in {"float16/2x3", "float32/2x1x2"}
        ),
        reduced,
    ),
    Difference(
        ("a_modes_dtypes", "b_reductions"),
        "documentation: reductions include median (behaviour.md: `median` exists)",
        lambda asked: (
            asked.call == "reduction_value"
            and asked.args[1] == "median"
            and asked.raised("SMDebugValueError")
        ),
        reduced,
    ),
    Difference(
        ("b_reductions",),
        "format 3: a name in both payloads keeps its value [fix: merge both]",
        lambda asked: asked.name == "shaperaw/w" and asked.call == "value",
        lambda asked: encode(asked.saved()),
    ),
    Difference(
        ("b_reductions",),
        "format 3: a name in both payloads keeps its values [fix: merge both]",
        lambda asked: asked.name == "shaperaw/w" and asked.call == "values",
        lambda asked: encode({step: asked.saved(step) for step in (0, 1, 2)}),
    ),
    Difference(
        ("b_reductions",),
        "format 3: reductions of a name in both payloads are computed [fix: merge both]",
        lambda asked: asked.name == "shaperaw/w" and asked.call == "reduction_value",
        reduced,
    ),
    Difference(
        ("types",),
        "format 4.2: int8 is read as int8 [fix]",
        of_types("int8"),
        typed,
    ),
    Difference(
        ("types",),
        "format 4.2: every type that can be written is read back [fix]",
        of_types("int16", "uint16", "uint32", "uint64", "complex64"),
        typed,
    ),
    Difference(
        ("workers_running", "c_multiworker"),
        "semantics 4: Tensor.steps completes steps by the same rule as Trial.steps [fix]",
        lambda asked: (
            asked.query["on"] == "tensor"
            and asked.call in {"steps", "values"}
            and {"$mode": "EVAL"} in [*asked.args, *asked.kwargs.values()]
        ),
        lambda asked: [] if asked.call == "steps" else {"$dict": []},
    ),
    Difference(
        ("c_multiworker",),
        "format 2: worker names are taken from the file's own name only [fix]",
        asks(UNDERSCORES, "double underscore in the path"),
        explicit(UNDERSCORES),
    ),
    Difference(
        ("c_multiworker",),
        "semantics 3: an incomplete mode step of an ended job is there [fix]",
        asks(INCOMPLETE, "has_passed_step of an incomplete mode step after the end"),
        explicit(INCOMPLETE),
    ),
    Difference(
        ("c_multiworker",),
        "semantics 3: the wait window counts incomplete steps [fix], whenever one looks",
        asks(WINDOW, "INCOMPLETE_STEP_WAIT_WINDOW=10"),
        explicit(WINDOW),
    ),
    Difference(
        ("a_modes_dtypes", "d_running"),
        "semantics 1: wait_for_steps restores refreshing [fix]",
        lambda asked: asked.call == "attr:dynamic_refresh",
        lambda _: True,
    ),
    Difference(
        ("f_sparse_steps",),
        "not documented: where the old listing went on, with a path of another machine",
        lambda asked: asked.call == "attr:last_index_token",
        raises("AttributeError"),
    ),
)
# Sessions that cannot be opened: semantics 1, asserts become ValueError [fix].
CREATE = {"AssertionError": "ValueError"}
