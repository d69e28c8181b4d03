"""ThroughputDrop: its cases in throughput_drop.rules.yaml, and speeds with noise and pauses."""

from pathlib import Path

import numpy as np
import pytest
from judging_rows import accused, judge_rows, rows_of
from list_source import Row

from builtin_rules import ThroughputDrop
from rule_runner.commands.rule_tests import run_rule_tests
from rule_runner.config.defaults import Isolation

AT = np.arange(300)
NOISE = 1 + 0.01 * np.random.default_rng(0).normal(size=len(AT))
SLOWER = np.where(AT < 200, 1.0, 0.85)


def test_the_cases_pass() -> None:
    cases = str(Path(__file__).with_name("throughput_drop.rules.yaml"))
    assert run_rule_tests([cases], None, Isolation.NONE, update=False) == 0


@pytest.mark.parametrize(
    ("speed", "is_met"),
    [
        pytest.param(SLOWER, True, id="slower"),
        pytest.param(np.where(AT < 200, 1.0, 0.92), False, id="a-little-slower"),
        pytest.param(np.where(AT % 50 == 7, 0.1, 1.0), False, id="pauses"),
        pytest.param(np.where(AT % 60 > 50, 0.6, 1.0), False, id="long-pauses"),
        pytest.param(np.where(AT < 15, 0.1, 1.0), False, id="starts-slowly"),
        pytest.param(np.where(AT < 200, 1.0, 2.0), False, id="faster"),
        pytest.param(1 + 0.2 * np.sin(AT / 40), False, id="swings"),
        pytest.param(np.where(AT < 100, 1.0, 1 - (AT - 100) / 400), True, id="slower-and-slower"),
        pytest.param(np.where(AT < 5, -1.0, 1.0), False, id="not-positive"),
    ],
)
def test_speeds(speed: np.ndarray, *, is_met: bool) -> None:
    judged = judge_rows(ThroughputDrop, rows_of(tokens_per_second=50_000 * speed * NOISE))
    assert bool(judged.met) == is_met


def test_it_recovers_at_the_usual_speed() -> None:
    speed = np.where((AT >= 100) & (AT < 160), 0.7, 1.0) * NOISE
    findings = judge_rows(ThroughputDrop, rows_of(tokens_per_second=speed)).findings
    assert str(findings[0].note).endswith(" percent slower, for 20 rows.")
    assert findings[-1].recovered_at is not None


def test_all_speeds_must_have_fallen() -> None:
    steady = rows_of(**{"it/s": SLOWER * NOISE, "tokens_per_second": NOISE})
    assert not judge_rows(ThroughputDrop, steady).met
    both = rows_of(**{"it/s": SLOWER * NOISE, "tokens_per_second": SLOWER * NOISE})
    assert judge_rows(ThroughputDrop, both).met


def test_a_fall_exceeds_the_noise_unless_it_is_given() -> None:
    noise = 1 + 0.1 * np.random.default_rng(1).normal(size=len(AT))
    rows = rows_of(tokens_per_second=SLOWER * noise)
    assert not judge_rows(ThroughputDrop, rows).met
    assert judge_rows(ThroughputDrop, rows, fall=0.1).met


@pytest.mark.parametrize("deviation", [0.02, 0.1, 0.3])
def test_noise_of_a_shared_machine_is_no_fall(deviation: float) -> None:
    def run(seed: int) -> list[Row]:
        steps = np.random.default_rng(seed).normal(size=len(AT))
        speed = np.zeros(len(AT))
        for row in range(1, len(AT)):
            speed[row] = 0.95 * speed[row - 1] + 0.3 * deviation * steps[row]
        return rows_of(tokens_per_second=np.exp(speed))

    assert not accused(ThroughputDrop, run, 20)


@pytest.mark.parametrize(("level", "is_met"), [(140.0, True), (95.0, False), (0.4, False)])
def test_a_utilization_has_a_limit(level: float, *, is_met: bool) -> None:
    judged = judge_rows(ThroughputDrop, rows_of(mfu=level * NOISE))
    assert bool(judged.met) == is_met
    assert not judge_rows(ThroughputDrop, rows_of(mfu=np.where(AT == 9, 500.0, 40.0))).met


def test_reinforcement_trainings_are_not_judged() -> None:
    rows = rows_of(tokens_per_second=SLOWER, policy_loss=NOISE)
    assert len(judge_rows(ThroughputDrop, rows).skipped) == len(AT)


@pytest.mark.parametrize(
    ("name", "is_speed"),
    [
        ("train/throughput/tokens_per_sec", True),
        ("samples/s", True),
        ("it/s", True),
        ("step_time", True),
        ("time_per_step", True),
        ("sec/step", True),
        ("elapsed time per iteration (ms)", True),
        ("eval_samples_per_second", False),
        ("data_time", False),
        ("total_time", False),
        ("average_throughput", False),
        ("timestep", False),
    ],
)
def test_names_of_speeds(name: str, *, is_speed: bool) -> None:
    judged = judge_rows(ThroughputDrop, rows_of(**{name: NOISE}))
    assert (299 not in judged.skipped) == is_speed
