"""One verdict: a trial revealed in any order its writers can produce, with any crashes between."""

import hashlib
import math
import random
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import evaluating
import numpy as np
import pytest
import rawtrial
from evaluating import END, Script, WoundClock
from hypothesis import given
from hypothesis import strategies as st
from memory_store import MemoryStore

from rule_core.storage.base import ByteRange
from rule_runner.config.model import EvaluationConfig, RuleJobConfig
from rule_runner.results.schema import RuleResult
from smdebug.core.modes import ModeKeys
from smdebug.exceptions import SMDebugError, TensorUnavailableForStep
from smdebug.rules import Rule

PATTERNS = {"losses": ["loss"], "gradients": ["^gradient"], "all": [".*"]}
TENSORS = {
    "loss": (1,),
    "gradient/fc.weight": (2, 2),
    "gradient/fc.bias": (2,),
    "act": (3,),
    "only": (1,),
}
NUMBERS = [1.0, 0.9, 0.5, 1e-9, 0.0, math.nan, math.inf]


@pytest.fixture(autouse=True)
def _quiet() -> None:
    evaluating.log_nothing()


class LooksAround(Rule):
    """Reports at every step a digest of all that it can see, and asks for more than there is."""

    def invoke_at_step(self, step: int) -> bool:
        trial = self.base_trial
        seen: list[object] = [
            trial.tensor_names(),
            trial.tensor_names(step=step),
            trial.tensor_names(collection="losses"),
            trial.steps(),
            trial.steps(show_incomplete_steps=True),
            [(mode, trial.steps(mode), trial.tensor_names(mode=mode)) for mode in trial.modes()],
            trial.mode_modestep(step),
            trial.has_passed_step(step + 1),
            trial.last_complete_step,
            trial.workers(),
        ]
        seen += [self._of(name, step) for name in TENSORS]
        text = repr(seen)
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        return self.found(step, measured=digest)

    def _of(self, name: str, step: int) -> object:
        if not self.base_trial.has_tensor(name):
            return None
        tensor = self.base_trial.tensor(name)
        later = None
        try:
            tensor.value(step + 1)
        except TensorUnavailableForStep as err:
            later = type(err).__name__
        assert later is not None
        return [
            {at: value.tolist() for at, value in tensor.values().items()},
            {mode: tensor.steps(mode) for mode in ModeKeys},
            tensor.prev_steps(step, 3),
            tensor.prev_steps(step + 10, 3),
            [tensor.workers(one) for one in tensor.steps()],
            tensor.shapes(),
            self._computed(tensor, step),
        ]

    @staticmethod
    def _computed(tensor: Any, step: int) -> object:
        try:
            return float(tensor.reduction_value(step, "mean", abs=True))
        except SMDebugError as err:
            return type(err).__name__


class Remembers(Rule):
    """Keeps state over steps, and fires when it has seen three losses below one."""

    def __init__(self, base_trial: Any) -> None:
        super().__init__(base_trial)
        self.low: list[int] = []

    def invoke_at_step(self, step: int) -> bool:
        loss = self.base_trial.tensor("loss").value(step)
        if loss[0] < 1:
            self.low.append(step)
        if len(self.low) < 3:
            return False
        return self.found(step, tensor="loss", measured=str(self.low), limit=3)


@dataclass
class Written:
    """What the writers of one trial wrote: files in the order of each, and who marks the end."""

    by_writer: list[list[tuple[str, bytes]]]
    order: list[int] = field(default_factory=list)

    def files(self) -> dict[str, bytes]:
        return {key: data for files in self.by_writer for key, data in files}

    def arrivals(self) -> Iterator[tuple[str, bytes]]:
        left = [iter(files) for files in self.by_writer]
        for writer in self.order:
            yield next(left[writer])


