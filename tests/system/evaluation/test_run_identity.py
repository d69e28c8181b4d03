"""Identity of evaluations: run ids, keys of events and messages, names of trials."""

from pathlib import Path
from typing import Any

import evaluating
import numpy as np
import pytest
import saved
from evaluating import END, Script, WoundClock, configured, json_lines
from memory_store import MemoryStore

from rule_runner.engine.outcome import EvaluationOutcome
from rule_runner.engine.runner import Runner
from rule_runner.notify.sinks.sns import _order
from smdebug.rules import Rule


@pytest.fixture(autouse=True)
def _quiet() -> None:
    evaluating.log_nothing()


class Above(Rule):
    """Met when the loss is above 1."""

    def invoke_at_step(self, step: int) -> bool:
        value = float(self.base_trial.tensor("loss").value(step)[0])
        return value > 1 and self.found(step, "loss", measured=value, limit=1.0)


class Never(Rule):
    def invoke_at_step(self, step: int) -> bool:
        return bool(self.base_trial.tensor("loss").value(step)[0] < 0)


class KilledError(BaseException):
    """The process ends here."""


def losses(*, ended: bool = True) -> dict[str, bytes]:
    steps = {step: {"loss": np.float32([step])} for step in range(4)}
    return evaluating.trial(steps, {"losses": ["loss"]}, ended=ended)


def runner(output: Path, *rules: Any, trial: str = "/runs/mnist", **more: Any) -> Runner:
    config = configured(output, rules or [Above], trial, **more)
    return evaluating.runner(config, MemoryStore(losses()))


def evaluate(output: Path, *rules: Any, **more: Any) -> EvaluationOutcome:
    return runner(output, *rules, **more).run()


def events(output: Path) -> list[dict[str, Any]]:
    return json_lines(output / "events.jsonl")


def keys(output: Path) -> set[str]:
    found = {one["detail"]["EventKey"] for one in events(output)}
    assert len(found) == len({one["id"] for one in events(output)}) == len(events(output))
    return found


def run_ids(output: Path) -> set[str]:
    """Return the run ids that the results and events below a folder hold."""
    documents = [saved.document(one.parent) for one in output.rglob("results.json")]
    results = [one for document in documents for one in (document, *document["rules"])]
    told = [one for file in output.rglob("events.jsonl") for one in json_lines(file)]
    return {one["run_id"] for one in results} | {one["detail"]["RunId"] for one in told}


@pytest.mark.parametrize(
    "places",
    [
        pytest.param(("/runs/mnist-1/debug-output", "/runs/mnist-2/debug-output"), id="jobs"),
        pytest.param(("/runs/debug-output", "/runs/debug-output"), id="same-name"),
    ],
)
def test_two_trainings_tell_no_id_or_event_key_alike(
    tmp_path: Path, places: tuple[str, str]
) -> None:
    for output, place in zip("ab", places, strict=True):
        evaluate(tmp_path / output, trial=place)
    assert keys(tmp_path / "a").isdisjoint(keys(tmp_path / "b"))
    dropped = [
        {_order(one)["MessageDeduplicationId"] for one in events(tmp_path / x)} for x in "ab"
    ]
    assert dropped[0].isdisjoint(dropped[1])


def test_the_events_of_two_jobs_name_their_jobs(tmp_path: Path) -> None:
    for job in ("mnist-1", "mnist-2"):
        evaluate(tmp_path / job, trial=f"/runs/{job}/debug-output")
        assert {one["detail"]["TrainingJobName"] for one in events(tmp_path / job)} == {job}
    evaluate(tmp_path / "named", trial="/runs/mnist-1/debug-output", training_job_name="mine")
    assert {one["detail"]["TrainingJobName"] for one in events(tmp_path / "named")} == {"mine"}


def test_overwrite_is_another_evaluation(tmp_path: Path) -> None:
    evaluate(tmp_path)
    before, (old,) = keys(tmp_path), run_ids(tmp_path)
    evaluate(tmp_path, overwrite=True)
    (new,) = run_ids(tmp_path)
    assert new != old
    assert keys(tmp_path).isdisjoint(before)


def test_a_restart_keeps_the_run_id_of_all_rule_jobs(tmp_path: Path) -> None:
    def die() -> None:
        raise KilledError

    files = losses(ended=False)
    config = configured(tmp_path, [Above, Never])
    with pytest.raises(KilledError):
        evaluating.runner(config, MemoryStore(files), Script(WoundClock(), [die])).run()
    (before,) = run_ids(tmp_path)
    files[END] = b""
    found = evaluating.runner(config, MemoryStore(files)).run().result
    assert run_ids(tmp_path) == {before} == {one.run_id for one in found.rules}


def test_the_run_id_is_recorded_before_the_first_event(tmp_path: Path) -> None:
    def die() -> None:
        assert not (tmp_path / "events.jsonl").exists()
        raise KilledError

    config = configured(tmp_path, [Above], "/runs/mnist")
    with pytest.raises(KilledError):
        evaluating.runner(config, MemoryStore(losses()), recorded=die).run()
    (recorded,) = run_ids(tmp_path)
    evaluate(tmp_path)
    assert run_ids(tmp_path) == {recorded}
