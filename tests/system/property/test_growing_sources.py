"""One verdict on a growing file: wherever a reader meets its end, the verdicts stay the same."""

import json
import math
import tempfile
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import evaluating
import pytest
from evaluating import END, Script, WoundClock, configured, rule_job
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_store import MemoryStore

from rule_core.storage.base import FileStatus, TrialStore

RULES = ("LossNotDecreasing", "ExplodingTensor", "Overfit")
PARAMETERS = {
    "LossNotDecreasing": {"num_steps": "2"},
    "ExplodingTensor": {"tensor_regex": "loss|grad_norm"},
}
FEW = settings(max_examples=min(25, settings.default.max_examples))  # each takes its time


@pytest.fixture(autouse=True)
def _quiet() -> None:
    evaluating.log_nothing()


def rows(faults: frozenset[str]) -> list[dict[str, float]]:
    """Return the rows of a run that has some faults, with an evaluation at every fifth step."""
    written: list[dict[str, float]] = []
    for step in range(0, 80, 2):
        loss = math.exp(-step / 30) if "plateau" not in faults else 1.0
        loss = math.nan if "nan" in faults and step >= 76 else loss
        written.append({"step": step, "loss": loss, "grad_norm": 1.0})
        if step % 10 == 0:
            rise = step / 20 if "overfit" in faults else 0.0
            written.append({"step": step, "eval_loss": math.exp(-step / 30) + rise})
    if "resumed" in faults:
        written += [{**row, "loss": 0.5, "grad_norm": math.inf} for row in written[20:24]]
    return written


def as_lines(written: list[dict[str, float]]) -> bytes:
    return "".join(f"{json.dumps(row)}\n" for row in written).encode()


def as_table(written: list[dict[str, float]]) -> bytes:
    names = ["step", "loss", "grad_norm", "eval_loss"]
    lines = [[str(row.get(name, "")) for name in names] for row in written]
    return "".join(f"{','.join(line)}\n" for line in [names, *lines]).encode()


FORMATS = {"log.jsonl": as_lines, "metrics.csv": as_table}


class UndatedStore(MemoryStore):
    """A store that does not say when its files were written, so that none looks old."""

    def status(self, key: str) -> FileStatus:
        return FileStatus(len(self.read(key)), 0.0)


def verdicts(store: TrialStore, script: Script) -> Mapping[str, dict[str, Any]]:
    """Return the verdicts of an evaluation, by rule."""
    jobs = [rule_job(name, parameters=PARAMETERS.get(name, {})) for name in RULES]
    with tempfile.TemporaryDirectory() as folder:
        config = configured(
            Path(folder) / "out", jobs, keep_going=True, report=False, wait_for_trial=60.0
        )
        with evaluating.stores(store):  # what is not recognised at once is opened again
            result = evaluating.runner(config, store, script).run().result
    return {
        rule.rule: {
            "outcome": (rule.outcome, rule.status_details, rule.step),
            "evidence": rule.evidence,
            "coverage": rule.coverage,
            "notes": rule.notes,
        }
        for rule in result.rules
    }


@cache
def judged(name: str, faults: frozenset[str]) -> Mapping[str, dict[str, Any]]:
    """Return the verdicts on the whole file."""
    store = UndatedStore({name: FORMATS[name](rows(faults)), END: b""})
    return verdicts(store, Script(WoundClock()))


@pytest.mark.parametrize("name", FORMATS)
@FEW
@given(
    faults=st.frozensets(st.sampled_from(["plateau", "nan", "overfit", "resumed"])),
    sizes=st.lists(st.integers(1, 700), min_size=1, max_size=12),
)
def test_verdicts_on_a_growing_file_are_those_on_the_whole_one(
    name: str, faults: frozenset[str], sizes: list[int]
) -> None:
    content = FORMATS[name](rows(faults))
    ends = [sum(sizes[:count]) for count in range(1, len(sizes) + 1)]
    live = {name: content[: ends[0]]}
    script = Script(WoundClock(), [partial(live.update, {name: content[:end]}) for end in ends[1:]])
    script.steps += [partial(live.update, {name: content}), partial(live.update, {END: b""})]
    assert verdicts(UndatedStore(live), script) == judged(name, faults)


def test_the_faults_are_found() -> None:
    for name in FORMATS:
        clean = judged(name, frozenset())
        faulty = judged(name, frozenset({"plateau", "nan"}))
        overfit = judged(name, frozenset({"overfit"}))  # while the training loss falls
        assert {rule["outcome"][0] for rule in clean.values()} == {"NoIssuesFound"}
        for rule in RULES:
            found = overfit if rule == "Overfit" else faulty
            assert found[rule]["outcome"][0] == "IssuesFound"


def test_a_fault_in_the_evaluation_is_found_beside_a_training_of_the_same_name() -> None:
    evaluation = [{"step": step, "loss": math.inf if step else 1.0} for step in (0, 2, 4, 6)]
    training = [{"step": step, "loss": 1.0} for step in range(8)]
    files = {"train.jsonl": as_lines(training), "val.jsonl": as_lines(evaluation), END: b""}
    exploding = verdicts(MemoryStore(files), Script(WoundClock()))["ExplodingTensor"]
    assert exploding["outcome"][0] == "IssuesFound"
    found = [(item.step, item.tensor, item.severity) for item in exploding["evidence"]]
    assert found == [(2, "loss", "note"), (4, "loss", "error"), (6, "loss", "error")]
