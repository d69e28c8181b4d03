"""Whatever rules ask in whatever order: what was measured ahead is what measuring then gives."""

import random
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pytest
import rawtrial
import steps_saved
from hypothesis import given
from hypothesis import strategies as st
from memory_store import MemoryStore

from rule_core.model import streaming_statistics
from rule_core.model.array_difference import ChangeNorms, Tolerance
from rule_core.model.element_statistics import Activity, NonFiniteCount, SingleNumber, ZeroCount
from rule_core.model.reductions import OPERATIONS
from rule_core.reading import chunked_reads, step_read_plan
from rule_core.reading.measuring import local_prefetch
from rule_core.trials.snapshot_view import snapshot
from smdebug.core.modes import ModeKeys
from smdebug.exceptions import SMDebugError
from smdebug.trials import Trial

NAMES: Final = ["a", "bb", "layer/w", "layer/b", "x"]
WORKERS: Final = ["worker_0", "worker_1"]
TYPES: Final = [*["float32"] * 6, *rawtrial.NUMBERS]
SHAPES: Final = [(), (1,), (3,), (2, 4), (40,), (9, 9), (150,)]
MEASURES: Final = [
    ZeroCount(),
    NonFiniteCount(),
    Tolerance(0.1, 1e-3),
    ChangeNorms(),
    Activity(0.0, 2.0),
    SingleNumber(),
]
STEPS: Final = [0, 1, 2, 3, 5, 8, 126, 127, 128, 129]
Values = dict[str, np.ndarray]


def value(draw: random.Random) -> np.ndarray:
    """Return an array of any type and shape, seldom without elements or of strings."""
    if draw.random() < 0.05:
        return np.array(draw.choice([[], ["ab", "c"]]))
    dtype, shape = rawtrial.dtype_of(draw.choice(TYPES)), draw.choice(SHAPES)
    return fresh(draw, np.zeros(shape, dtype))


def fresh(draw: random.Random, like: np.ndarray) -> np.ndarray:
    """Return an array of the same type and shape, with other elements."""
    if like.dtype.kind == "U":
        return like
    if like.dtype.kind == "b" or draw.random() < 0.2:
        count = like.nbytes
        raw = np.frombuffer(draw.randbytes(count), np.uint8)
        return (raw & 1 if like.dtype.kind == "b" else raw).view(like.dtype).reshape(like.shape)
    numbers = [draw.choice([0.0, 1.0, draw.uniform(-4, 4)]) for _ in range(like.size)]
    with np.errstate(all="ignore"):
        return np.array(numbers).astype(like.dtype).reshape(like.shape)


def records(draw: random.Random, step: int, values: Values, reduced: set[str]) -> dict[str, bytes]:
    """Return the records of a step in any order, now and then of an unusual kind."""
    found: dict[str, bytes] = {}
    behind = draw.choice([b"", b"\x4a\x03abc"])
    for name in draw.sample(sorted(values), len(values)):
        if draw.random() < 0.03:
            continue
        array = values[name]
        footer = None if draw.random() < 0.98 else draw.getrandbits(32)
        data = steps_saved.record(array, step, name, behind=behind, footer=footer)
        if draw.random() < 0.02:
            at = draw.randrange(len(data))
            data = data[:at] + bytes([data[at] ^ 1 << draw.randrange(8)]) + data[at + 1 :]
        if name not in reduced or draw.random() < 0.7:
            found[name] = data
        if name in reduced and draw.random() < 0.7:
            saved = np.array([draw.uniform(-1, 1)], np.float32)
            for one in ("mean", "abs_max"):
                key = f"{steps_saved.REDUCED}{one}/{name}"
                found[key] = steps_saved.record(saved, step, key)
    return found


def trial_files(draw: random.Random) -> dict[str, bytes]:
    """Return the files of a trial whose tensors mostly stay what they are."""
    workers = WORKERS[: draw.choice([1, 1, 2])]
    patterns = {"losses": ["a"]}
    files = {
        rawtrial.collections_key(one): rawtrial.collections(patterns, len(workers))
        for one in workers
    }
    values = {name: value(draw) for name in NAMES[: draw.randint(1, len(NAMES))]}
    reduced = {name for name in values if draw.random() < 0.2}
    modes = draw.choice([["GLOBAL"], ["TRAIN"], ["TRAIN", "EVAL"], ["TRAIN", "TRAIN", "EVAL"]])
    counts: dict[str, int] = {}
    gap = draw.choice([0, 0, 1, 700])
    for place, step in enumerate(sorted(draw.sample(STEPS, draw.randint(4, 8)))):
        mode = modes[place % len(modes)]
        counts[mode] = counts.get(mode, -1) + 1
        for worker in workers:
            if draw.random() < 0.05:
                continue
            values = {
                name: value(draw) if draw.random() < 0.02 else fresh(draw, before)
                for name, before in values.items()
            }
            mode_step = None if mode == "GLOBAL" else counts[mode]
            saved = records(draw, step, values, reduced)
            files |= steps_saved.step_files(step, saved, mode, mode_step, worker, gap)
    return files | {rawtrial.TRAINING_JOB_END: b""}


