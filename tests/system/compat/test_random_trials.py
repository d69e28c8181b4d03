"""Random trials get the answers that smdebug 1.0.34 gives beside us, but for four known faults."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import answers
import numpy as np
import pytest
import rawtrial
from clocks import PatientClock
from recorded import agrees, classes

from smdebug import modes
from smdebug.trials import create_trial

PYTHON = os.environ.get("RULE_RUNNER_OLD_SMDEBUG_PYTHON")
SCRIPT = Path(__file__).parents[1] / "old_library" / "ask_trials.py"
MODES = dict(modes.__members__)
GLOBAL = {"$mode": "GLOBAL"}
OTHERS = [{"$mode": name} for name in ("TRAIN", "EVAL", "PREDICT")]
TENSORS = ("a/x", "ab", "c", "r")
Json = Any
pytestmark = [
    pytest.mark.old_library,
    pytest.mark.skipif(
        PYTHON is None,
        reason="RULE_RUNNER_OLD_SMDEBUG_PYTHON does not name a Python that has smdebug 1.0.34.",
    ),
]


def random_trial(rng: np.random.Generator) -> tuple[dict[str, bytes], list[int]]:
    """Return the files of a trial of uneven workers, and its global steps."""
    workers = [f"worker_{rank}" for rank in range(int(rng.integers(1, 4)))]
    patterns = {"a": ["^a"], "both": ["a", "b$"]}
    files = {
        rawtrial.collections_key(worker): rawtrial.collections(patterns, len(workers))
        for worker in workers
    }
    with_modes = rng.random() < 0.7
    mode_steps = dict.fromkeys(("TRAIN", "EVAL", "PREDICT"), 0)
    steps = np.cumsum(rng.choice([1, 1, 1, 2, 5, 1000], size=int(rng.integers(0, 9)))).tolist()
    for step in steps:
        mode, mode_step = "GLOBAL", step
        if with_modes:
            mode = str(rng.choice(list(mode_steps), p=[0.6, 0.3, 0.1]))
            mode_step = mode_steps[mode]
            mode_steps[mode] += int(rng.choice([1, 1, 3]))
        for worker in workers:
            value = np.full(2, step + 0.5, np.float32)
            names = [*TENSORS[:3], "smdebug/reductions/mean/r"]
            values = {name: value for name in names if rng.random() < 0.6}
            if values:
                files |= rawtrial.step_files(step, values, mode, mode_step, worker)
    if rng.random() < 0.6:
        files[rawtrial.TRAINING_JOB_END] = b""
    return files, steps


def questions(steps: list[int], ended: bool) -> Iterator[dict[str, Json]]:
    """Yield every question, about these steps and those beside them."""
    asked = sorted({0, *steps, *(step + 1 for step in steps)})[:12]
    for call in ("workers", "modes", "tensor_names", "attr:last_complete_step"):
        yield {"on": "trial", "call": call}
    for mode in (GLOBAL, *OTHERS):
        for call in ("steps", "tensor_names"):
            yield {"on": "trial", "call": call, "kwargs": {"mode": mode}}
        yield {"on": "trial", "call": "steps", "args": [mode, True]}
    for step in asked:
        for call in ("mode", "mode_step", "mode_modestep", "has_passed_step"):
            yield {"on": "trial", "call": call, "args": [step]}
        yield {"on": "trial", "call": "tensor_names", "kwargs": {"step": step}}
        kwargs = {"step": step, "collection": "both"}
        yield {"on": "trial", "call": "tensor_names", "kwargs": kwargs}
        for mode in OTHERS:
            yield {"on": "trial", "call": "global_step", "args": [mode, step]}
            yield {"on": "trial", "call": "has_passed_step", "args": [step, mode]}
            yield {"on": "trial", "call": "tensor_names", "kwargs": {"step": step, "mode": mode}}
        if ended:
            yield {"on": "trial", "call": "wait_for_steps", "args": [[step]]}
    for name in TENSORS:
        yield from tensor_questions({"on": "tensor", "name": name}, asked)


def tensor_questions(on: dict[str, Json], asked: list[int]) -> Iterator[dict[str, Json]]:
    """Yield every question about one tensor."""
    for mode in (GLOBAL, *OTHERS):
        yield {**on, "call": "steps", "kwargs": {"mode": mode}}
        yield {**on, "call": "steps", "args": [mode, True]}
        yield {**on, "call": "prev_steps", "args": [asked[-1], 2, mode]}
        for step in asked:
            for call in ("value", "shape", "workers", "reduction_values"):
                yield {**on, "call": call, "args": [step], "kwargs": {"mode": mode}}
            kwargs = {"mode": mode, "worker": "worker_1"}
            yield {**on, "call": "value", "args": [step], "kwargs": kwargs}
            yield {
                **on,
                "call": "reduction_value",
                "args": [step, "mean"],
                "kwargs": {"mode": mode},
            }
    yield {**on, "call": "values"}


def explained(query: dict[str, Json], theirs: Json, ours: Json, known: dict[str, Json]) -> bool:
    """Return whether ours is the answer that the semantics want in the place of theirs."""
    call = query["call"]
    if call == "modes":  # a list [option]
        return bool(theirs["items"] == ours)
    if classes(theirs)[:1] == ["KeyError"]:
        if call == "tensor_names":  # a mode without data has no tensors [fix]
            return bool(ours == [])
        if call == "has_passed_step":  # an incomplete mode step of an ended job is there [fix]
            return bool(ours == {"$stepstate": "AVAILABLE"})
        return "TensorUnavailableForStep" in classes(ours)
    if query["on"] == "tensor" and call in {"steps", "prev_steps"}:
        return bool(ours == right_steps(query, known))
    return False


def right_steps(query: dict[str, Json], known: dict[str, Json]) -> list[int]:
    """Return Tensor.steps or prev_steps, completed by the same rule as Trial.steps [fix]."""
    previous = query["call"] == "prev_steps"
    mode = query["args"][2] if previous else query["kwargs"]["mode"]
    complete = known[_key({"on": "trial", "call": "steps", "kwargs": {"mode": mode}})]
    saved = known[_key({**query, "call": "steps", "args": [mode, True], "kwargs": {}})]
    right = [step for step in saved if step in complete]
    return [step for step in right if step <= query["args"][0]][-2:] if previous else right


def _key(query: dict[str, Json]) -> str:
    return json.dumps({name: value for name, value in query.items() if value}, sort_keys=True)


@pytest.mark.parametrize("trials", [6, pytest.param(20, marks=pytest.mark.nightly)])
def test_random_trials_get_the_same_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trials: int
) -> None:
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")
    asked = []
    for number in range(trials):
        files, steps = random_trial(np.random.default_rng(number))
        root = rawtrial.write(tmp_path / str(number), files)
        queries = list(questions(steps, rawtrial.TRAINING_JOB_END in files))
        asked.append({"path": str(root), "queries": queries})
    done = subprocess.run(
        [str(PYTHON), str(SCRIPT)],
        capture_output=True,
        check=False,
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},
        input=json.dumps(asked),
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    wrong = []
    count = 0
    for one, theirs in zip(asked, json.loads(done.stdout.splitlines()[-1]), strict=True):
        clock = PatientClock()
        trial = create_trial(one["path"], clock=clock)
        known = {_key(query): answer for query, answer in zip(one["queries"], theirs, strict=True)}
        for query, answer in zip(one["queries"], theirs, strict=True):
            clock.wind()
            ours = json.loads(json.dumps(answers.ask(trial, query, MODES, 20.0)))
            computed = query["call"] == "reduction_value"
            count += 1
            if agrees(answer, ours, computed=computed) or explained(query, answer, ours, known):
                continue
            wrong.append((one["path"], query, answer, ours))
    assert wrong[:10] == []
    assert count > 400 * trials
