"""Thousands of damaged trials: one file is hurt, and all that it does not hold is still right."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import hostile
import numpy as np
import pytest
import rawtrial
from clocks import PatientClock

from smdebug import modes
from smdebug.analysis.utils import no_refresh
from smdebug.exceptions import MissingCollectionFiles, SMDebugError
from smdebug.trials import Trial, create_trial

ROUNDS = 35
CASES = 30  # a round; 2 x 35 x 30 = 2100 in all
CANARY = np.full(4, 4321.25, np.float32)
WORKERS = ("worker_0", "worker_1")
STEPS = {0: ("TRAIN", 0), 1: ("EVAL", 0), 1000: ("GLOBAL", 1000)}
Key = tuple[int, str, str]


def healthy_trial() -> tuple[dict[str, bytes], dict[Key, Any]]:
    """Return the files of a small trial, and its values by step, worker and tensor."""
    rng = np.random.default_rng(1)
    files = {rawtrial.TRAINING_JOB_END: b""}
    values: dict[Key, Any] = {}
    for worker in WORKERS:
        patterns = {"weights": ["^w"], "losses": ["^text"]}
        files[rawtrial.collections_key(worker)] = rawtrial.collections(patterns, len(WORKERS))
        for step, (mode, mode_step) in STEPS.items():
            arrays = {
                "w": rng.normal(size=(2, 3)).astype(np.float32),
                "text": np.array(["a", "bc", f"{step}"]),
            }
            reductions = {"smdebug/reductions/abs_mean/g": np.array([step + 0.5])}
            files |= rawtrial.step_files(step, arrays | reductions, mode, mode_step, worker)
            values |= {(step, worker, name): array for name, array in arrays.items()}
    return files, values


FILES, VALUES = healthy_trial()
HURT = [key for key in FILES if key != rawtrial.TRAINING_JOB_END]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a healthy trial, with files outside it that nobody may read."""
    canary = rawtrial.record(rawtrial.event(rawtrial.array_message(CANARY)))
    rawtrial.write(tmp_path, {"outside": canary, "outside.json": FILES[rawtrial.index_key(0)]})
    return rawtrial.write(tmp_path / "trial", FILES)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of all paths that are opened through file descriptors."""
    paths: list[str] = []
    plain = os.open

    def spy(*args: Any, **kwargs: Any) -> int:
        fd = plain(*args, **kwargs)
        paths.append(os.readlink(f"/proc/self/fd/{fd}"))  # noqa: PTH115 - many thousand times
        return fd

    monkeypatch.setattr(os, "open", spy)
    return paths


@contextmanager
def hurt(root: Path, key: str, content: bytes) -> Iterator[None]:
    """Let a file have another content for a while."""
    path = root / key
    path.write_bytes(content)
    try:
        yield
    finally:
        path.write_bytes(FILES[key])


def questions(trial: Trial, name: str) -> Iterator[Callable[[], Any]]:
    """Yield every question about one tensor."""
    for step, (mode, mode_step) in STEPS.items():
        for worker in WORKERS:
            yield lambda s=step, w=worker: trial.tensor(name).value(s, worker=w)
        yield lambda s=mode_step, m=modes[mode]: trial.tensor(name).shape(s, m)
        yield lambda s=step: trial.tensor(name).reduction_value(s, "mean", abs=True)
        yield lambda s=step: trial.tensor(name).workers(s)
    for mode in modes:
        yield lambda m=mode: trial.tensor(name).steps(m)
    yield lambda: trial.tensor(name).values()
    yield lambda: trial.tensor(name).shapes()
    yield lambda: trial.tensor(name).reduction_values(1000)
    yield lambda: trial.tensor(name).original_name


def ask_everything(trial: Trial) -> list[Any]:
    """Ask all there is to ask; only documented exceptions may come of it. Return the answers."""
    found = []
    asked: list[Callable[[], Any]] = [trial.tensor_names, trial.steps, trial.modes, trial.workers]
    asked += [trial.collections, lambda: repr(trial), lambda: trial.tensor_names(collection="w")]
    if trial.loaded_all_steps:
        asked += [lambda: trial.wait_for_steps([0, 5000])]
    for step in (*STEPS, 3):
        asked += [
            lambda s=step: trial.mode_modestep(s),
            lambda s=step: trial.has_passed_step(s),
            lambda s=step: trial.tensor_names(step=s),
        ]
    asked += [lambda m=mode: trial.tensor_names(mode=m) for mode in modes]
    asked += [lambda m=mode: trial.global_step(m, 0) for mode in modes]
    names = trial.tensor_names(show_prefixed_tensors=True)
    for name in (*names[:8], "nope"):
        asked += questions(trial, name)
    with no_refresh(trial):
        for question in asked:
            with suppress(SMDebugError):
                found.append(question())
    return found


def check_the_rest(trial: Trial, hurt_key: str) -> None:
    """Show that all that the damaged file does not hold is still right."""
    known = trial.steps(show_incomplete_steps=True)
    for (step, worker, name), expected in VALUES.items():
        if hurt_key in {rawtrial.index_key(step, worker), rawtrial.event_key(step, worker)}:
            continue
        got = trial.tensor(name).value(step, worker=worker)
        assert got.dtype == expected.dtype
        assert np.array_equal(got, expected)
        assert step in known


def check_nothing_leaked(answers: list[Any], opened: list[str], root: Path) -> None:
    """Show that no file outside the trial was opened, and no value came from one."""
    flat = [one for answer in answers for one in _arrays(answer)]
    assert not any(np.array_equal(one, CANARY) for one in flat)
    outside = [path for path in opened if path != str(root) and not path.startswith(f"{root}/")]
    assert outside == []


def _arrays(answer: Any) -> list[Any]:
    if isinstance(answer, dict):
        return list(answer.values())
    return [answer] if isinstance(answer, np.ndarray) else []


@pytest.mark.parametrize("seed", range(ROUNDS))
@pytest.mark.parametrize("ended", [True, False], ids=["ended", "running"])
def test_a_damaged_file_costs_what_it_holds_only(
    seed: int, ended: bool, root: Path, opened: list[str]
) -> None:
    rng = np.random.default_rng(seed)
    if not ended:
        (root / rawtrial.TRAINING_JOB_END).unlink()
    for case in range(CASES):
        key = HURT[int(rng.integers(0, len(HURT)))]
        mutation = hostile.MUTATIONS[int(rng.integers(0, len(hostile.MUTATIONS)))]
        content = mutation(FILES[key], rng)
        with hurt(root, key, content):
            opened.clear()
            try:
                trial = create_trial(root, timeout=1, clock=PatientClock(10_000))
            except MissingCollectionFiles:
                assert key.startswith("collections/"), (seed, case, key, content)
                continue
            answers = ask_everything(trial)
            check_the_rest(trial, key)
            check_nothing_leaked(answers, opened, root)


def test_the_healthy_trial_is_read_right(root: Path, opened: list[str]) -> None:
    trial = create_trial(root, clock=PatientClock(10_000))
    answers = ask_everything(trial)
    check_the_rest(trial, "none")
    check_nothing_leaked(answers, opened, root)
    assert len(opened) > len(FILES)
    assert trial.steps() == sorted(STEPS)
    assert trial.tensor_names(collection="losses") == ["text"]
    assert trial.tensor("g").reduction_values(1000)["mean", True].tolist() == [1000.5]


def test_the_canary_would_be_seen(root: Path, opened: list[str]) -> None:
    trial = create_trial(root.parent / "trial", clock=PatientClock(10_000))
    with pytest.raises(AssertionError):
        check_nothing_leaked([CANARY], opened, root)
    os.close(os.open(root.parent / "outside", os.O_RDONLY))
    with pytest.raises(AssertionError):
        check_nothing_leaked(ask_everything(trial), opened, root)
