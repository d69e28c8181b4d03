"""PolicyDrift: its cases in policy_drift.rules.yaml, and measures that grow or come back."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from judging_rows import accused, first_of, judge_rows, rows_of
from list_source import Row

from builtin_rules import PolicyDrift
from rule_runner.commands.rule_tests import run_rule_tests
from rule_runner.config.defaults import Isolation

AT = np.arange(300)
REWARD = np.minimum(AT, 150) / 150


def test_the_cases_pass() -> None:
    cases = str(Path(__file__).with_name("policy_drift.rules.yaml"))
    assert run_rule_tests([cases], None, Isolation.NONE, update=False) == 0


@pytest.mark.parametrize(
    ("values", "first"),
    [
        pytest.param(np.where(AT < 200, 0.05, 3.0), 204, id="jumps"),
        pytest.param(np.where(np.isin(AT, (90, 91, 200)), 8.0, 0.05), None, id="spikes"),
        pytest.param(12 * (1 - np.exp(-AT / 60)), None, id="grows-to-a-level"),
        pytest.param(1e-4 + 0.5 * (AT / 300) ** 3, None, id="grows-ever-faster"),
        pytest.param(4e-4 + 0.3 / (1 + np.exp(-(AT - 180) / 12)), None, id="learns-late"),
        pytest.param(np.where(AT < 200, 0.05, 0.05 + 0.1 * (AT - 200)), 209, id="runs-away"),
    ],
)
def test_divergences(values: Sequence[float], first: int | None) -> None:
    judged = judge_rows(PolicyDrift, rows_of(kl=values, reward=REWARD))
    assert first_of(judged) == first


def test_it_recovers_after_rows_within_the_limit() -> None:
    values = np.where((AT >= 100) & (AT < 150), 3.0, 0.05)
    *_, last = judge_rows(PolicyDrift, rows_of(kl=values, reward=REWARD)).findings
    assert last.recovered_at == 169


def test_the_note_compares_with_the_level() -> None:
    rows = rows_of(kl=np.where(AT < 200, 0.05, 3.0), reward=REWARD)
    finding = judge_rows(PolicyDrift, rows).findings[0]
    assert finding.note == "60 times its level, for 5 rows."


@pytest.mark.parametrize(
    ("length", "reward", "first"),
    [
        (np.where(AT < 200, 300.0, 1500.0), 1 - REWARD, 204),
        (np.where(AT < 200, 300.0, 20.0), 1 - REWARD, 204),
        (np.where(AT < 200, 300.0, 100.0), 1 - REWARD, None),
        (np.where(AT < 200, 300.0, 20.0), REWARD, None),  # it has learned to be short
        (np.where(AT < 200, 300.0, 20.0), np.where(AT < 200, REWARD, 0.0), 204),
        (200.0 + 5 * AT, 1 - REWARD, None),
    ],
)
def test_lengths(length: Sequence[float], reward: Sequence[float], first: int | None) -> None:
    rows = rows_of(**{"completions/mean_length": length, "reward": reward})
    assert first_of(judge_rows(PolicyDrift, rows)) == first


def test_no_noisy_divergence_is_accused() -> None:
    def run(seed: int) -> list[Row]:
        noise = np.random.default_rng(seed).lognormal(0.0, 0.8, len(AT))
        return rows_of(approx_kl=0.01 * noise, reward=REWARD)

    assert not accused(PolicyDrift, run, 20)


@pytest.mark.parametrize(
    ("name", "is_judged"),
    [
        ("kl", True),
        ("objective/kl", True),
        ("train/approx_kl", True),
        ("policy/approxkl_avg", True),
        ("actor/ppo_kl", True),
        ("mean_kl_div", True),
        ("losses/clipfrac", True),
        ("policy/clipfrac_avg", True),
        ("clip_ratio/region_mean", True),
        ("response_length/mean", True),
        ("completion_length", True),
        ("kl_loss", False),
        ("kl_coef", False),
        ("target_kl", False),
        ("latent/kl", False),
        ("completions/clipped_ratio", False),
        ("response_length/clip_ratio", False),
        ("critic/vf_clipfrac", False),
        ("completions/max_length", False),
        ("completions/mean_terminated_length", False),
    ],
)
def test_names_of_measures(name: str, *, is_judged: bool) -> None:
    judged = judge_rows(PolicyDrift, rows_of(**{name: np.ones(30), "reward": np.ones(30)}))
    assert (29 not in judged.skipped) == is_judged