def damaged(draw: random.Random, files: dict[str, bytes], steps: list[int]) -> None:
    """Take away, cut or change the event file of one of some steps, if there is one."""
    keys = [key for key in files if key.startswith("events/") and int(key.split("/")[1]) in steps]
    if not keys:
        return
    key = draw.choice(keys)
    data = files[key]
    cut = data[: draw.randint(0, len(data))]
    scrambled = cut + draw.randbytes(len(data) - len(cut))
    content = draw.choice([None, cut, data + b"more", scrambled])
    if content is None:
        del files[key]
    else:
        files[key] = content


@dataclass(frozen=True)
class Question:
    """What a rule asks of a tensor at the step in hand, and `back` steps before, as it counts."""

    what: Any
    name: str
    worker: str | None
    absolute: bool = False
    back: int = 0
    mode: ModeKeys = ModeKeys.GLOBAL
    earlier: int = 0

    def ask(self, trial: Trial, steps: list[int], at: int) -> Any:
        tensor, step = trial.tensor(self.name), steps[max(at - self.earlier, 0)]
        if self.what == "view":
            return tensor.view(step, worker=self.worker)
        if self.what == "shape":
            return tensor.shape(step, worker=self.worker)
        if isinstance(self.what, str):
            return tensor.reduction_value(
                step, self.what, self.mode, self.worker, abs=self.absolute
            )
        before = steps[at - self.back] if 0 <= at - self.back < len(steps) else 10**6
        return tensor.measure(step, self.what, before if self.back else None, self.worker)


def question(draw: random.Random, names: list[str]) -> Question:
    what = draw.choice([*OPERATIONS, "nope", "view", *["shape"] * 4, *MEASURES * 3])
    return Question(
        what,
        draw.choice(names),
        draw.choice([*[None] * 8, *["worker_0"] * 8, "worker_1", "nobody"]),
        absolute=draw.random() < 0.3,
        back=draw.choice([0, 1, 1, 1, 2, 3, -1]) if what in MEASURES else 0,
        mode=draw.choice([*[ModeKeys.GLOBAL] * 9, ModeKeys.TRAIN]),
        earlier=draw.choice([*[0] * 19, 1]),
    )


def exactly(answer: Any) -> Any:
    """Return an answer so that equal ones are the same bit by bit."""
    if isinstance(answer, (np.ndarray, np.generic)):
        return type(answer), str(answer.dtype), answer.shape, answer.tobytes()
    if isinstance(answer, tuple):
        return type(answer), [exactly(one) for one in answer]
    return type(answer), struct.pack("<d", answer) if isinstance(answer, float) else answer


def asked(trial: Trial, steps: list[int], at: int, one: Question) -> Any:
    try:
        return exactly(one.ask(trial, steps, at))
    except SMDebugError as err:
        return type(err), str(err)


def evaluated(files: Mapping[str, bytes], seed: int, *, prefetch: bool) -> list[Any]:
    """Return all that rules learn of a trial, among whose event files one breaks now and then."""
    draw, content = random.Random(seed), dict(files)
    trial = steps_saved.trial_of(MemoryStore(content), prefetch=prefetch)
    steps = list(trial.index.steps)
    names = sorted(trial.index.names)
    habits = [question(draw, names) for _ in range(draw.randint(1, 12))]
    breaks = draw.random() < 0.3
    found: list[Any] = []
    for at, step in enumerate(steps):
        if breaks and draw.random() < 0.3:
            damaged(draw, content, steps[at:])
        if draw.random() < 0.2:
            habits[draw.randrange(len(habits))] = question(draw, names)
        now = [one for one in habits if draw.random() < 0.9]
        if draw.random() < 0.3:
            now.insert(draw.randint(0, len(now)), question(draw, names))
        with snapshot([trial], step):
            known = [one for one in now if trial.has_tensor(one.name)]
            found += [asked(trial, steps, at, one) for one in known]
    return [*found, trial.reads, trial.damaged, trial.index.file_problems.problems]


@pytest.fixture(params=["all", "small", "large"])
def _sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let small arrays be as large ones are, or next to each other, or both."""
    for module in (streaming_statistics, chunked_reads, step_read_plan):
        monkeypatch.setattr(module, "PIECE_BYTES", 256)
    monkeypatch.setattr(local_prefetch, "MIN_PREFETCH_BYTES", 1000)
    small, near = {"all": (100, 600), "small": (256, 0), "large": (-1, 0)}[request.param]
    monkeypatch.setattr(step_read_plan, "SMALL", small)
    monkeypatch.setattr(step_read_plan, "NEAR", near)


def same(seed: int) -> None:
    files = trial_files(random.Random(seed))
    assert evaluated(files, seed, prefetch=True) == evaluated(files, seed, prefetch=False)


@pytest.mark.usefixtures("_sizes")
@given(st.integers(0, 10**9))
def test_answers_and_errors_are_the_same(seed: int) -> None:
    same(seed)