@st.composite
def written(draw: st.DrawFn) -> Written:
    """Draw a trial of one to four workers, and an order of its files."""
    count = draw(st.integers(1, 4))
    gaps = draw(st.lists(st.sampled_from([1, 1, 1, 2, 7, 999]), min_size=1, max_size=7))
    steps = np.cumsum([draw(st.sampled_from([0, 0, 3])), *gaps[1:]]).tolist()
    modes = [draw(st.sampled_from(["TRAIN", "TRAIN", "EVAL", "GLOBAL"])) for _ in steps]
    by_writer = [_of_worker(draw, f"worker_{one}", count, steps, modes) for one in range(count)]
    by_writer[draw(st.integers(0, count - 1))].append((END, b""))
    turns = [at for at, files in enumerate(by_writer) for _ in files]
    return Written(by_writer, draw(st.permutations(turns)))


def _of_worker(
    draw: st.DrawFn, worker: str, count: int, steps: list[int], modes: list[str]
) -> list[tuple[str, bytes]]:
    files: list[tuple[str, bytes]] = []
    for at, step in enumerate(steps):
        if draw(st.integers(0, 3)) == 0:
            continue
        values = {
            name: np.full(shape, draw(st.sampled_from(NUMBERS)), np.float32)
            for name, shape in TENSORS.items()
            if draw(st.integers(0, 3))
        }
        if values:
            number = step if modes[at] == "GLOBAL" else modes[:at].count(modes[at])
            files += rawtrial.step_files(step, values, modes[at], number, worker).items()
    collections = (rawtrial.collections_key(worker), rawtrial.collections(PATTERNS, count))
    files.insert(draw(st.integers(0, min(2, len(files)))), collections)
    return files


class Arriving(MemoryStore):
    """A trial whose files come at each wait and, if `torn`, before and within any look at it.

    A listing that files come in shows any of those, for folders are no snapshots.
    """

    def __init__(self, what: Written, seed: int, *, torn: bool) -> None:
        self.here: dict[str, bytes] = {}
        super().__init__(self.here)
        self.to_come = list(what.arrivals())
        self.random = random.Random(seed)
        self.torn = torn
        self.calls = 0
        self.dies_at = -1

    def come(self, most: int = 3) -> None:
        for _ in range(self.random.randint(1, most)):
            if self.to_come:
                key, data = self.to_come.pop(0)
                self.here[key] = data

    def _called(self) -> None:
        self.calls += 1
        if self.calls == self.dies_at:
            raise KilledError
        if self.torn and self.random.random() < 0.2:
            self.come()

    def list_keys(self, prefix: str, *, start_after: str = "") -> Iterator[str]:
        self._called()
        before = set(self.here)
        if self.torn and self.random.random() < 0.3:
            self.come(12)
        new = [key for key in self.here if key not in before and self.random.random() < 0.5]
        shown = MemoryStore({key: self.here[key] for key in {*before, *new}})
        yield from shown.list_keys(prefix, start_after=start_after)

    def read(self, key: str, byte_range: ByteRange | None = None) -> memoryview:
        self._called()
        return super().read(key, byte_range)


class Arrivals(Script):
    """Lets files of a trial come at each wait."""

    def __init__(self, store: Arriving) -> None:
        super().__init__(WoundClock())
        self.store = store

    def wait(self, seconds: float) -> None:
        self.store._called()
        self.store.come()
        super().wait(seconds)


class KilledError(KeyboardInterrupt):  # which no rule's error hides
    """The process ends here."""


def rules() -> tuple[RuleJobConfig, ...]:
    return (
        evaluating.rule_job(LooksAround),
        evaluating.rule_job(Remembers),
        evaluating.rule_job("VanishingGradient"),
        evaluating.rule_job("ExplodingTensor", parameters={"tensor_regex": "loss,act"}),
        evaluating.rule_job("LossNotDecreasing", parameters={"num_steps": "1"}),
        evaluating.rule_job("AllZero", parameters={"collection_names": "all", "literal": "yes"}),
    )


