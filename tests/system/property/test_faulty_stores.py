"""One verdict on any store: what fails for a while, comes late or breaks off changes nothing."""

import tempfile
from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import evaluating
import numpy as np
import pytest
import rawtrial
from evaluating import END, Script, WoundClock, configured, rule_job
from faulty_store import LOCAL, REMOTE, FaultyStore
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_store import MemoryStore

from rule_core.format import tfrecord
from rule_core.storage.base import ReadCosts, TrialStore
from rule_core.storage.retrying_store import RetryingStore
from rule_runner.results.schema import RuleResult

pytestmark = pytest.mark.merge

RULES = ("VanishingGradient", "ExplodingTensor", "LossNotDecreasing", "AllZero", "UnchangedTensor")
PARAMETERS = {
    "AllZero": {"tensor_regex": "weight"},
    "UnchangedTensor": {"tensor_regex": "weight", "num_steps": "3"},
    "LossNotDecreasing": {"num_steps": "2"},
}
PATTERNS = {"losses": ["loss"], "gradients": ["^gradient"]}
FEW = settings(max_examples=15)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Log nothing, and compute checksums fast."""
    monkeypatch.setattr(rawtrial, "masked", tfrecord.masked_crc)
    evaluating.log_nothing()


def written(workers: int, steps: int = 12) -> dict[str, bytes]:
    """Return a trial in which every rule finds something sooner or later."""
    random = np.random.default_rng(workers)
    found = {END: b""}
    for worker in [f"worker_{number}" for number in range(workers)]:
        found[rawtrial.collections_key(worker)] = rawtrial.collections(PATTERNS, workers)
        for step in range(steps):
            values = {
                "gradient/a": random.normal(size=(6, 5)).astype("f4") * (1e-9 if step > 7 else 1),
                "gradient/b": np.full((2, 2), np.inf if step in {9, 11} else 1, "f4"),
                "weight/a": np.full((4, 4), min(step, 5), "f4"),
                "weight/z": np.zeros((3, 3), "f4") if step > 5 else np.ones((3, 3), "f4"),
                "loss": np.full(1, 0.0 if step > 8 else max(1 / (step + 1), 0.2), "f4"),
            }
            found |= rawtrial.step_files(step * 3, values, worker=worker)
    return found


def summary(result: RuleResult) -> dict[str, Any]:
    """Return what a verdict is about."""
    return {
        "outcome": (result.outcome, result.status_details, result.step),
        "evidence": result.evidence,
        "coverage": result.coverage,
        "notes": result.notes,
    }


@cache
def judged(workers: int) -> Mapping[str, dict[str, Any]]:
    """Return the verdicts on the trial as it is."""
    return verdicts(MemoryStore(written(workers)), Script(WoundClock()))


def verdicts(
    store: TrialStore, script: Script, rules: Sequence[str] = RULES, **more: Any
) -> Mapping[str, dict[str, Any]]:
    """Return the summaries of an evaluation, by rule."""
    jobs = [rule_job(one, parameters=PARAMETERS.get(one, {})) for one in rules]
    with tempfile.TemporaryDirectory() as folder:
        config = configured(Path(folder) / "out", jobs, keep_going=True, **more)
        found = evaluating.runner(config, store, script).run().result
    return {one.rule: summary(one) for one in found.rules}


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("costs", [LOCAL, REMOTE], ids=["local", "remote"])
@FEW
@given(seed=st.integers(0, 10**6), failing=st.integers(0, 4), torn=st.integers(0, 2))
def test_reads_that_fail_for_a_while_change_nothing(
    workers: int, costs: ReadCosts, seed: int, failing: int, torn: int
) -> None:
    content, clean = written(workers), judged(workers)
    assert {one["outcome"][0] for one in clean.values()} == {"IssuesFound"}
    # What breaks off without a word is read again at the next look: the training goes on meanwhile.
    live = {key: data for key, data in content.items() if key != END}
    clock = WoundClock()
    script = Script(clock, [*[int] * 60, lambda: live.update({END: b""})])
    faulty = FaultyStore(MemoryStore(live), seed, failing=failing, torn=torn, costs=costs)
    assert verdicts(RetryingStore(faulty, clock), script) == clean


@pytest.mark.parametrize("workers", [1, 2])
@FEW
@given(seed=st.integers(0, 10**6), arrival=st.randoms(use_true_random=False))
def test_listings_that_lag_change_nothing(workers: int, seed: int, arrival: Any) -> None:
    content, clean = written(workers), judged(workers)
    live: dict[str, bytes] = {}
    script = Script(WoundClock())
    for key in sorted(content, key=order):
        script.steps += [partial(live.update, {key: content[key]})]
        script.steps += [int] * arrival.randint(0, 2)
    faulty = FaultyStore(MemoryStore(live), seed, lag=1, costs=REMOTE)
    assert verdicts(faulty, script, wait_for_trial=60.0) == clean


def order(key: str) -> tuple[int, int, bool]:
    """Return when writers write a file: collections, then step by step, index after events."""
    if not key.startswith(("index", "events")):
        return (-1 if key != END else 10**9, 0, False)
    step, _, worker = key.rpartition("/")[2].partition("_")
    return (int(step), int(worker[7]), key.startswith("index"))


@pytest.mark.parametrize("costs", [LOCAL, REMOTE], ids=["local", "remote"])
def test_step_that_is_listed_too_late_is_reported(costs: ReadCosts) -> None:
    content = written(1)
    live = {key: data for key, data in content.items() if key != END}
    late = live.pop(rawtrial.index_key(6))
    script = Script(WoundClock(), [int] * 50 + [lambda: live.update({rawtrial.index_key(6): late})])
    script.steps += [int, lambda: live.update({END: b""})]
    found = verdicts(FaultyStore(MemoryStore(live), costs=costs), script, ["AllZero"])
    coverage = found["AllZero"]["coverage"]
    assert (coverage.judged, coverage.skipped, coverage.known) == (11, {"came too late": 1}, 12)


@pytest.mark.parametrize("costs", [LOCAL, REMOTE], ids=["local", "remote"])
def test_index_file_that_can_never_be_read_is_a_step_that_is_unreadable(costs: ReadCosts) -> None:
    key = rawtrial.index_key(6)
    store = FaultyStore(MemoryStore(written(1)), lost=(key,), costs=costs)
    found = verdicts(store, Script(WoundClock()), ["AllZero"])["AllZero"]
    coverage = found["coverage"]
    assert (coverage.judged, coverage.skipped, coverage.known) == (11, {"unreadable": 1}, 12)
    assert found["notes"] == [
        f"Step 6 of worker 'worker_0' is unreadable. Cannot read {key!r}: its disk has burnt."
    ]


@pytest.mark.parametrize("costs", [LOCAL, REMOTE], ids=["local", "remote"])
def test_step_of_which_one_worker_can_be_read_is_judged_with_it(costs: ReadCosts) -> None:
    key = rawtrial.index_key(6, "worker_1")
    store = FaultyStore(MemoryStore(written(2)), lost=(key,), costs=costs)
    found = verdicts(store, Script(WoundClock()), ["AllZero"])["AllZero"]
    coverage = found["coverage"]
    assert (coverage.judged, coverage.skipped, coverage.known) == (12, {}, 12)
    assert coverage.missing_workers == {"worker_1": 1}
    assert found["notes"] == [
        f"Step 6 of worker 'worker_1' is unreadable. Cannot read {key!r}: its disk has burnt."
    ]


@pytest.mark.parametrize("costs", [LOCAL, REMOTE], ids=["local", "remote"])
@pytest.mark.parametrize("rule", ["AllZero", "VanishingGradient", "LossNotDecreasing"])
def test_event_file_that_can_never_be_read_is_a_step_that_is_unreadable(
    costs: ReadCosts, rule: str
) -> None:
    key = rawtrial.event_key(6)
    store = FaultyStore(MemoryStore(written(1)), lost=(key,), costs=costs)
    found = verdicts(store, Script(WoundClock()), [rule])[rule]
    assert found["coverage"].skipped.get("unreadable") == 1
    assert found["notes"] == [
        f"Step 6 of worker 'worker_0' is unreadable. Cannot read {key!r}: its disk has burnt."
    ]


@pytest.mark.parametrize("live", [False, True])
def test_trial_of_which_no_step_can_be_read_is_not_taken_for_an_empty_one(live: bool) -> None:
    content = written(1)
    if live:
        del content[END]
    store = FaultyStore(MemoryStore(content), lost=("index/",), costs=LOCAL)
    script = Script(WoundClock(), [*[int] * 5, lambda: content.update({END: b""})])
    found = verdicts(store, script, ["AllZero"])["AllZero"]
    details = (
        "InsufficientInformationForRuleInvocation: Rule 'AllZero' judged none of 12 known steps "
        "(skipped for unreadable: 12). It looked for the selected tensors (pattern 'weight'). "
        "Trial '/trial' holds no readable steps."
    )
    assert found["outcome"] == (
        "NotEvaluated",
        details,
        None,
    )


@pytest.mark.parametrize("lost", ["index/", "collections/"])
def test_remote_trial_of_which_nothing_may_be_read_is_the_end(lost: str) -> None:
    content = written(1)
    del content[END]
    store = FaultyStore(MemoryStore(content), lost=(lost,), costs=REMOTE)
    script = Script(WoundClock())
    found = verdicts(store, script, ["AllZero"])["AllZero"]
    key = {"index/": rawtrial.index_key(33), "collections/": rawtrial.collections_key()}[lost]
    details = f"ClientError: Cannot read {key!r}: its disk has burnt."
    assert found["outcome"] == ("Error", details, None)
    assert script.waits == []
