"""Evaluations whose trials are measured elsewhere, and what of their results must be the same."""

import pickle
import re
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
import numpy as np
import rawtrial
from evaluating import Script, WoundClock, configured, rule_job

from rule_core.reading import native_index
from rule_core.reading.measuring import block, executor_measurer
from rule_core.rules.rule import Rule
from rule_runner.config.model import RuleJobConfig
from rule_runner.config.profiler_windows import names_over
from rule_runner.engine.runner import Runner
from rule_runner.loading.loader import load_builtin
from rule_runner.loading.parameters import lacking

TIMES = {"started_at", "ended_at", "duration_s", "rule_time_s", "run_id"}
PARAMETERS = {
    "AllZero": {"collection_names": "gradients,weights,relu_output"},
    "UnchangedTensor": {"collection_names": "weights,losses"},
    "TensorVariance": {"collection_names": "weights", "max_threshold": "2", "min_threshold": "0.1"},
    "ExplodingTensor": {"collection_names": ""},
}
_ID = re.compile('"id": "[0-9a-f]+", ')  # of a finding: it depends on the run
MEASURING = {
    *("AllZero", "DeadRelu", "ExplodingTensor", "LossNotDecreasing", "NormGrowth"),
    *("UnchangedTensor", "VanishingGradient", "WeightUpdateRatio"),
}
COLLECTIONS = {
    "gradients": ["^gradient/"],
    "weights": ["^weight/"],
    "losses": ["loss"],
    "relu_output": ["relu"],
    "tanh_input": ["tanh"],
}


class InlineExecutor(Executor):
    """Runs each call at once, on copies that were pickled; `fails` may return an error instead."""

    def __init__(self, fails: Callable[[int], Exception | None] = lambda _: None) -> None:
        self.calls: list[str] = []
        self._fails = fails

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.calls.append(fn.__name__)
        err = self._fails(len(self.calls))
        if err is not None:
            future.set_exception(err)
            return future
        copied, arguments = pickle.loads(pickle.dumps((fn, args)))
        future.set_result(pickle.loads(pickle.dumps(copied(*arguments, **kwargs))))
        return future


@contextmanager
def small_blocks() -> Iterator[None]:
    """Send little trials too, in little blocks."""
    block._store.cache_clear()
    with (
        mock.patch.object(executor_measurer, "LEAST_PARTS", 1),
        mock.patch.object(executor_measurer, "PARTS_PER_BLOCK", 5),
        mock.patch.object(executor_measurer, "KEYS_PER_BLOCK", 3),
        mock.patch.object(native_index, "LEAST_KEYS", 1),
    ):
        yield


def every_rule() -> list[RuleJobConfig]:
    """Return all built-in rules over tensors that need no second trial."""
    jobs = []
    for name in names_over(tensors=True, windows=False):
        parameters = PARAMETERS.get(name, {})
        if parameters or not lacking(load_builtin(name), ()):
            jobs.append(rule_job(name, parameters=parameters))
    return jobs


def measuring_rules() -> list[RuleJobConfig]:
    """Return the rules that measure most, and one that declares nothing."""
    return [job for job in every_rule() if job.loaded.name in MEASURING]


def judged(
    trial: Path | str, output: Path, rules: list[RuleJobConfig | type[Rule]], **more: Any
) -> dict[str, Any]:
    """Evaluate, and return what must not depend on where a trial is measured."""
    own = {name: more.pop(name) for name in ("executor", "clock", "waiter") if name in more}
    own = {"waiter": Script(clock := WoundClock()), "clock": clock} | own
    config = configured(output, rules, str(trial), keep_going=True, **more)
    result = Runner(config, **own).run().result
    content: dict[str, Any] = {"notes": result.notes}
    for rule in msgspec.to_builtins(result.rules):
        name = rule["configuration_name"]
        content[name] = {key: value for key, value in rule.items() if key not in TIMES}
    for file in ("findings.jsonl", "measurements.json"):
        path = output / file
        text = path.read_text() if path.exists() else ""
        content[file] = _ID.sub("", text)
    return content


def verdicts(content: dict[str, Any]) -> dict[str, Any]:
    """Return what an evaluation has judged, without the notes on where it measured."""
    return {name: value for name, value in content.items() if name != "notes"}


def values(seed: int, *, step: int, wild: bool = False) -> dict[str, Any]:
    """Return the tensors of a step: usual ones, and with `wild` such as nobody expects."""
    random = np.random.default_rng(seed)
    gradient = random.standard_normal((4, 6)).astype(np.float32) * np.float32(0.01 ** (step / 2))
    tensors: dict[str, Any] = {
        "gradient/a": gradient,
        "gradient/b": np.zeros(3, np.float32) if seed % 2 else random.standard_normal(3),
        "weight/a": random.standard_normal((8, 8)).astype(np.float32) * (1 + step),
        "weight/half": random.standard_normal(5).astype(np.float16),
        "relu/a": np.maximum(random.standard_normal((16, 4)), 0).astype(np.float32),
        "tanh/a": random.standard_normal((16, 4)).astype(np.float32) * 20,
        "loss": np.float32(1 / (1 + step)),
    }
    if wild:
        tensors |= {
            "weight/nan": np.array([1, np.nan, np.inf], np.float32),
            "weight/whole": np.arange(9, dtype=np.int64).reshape(3, 3) - seed,
            "weight/none": np.zeros((0, 2), np.float32),
            "weight/flags": np.array([True, False]),
        }
    return tensors


def saved_trial(
    root: Path, workers: int = 3, steps: int = 7, *, modes: bool = False, ended: bool = True
) -> Path:
    """Write a trial with many kinds of tensors; with `modes`, every third step is of evaluation."""
    files: dict[str, bytes] = {}
    for worker in (f"worker_{number}" for number in range(workers)):
        files[rawtrial.collections_key(worker)] = rawtrial.collections(COLLECTIONS, workers)
        for step in range(steps):
            mode = "EVAL" if modes and step % 3 == 2 else "TRAIN"
            seed = step * 10 + int(worker[-1])
            tensors = values(seed, step=step, wild=step % 2 == 1)
            tensors = {name: np.asarray(array) for name, array in tensors.items()}
            files |= rawtrial.step_files(step * 10, tensors, mode, step, worker)
    return rawtrial.write(root, files | ({rawtrial.TRAINING_JOB_END: b""} if ended else {}))
