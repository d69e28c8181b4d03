"""Identical verdicts: rules evaluated together come to what each comes to alone."""

import tempfile
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import evaluating
import misbehaving
import numpy as np
import pytest
import rawtrial
from evaluating import END, Script, WoundClock, configured, rule_job
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from memory_store import MemoryStore

from rule_core.format import tfrecord
from rule_runner.config.defaults import Isolation
from rule_runner.config.model import RuleJobConfig
from rule_runner.engine.runner import Runner
from rule_runner.loading.loader import load_from
from rule_runner.results.schema import RuleResult

PATTERNS = {
    "losses": ["loss"],
    "gradients": ["^gradient"],
    "weights": ["weight"],
    "biases": ["bias"],
    "relu_output": ["relu"],
}
TENSORS = {
    "loss": (1,),
    "gradient/fc.weight": (4, 3),
    "gradient/fc.bias": (3,),
    "fc.weight": (4, 3),
    "fc.bias": (3,),
    "relu_output": (6, 5),
    "tanh_output": (2, 2),
}
NUMBERS = (1.0, 0.9, 0.5, -3.0, 1e-9, 0.0, float("nan"), float("inf"))
BUILTIN: dict[str, dict[str, str]] = {
    "VanishingGradient": {},
    "ExplodingTensor": {"tensor_regex": "fc|loss"},
    "AllZero": {"collection_names": "weights", "threshold": "50"},
    "TensorVariance": {"collection_names": "gradients", "max_threshold": "1"},
    "UnchangedTensor": {"tensor_regex": "fc", "num_steps": "2"},
    "WeightUpdateRatio": {"num_steps": "1"},
    "DeadRelu": {"tensor_regex": "relu_output"},
    "SaturatedActivation": {"tensor_regex": "tanh_output"},
    "PoorWeightInitialization": {},
    "LossNotDecreasing": {"num_steps": "1", "collection_names": "losses"},
    "Overfit": {"patience": "1"},
    "Overtraining": {"patience_train": "1", "patience_validation": "1"},
}
CUSTOM = [("LooksAround", {}), ("Overflows", {})]
CUSTOM += [("Spoils", {"what": what}) for what in misbehaving.SPOILS]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Log nothing, and let warnings be no errors, as in the command."""
    monkeypatch.setattr(rawtrial, "masked", tfrecord.masked_crc)
    evaluating.log_nothing()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@st.composite
def written(draw: st.DrawFn) -> dict[str, bytes]:
    """Draw the files of a trial of one or two workers, of some modes, with some tensors missing."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    workers = [f"worker_{number}" for number in range(draw(st.integers(1, 2)))]
    gaps = draw(st.lists(st.sampled_from([1, 1, 2, 500]), min_size=1, max_size=6))
    modes = [draw(st.sampled_from(["TRAIN", "TRAIN", "EVAL", "GLOBAL"])) for _ in gaps]
    files = {END: b""}
    for worker in workers:
        files[rawtrial.collections_key(worker)] = rawtrial.collections(PATTERNS, len(workers))
    for at, step in enumerate(np.cumsum(gaps).tolist()):
        number = step if modes[at] == "GLOBAL" else modes[:at].count(modes[at])
        for worker in workers[: draw(st.sampled_from([2, 2, 2, 1]))]:
            values = _values(random)
            files |= rawtrial.step_files(step, values, modes[at], number, worker)
    return files


def _values(random: np.random.Generator) -> dict[str, Any]:
    """Return a step's tensors: of one number, or of random ones, or not there."""
    values = {
        name: np.full(shape, random.choice(NUMBERS), "f4")
        if random.random() < 0.5
        else random.normal(size=shape).astype("f4")
        for name, shape in TENSORS.items()
        if random.random() < 0.9
    }
    return values or {"loss": np.ones(1, "f4")}


def builtin(name: str) -> RuleJobConfig:
    return rule_job(name, parameters=BUILTIN[name])


def custom(at: int) -> RuleJobConfig:
    name, parameters = CUSTOM[at]
    return rule_job(getattr(misbehaving, name), f"{name}{at}", parameters=parameters)


@st.composite
def rule_sets(draw: st.DrawFn) -> list[RuleJobConfig]:
    """Draw rules in any order, each with a range of steps of its own."""
    names = draw(st.lists(st.sampled_from(sorted(BUILTIN)), max_size=5, unique=True))
    others = draw(st.lists(st.integers(0, len(CUSTOM) - 1), min_size=1, max_size=4, unique=True))
    jobs = draw(st.permutations([*map(builtin, names), *map(custom, others)]))
    steps = st.sampled_from([None, None, None, 1, 3])
    return [replace(job, start_step=draw(steps), end_step=draw(steps)) for job in jobs]


def verdict(result: RuleResult) -> dict[str, Any]:
    """Return all of a result that other rules must not change."""
    names = ("rule", "status", "outcome", "status_details", "step", "evidence")
    names += ("findings_count", "coverage", "notes")
    return {name: getattr(result, name) for name in names}


def evaluated(
    files: dict[str, bytes], jobs: Sequence[RuleJobConfig], **more: Any
) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        config = configured(Path(folder), jobs, **more)
        found = evaluating.runner(config, MemoryStore(files), Script(WoundClock())).run()
    assert found.stop is None
    return [verdict(one) for one in found.result.rules]


@settings(max_examples=20)
@given(files=written(), jobs=rule_sets(), keep_going=st.booleans())
def test_rules_together_come_to_what_each_comes_to_alone(
    files: dict[str, bytes], jobs: list[RuleJobConfig], keep_going: bool
) -> None:
    together = evaluated(files, jobs, keep_going=keep_going)
    assert [evaluated(files, [job], keep_going=keep_going)[0] for job in jobs] == together


@settings(max_examples=2, phases=[Phase.explicit, Phase.generate])  # each takes its time
@given(files=written(), jobs=rule_sets(), keep_going=st.booleans())
def test_rules_in_processes_of_their_own_come_to_the_same(
    files: dict[str, bytes], jobs: list[RuleJobConfig], keep_going: bool
) -> None:
    source = misbehaving.__file__
    elsewhere = [
        job
        if job.loaded.builtin
        else replace(job, loaded=load_from(source, job.loaded.name, run=False))
        for job in jobs
    ]
    with tempfile.TemporaryDirectory() as folder:
        root, out = str(rawtrial.write(Path(folder) / "trial", files)), Path(folder) / "out"
        here = configured(out / "here", jobs, root, keep_going=keep_going)
        there = configured(
            out / "there", elsewhere, root, keep_going=keep_going, isolate=Isolation.PROCESS
        )
        results = [Runner(config).run().result.rules for config in (here, there)]
    inside, outside = ([verdict(one) for one in found] for found in results)
    assert outside == inside
