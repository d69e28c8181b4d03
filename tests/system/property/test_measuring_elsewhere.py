"""Wherever a trial is measured, the verdicts, evidence and coverage are those of one process."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import measuring_elsewhere
import numpy as np
import pytest
import rawtrial
import s3_objects
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from measuring_elsewhere import (
    InlineExecutor,
    every_rule,
    judged,
    measuring_rules,
    saved_trial,
    small_blocks,
    verdicts,
)

from rule_core.model.reductions import Reduction
from rule_core.rules.requirements import TensorInput
from rule_core.rules.rule import Rule
from rule_core.rules.wants import WantedMeasure
from rule_runner.batch.shards import Shard
from rule_runner.commands.measure import measure_trial
from rule_runner.config.request import EvaluationRequest, RuleRequest
from rule_runner.executors import open_executor

pytestmark = pytest.mark.merge


@pytest.fixture(autouse=True)
def blocks() -> Iterator[None]:
    with small_blocks():
        yield


def is_same(
    trial: Path,
    tmp_path: Path,
    executor: Any,
    rules: Callable[[], Any] = measuring_rules,
    **more: Any,
) -> dict[str, Any]:
    """Check that two evaluations judge the same; return the second."""
    here = judged(trial, tmp_path / "here", rules())
    elsewhere: dict[str, Any]
    elsewhere = judged(trial, tmp_path / "elsewhere", rules(), executor=executor, **more)
    assert verdicts(elsewhere) == verdicts(here)
    return elsewhere


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def garble(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 0xFF
    path.write_bytes(content)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def remove(path: Path) -> None:
    path.unlink()


def test_every_rule_judges_the_same(tmp_path: Path) -> None:
    executor = InlineExecutor()
    content = is_same(saved_trial(tmp_path / "trial"), tmp_path, executor, every_rule)
    assert {"parse_block", "measure_block"} == set(executor.calls)
    assert content["ExplodingTensor"]["outcome"] == "IssuesFound"
    assert "'AttentionCollapse'" in content["notes"][0]


def test_modes_and_missing_workers_are_judged_the_same(tmp_path: Path) -> None:
    trial = saved_trial(tmp_path / "trial", modes=True)
    for key in (rawtrial.index_key(30, "worker_1"), rawtrial.event_key(30, "worker_1")):
        (trial / key).unlink()
    is_same(trial, tmp_path, InlineExecutor())


@pytest.mark.parametrize("damage", [cut, garble, empty, remove])
@pytest.mark.parametrize("key", [rawtrial.index_key, rawtrial.event_key])
def test_damaged_files_are_judged_the_same(
    tmp_path: Path, damage: Callable[[Path], None], key: Callable[[int, str], str]
) -> None:
    trial = saved_trial(tmp_path / "trial", 2, 5)
    damage(trial / key(20, "worker_1"))
    is_same(trial, tmp_path, InlineExecutor())


def test_what_workers_lose_is_measured_here(tmp_path: Path) -> None:
    executor = InlineExecutor(lambda call: RuntimeError("lost") if call % 2 else None)
    content = is_same(saved_trial(tmp_path / "trial"), tmp_path, executor)
    assert "RuntimeError: lost" in content["notes"][1]


def test_after_three_losses_in_a_row_nothing_is_sent(tmp_path: Path) -> None:
    executor = InlineExecutor(lambda _: RuntimeError("lost"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measuring_elsewhere.executor_measurer, "BLOCKS_AHEAD", 1)
        is_same(saved_trial(tmp_path / "trial"), tmp_path, executor)
    assert len(executor.calls) <= 2 + measuring_elsewhere.executor_measurer.FAILURES


class Largest(Rule):
    """Declares what it measures, and asks for more."""

    def __init__(self, base_trial: Any) -> None:
        super().__init__(base_trial)
        self.tensors = TensorInput("weights", ("weights",))

    @property
    def wants(self) -> Any:
        return [WantedMeasure(Reduction("max", absolute=True), self.tensors)]

    def invoke_at_step(self, step: int) -> bool:
        for name in self.tensors.names(self.base_trial, step):
            for worker in self.base_trial.tensor(name).workers(step):
                tensor = self.base_trial.tensor(name)
                if not np.prod(tensor.shape(step, worker=worker)):
                    continue
                top = tensor.reduction_value(step, "max", worker=worker, abs=True)
                mean = tensor.reduction_value(step, "mean", worker=worker)
                self.found(step, name, worker, float(top), float(mean))
        return True


class Raising(Largest):
    """Cannot say what it measures."""

    @property
    def wants(self) -> Any:
        return 1 / 0


class Junk(Largest):
    """Declares what nobody can measure."""

    @property
    def wants(self) -> Any:
        return [1, "l2"]


@pytest.mark.parametrize("rule", [Largest, Raising, Junk])
def test_custom_rule_judges_the_same(tmp_path: Path, rule: type[Rule]) -> None:
    trial = saved_trial(tmp_path / "trial", 2, 4)
    here = judged(trial, tmp_path / "here", [rule])
    there = judged(trial, tmp_path / "there", [rule], executor=InlineExecutor())
    assert verdicts(there) == verdicts(here)
    assert len(here["findings.jsonl"].splitlines()) > 8
    assert bool(there["notes"]) == (rule is not Largest)


class Growing:
    """Writes a trial while it is judged: the last two steps at the first wait, then its end."""

    def __init__(self, whole: Path, root: Path) -> None:
        files = sorted(path for path in whole.rglob("*") if path.is_file())
        self._whole, self._root = whole, root
        end = [path for path in files if path.name == rawtrial.TRAINING_JOB_END]
        late = [path for path in files if path.name[:12] in {f"{step:012d}" for step in (40, 50)}]
        self._copy([path for path in files if path not in late + end])
        self._pieces = [sorted(late), end]

    def _copy(self, paths: list[Path]) -> None:
        for path in paths:
            target = self._root / path.relative_to(self._whole)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())

    def wait(self, seconds: float) -> None:
        """Write the next files."""
        del seconds
        if self._pieces:
            self._copy(self._pieces.pop(0))


def test_growing_trial_is_judged_the_same(tmp_path: Path) -> None:
    whole, root = saved_trial(tmp_path / "whole", 2, 6), tmp_path / "trial"
    executor = InlineExecutor()

    def live(name: str, executor: Any) -> dict[str, Any]:
        waiter = Growing(whole, root)
        content = judged(
            root, tmp_path / name, measuring_rules(), executor=executor, waiter=waiter, end_grace=0
        )
        shutil.rmtree(root)
        return content

    here, elsewhere = live("here", None), live("elsewhere", executor)
    assert verdicts(elsewhere) == verdicts(here)
    assert here["NormGrowth"]["coverage"]["last"] == 50
    assert executor.calls.count("measure_block") > 1


@settings(
    max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(seed=st.integers(0, 2**32))
def test_random_trials_are_judged_the_same(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    random = Random(seed)
    tmp_path = tmp_path_factory.mktemp("drawn")
    trial = saved_trial(
        tmp_path / "trial", random.randint(1, 3), random.randint(1, 5), modes=random.random() < 0.5
    )
    files = sorted(path for path in trial.rglob("*worker*") if "collections" not in path.name)
    for path in random.sample(files, random.randint(0, 3)):
        random.choice([cut, garble, empty, remove])(path)
    lost = random.random() / 2
    executor = InlineExecutor(lambda _: OSError("lost") if random.random() < lost else None)
    is_same(trial, tmp_path, executor)


REQUEST = EvaluationRequest(
    rules=tuple(
        RuleRequest(name=name)
        for name in ("VanishingGradient", "NormGrowth", "WeightUpdateRatio", "DeadRelu")
    )
)


def measured(trial: Path, folder: Path, shards: int = 3) -> list[Path]:
    """Measure a trial in shards; return the files."""
    for number in range(shards):
        request = EvaluationRequest(trial=str(trial), rules=REQUEST.rules)
        measure_trial(request, Shard(number, shards), str(folder))
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_measurement_files_give_the_same(tmp_path: Path) -> None:
    trial, folder = saved_trial(tmp_path / "trial", 4), tmp_path / "measures"
    assert len(measured(trial, folder)) == 4
    content = is_same(trial, tmp_path, None, measurements=str(folder))
    assert len(content["notes"]) == 1  # on the rules that declare nothing


@pytest.mark.parametrize("damage", [cut, garble, empty])
def test_damaged_measurement_files_are_named_and_measured_again(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    trial, folder = saved_trial(tmp_path / "trial"), tmp_path / "measures"
    files = measured(trial, folder)
    damage(files[1])
    content = is_same(trial, tmp_path, None, measurements=str(folder))
    assert f"{files[1].relative_to(folder)}' is not used" in content["notes"][1]


def test_measures_of_another_training_are_measured_again(tmp_path: Path) -> None:
    trial, folder = saved_trial(tmp_path / "trial"), tmp_path / "measures"
    measured(trial, folder)
    other = rawtrial.step_files(
        10, {"weight/a": np.full((8, 8), 9e9, np.float32)}, "TRAIN", 1, "worker_0"
    )
    rawtrial.write(trial, other)
    content = is_same(trial, tmp_path, None, measurements=str(folder))
    assert "parts of steps have changed" in content["notes"][1]


def test_worker_processes_give_the_same(tmp_path: Path) -> None:
    trial = saved_trial(tmp_path / "trial")
    with open_executor("local:1") as executor:
        content = is_same(trial, tmp_path, executor)
    assert len(content["notes"]) == 1


def test_trial_in_s3_is_judged_the_same(tmp_path: Path, aws_endpoint: str) -> None:
    local, address = saved_trial(tmp_path / "trial", 2, 5), "s3://bucket/trial"
    files = sorted(path for path in local.rglob("*") if path.is_file())
    contents = {f"/{path.relative_to(local)}": path.read_bytes() for path in files}
    s3_objects.make_bucket(aws_endpoint)
    s3_objects.put(aws_endpoint, "trial", contents)
    rules = [job for job in measuring_rules() if job.loaded.name in {"NormGrowth", "AllZero"}]
    executor = InlineExecutor()
    here = judged(address, tmp_path / "here", rules)
    elsewhere = judged(address, tmp_path / "elsewhere", rules, executor=executor)
    assert verdicts(elsewhere) == verdicts(here)
    assert {"parse_block", "measure_block"} == set(executor.calls)
    request = EvaluationRequest(trial=address, rules=(RuleRequest(name="NormGrowth"),))
    measure_trial(request, Shard(0, 1), "s3://bucket/measures")
    stored = judged(address, tmp_path / "stored", rules, measurements="s3://bucket/measures")
    assert verdicts(stored) == verdicts(here)
    assert stored["notes"] == []
