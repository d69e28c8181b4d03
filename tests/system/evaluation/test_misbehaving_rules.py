"""What one rule does to what it gets, and to the process, another does not see."""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import evaluating
import misbehaving
import numpy as np
import pytest
import rawtrial
from evaluating import Script, WoundClock, configured, rule_job
from misbehaving import SPOILS, LooksAround, Overflows, Spoils

from rule_core.storage.local import LocalStore
from rule_runner.config.model import RuleJobConfig
from rule_runner.loading.loader import load_from
from rule_runner.results.schema import RuleResult

PATTERNS = {"losses": ["loss"], "gradients": ["^gradient"], "weights": ["weight"]}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Log nothing, and let warnings be no errors, as in the command."""
    evaluating.log_nothing()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    random = np.random.default_rng(1)
    files = {
        rawtrial.collections_key(worker): rawtrial.collections(PATTERNS, 2)
        for worker in ("worker_0", "worker_1")
    }
    for step in range(4):
        for worker in ("worker_0", "worker_1"):
            values = {
                "loss": np.full(1, 1 / (step + 1), "f4"),
                "gradient/a": random.normal(size=(3, 2)).astype("f4"),
                "weight/a": random.normal(size=(2, 2)).astype("f4") * (step > 1),
            }
            files |= rawtrial.step_files(step * 3, values, "TRAIN", step, worker)
    return rawtrial.write(tmp_path / "trial", files | {evaluating.END: b""})


VICTIMS = (
    rule_job(LooksAround),
    rule_job(Overflows),
    rule_job("AllZero", parameters={"collection_names": "weights"}),
    rule_job("VanishingGradient", parameters={"threshold": "10"}),
    rule_job("LossNotDecreasing", parameters={"num_steps": "1", "literal": "True"}),
)


def judged(output: Path, trial: Path, *jobs: RuleJobConfig) -> list[RuleResult]:
    """Return what rules come to over a trial, all hits."""
    config = configured(output, jobs, str(trial), keep_going=True)
    script = Script(WoundClock())
    return evaluating.runner(config, LocalStore(trial), script).run().result.rules


def seen(result: RuleResult) -> dict[str, Any]:
    """Return all of a result that another rule must not change."""
    names = ("status", "outcome", "status_details", "step", "evidence", "coverage", "notes")
    return {name: getattr(result, name) for name in names}


@pytest.mark.parametrize("what", SPOILS)
def test_what_a_rule_spoils_is_its_own(tmp_path: Path, trial: Path, what: str) -> None:
    spoils = rule_job(Spoils, parameters={"what": what})
    together = judged(tmp_path / "together", trial, spoils, *VICTIMS)[1:]
    alone = [judged(tmp_path / str(at), trial, one)[0] for at, one in enumerate(VICTIMS)]
    assert [one.coverage.judged for one in alone] == [4, 4, 3, 4, 3]
    assert [seen(one) for one in alone] == [seen(one) for one in together]


def test_file_of_a_rule_may_change_settings_too(tmp_path: Path, trial: Path) -> None:
    text = Path(misbehaving.__file__).read_text()
    source = tmp_path / "spoils.py"
    source.write_text(f"{text}\n\n_settings(None, 0)\n")
    spoils = RuleJobConfig("spoils", load_from(str(source), "Spoils"))
    (alone,) = judged(tmp_path / "alone", trial, rule_job(Overflows))
    _, beside = judged(tmp_path / "together", trial, spoils, rule_job(Overflows))
    assert seen(beside) == seen(alone)
    assert alone.outcome == "IssuesFound"


def test_rule_that_spoils_is_an_error_at_most_for_itself(tmp_path: Path, trial: Path) -> None:
    spoils = [
        rule_job(Spoils, str(at), parameters={"what": what}) for at, what in enumerate(SPOILS)
    ]
    found = judged(tmp_path / "out", trial, *spoils, rule_job(LooksAround))
    (alone,) = judged(tmp_path / "alone", trial, rule_job(LooksAround))
    assert seen(found[-1]) == seen(alone)