def verdict(result: RuleResult) -> dict[str, Any]:
    """Return all of a result that must not depend on when files came."""
    seen = result.coverage
    return {
        "rule": result.rule,
        "status": result.status,
        "outcome": result.outcome,
        "step": result.step,
        "evidence": result.evidence,
        "findings": result.findings_count,
        "judged": (seen.judged, seen.first, seen.last),
        "skipped": seen.skipped,
        "missing": seen.missing_workers,
        "details": result.status_details if result.outcome != "NotEvaluated" else None,
    }


def evaluated(config: EvaluationConfig, store: MemoryStore, script: Script) -> list[dict[str, Any]]:
    found = evaluating.runner(config, store, script).run()
    assert found.stop is None
    return [verdict(one) for one in found.result.rules]


def of_finished(what: Written, config: EvaluationConfig) -> list[dict[str, Any]]:
    return evaluated(config, MemoryStore(what.files()), Script(WoundClock()))


def configuration(folder: str, **more: Any) -> EvaluationConfig:
    return evaluating.configured(Path(folder), rules(), **more)


@given(what=written(), seed=st.integers(0, 2**32), torn=st.booleans(), keep_going=st.booleans())
def test_arriving_trial_is_judged_like_the_finished_one(
    what: Written, seed: int, torn: bool, keep_going: bool
) -> None:
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        store = Arriving(what, seed, torn=torn)
        live = evaluated(configuration(one, keep_going=keep_going), store, Arrivals(store))
        offline = of_finished(what, configuration(two, keep_going=keep_going))
    assert offline == live


def records(folder: Path, config: EvaluationConfig) -> Mapping[str, list[dict[str, Any]]]:
    """Return the findings of each rule job, without their ids, which no other evaluation has."""
    path = folder / "findings.jsonl"
    lines = evaluating.json_lines(path) if path.exists() else []
    assert len({line.pop("id") for line in lines}) == len(lines)
    found: dict[str, list[dict[str, Any]]] = {rule.configuration_name: [] for rule in config.rules}
    for line in lines:
        found[line["configuration_name"]].append(line)
    return found


@given(
    what=written(),
    seed=st.integers(0, 2**32),
    torn=st.booleans(),
    keep_going=st.booleans(),
    deaths=st.lists(st.integers(1, 60), max_size=4),
)
def test_restarted_evaluation_comes_to_the_same(
    what: Written, seed: int, torn: bool, keep_going: bool, deaths: list[int]
) -> None:
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        store = Arriving(what, seed, torn=torn)
        config = configuration(one, keep_going=keep_going)
        for death in deaths:
            store.dies_at = store.calls + death
            try:
                live = evaluated(config, store, Arrivals(store))
                break
            except KilledError:
                continue
        else:
            store.dies_at = -1
            live = evaluated(config, store, Arrivals(store))
        plain = configuration(two, keep_going=keep_going)
        assert of_finished(what, plain) == live
        assert records(Path(two), plain) == records(Path(one), config)
        check_events(Path(one) / "events.jsonl", live)


def check_events(path: Path, verdicts: list[dict[str, Any]]) -> None:
    """Check that no event is repeated, that the last is true, and that final statuses stay."""
    details = [one["detail"] for one in evaluating.json_lines(path)]
    keys = [one["EventKey"] for one in details]
    assert len(set(keys)) == len(keys)
    sequences = [one["EventSequence"] for one in details]
    assert sorted(set(sequences)) == sequences
    by_rule: dict[str, list[str]] = {}
    for one in details:
        for state in one["DebugRuleEvaluationStatuses"]:
            by_rule.setdefault(state["RuleConfigurationName"], []).append(
                state["RuleEvaluationStatus"]
            )
    assert {one["rule"]: one["status"] for one in verdicts} == {
        name: statuses[-1] for name, statuses in by_rule.items()
    }
    for statuses in by_rule.values():
        final = [status for status in statuses if status != "InProgress"]
        assert statuses == ["InProgress"] * (len(statuses) - len(final)) + final
        assert len(set(final)) == 1
