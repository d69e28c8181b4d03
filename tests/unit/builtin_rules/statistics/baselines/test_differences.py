"""differences: how a run differs from good runs, and what is no difference."""

import numpy as np
import pytest
from seeded_runs import STEPS, Change, Rows, good_runs, rows_of_seed, seeded_run, trial_of

from builtin_rules.statistics.baselines.baseline_file import (
    BaselineFile,
    ProgressAxis,
    make_baseline,
)
from builtin_rules.statistics.baselines.differences import Difference, differences
from builtin_rules.statistics.baselines.run_metrics import TokenCounter
from rule_core.exceptions import SMDebugValueError
from rule_core.trials.trial import Trial

GOOD = make_baseline(good_runs())


def worse(trial: Trial) -> list[Difference]:
    return [each for each in differences(GOOD, trial) if each.is_outside and not each.is_better]


def named(trial: Trial) -> set[tuple[str | None, str]]:
    return {(each.metric, each.quantity) for each in worse(trial)}


@pytest.mark.parametrize("seed", range(20, 40))
def test_another_seed_is_no_difference(seed: int) -> None:
    assert named(seeded_run(seed)) == set()


def grown(name: str, factor: float, since: int = 0) -> Change:
    def change(rows: Rows) -> None:
        rows[name][since:] *= factor

    return change


@pytest.mark.parametrize(
    ("change", "found"),
    [
        pytest.param(grown("loss", 1.2, 100), ("loss", "final"), id="final-loss"),
        pytest.param(grown("loss", 1.5, 0), ("loss", "area"), id="area"),
        pytest.param(grown("val_accuracy", 0.9, 100), ("val_accuracy", "final"), id="metric"),
        pytest.param(grown("grad_norm", 1.5), ("grad_norm", "level"), id="norm"),
        pytest.param(grown("grad_norm", 1 / 1.5), ("grad_norm", "level"), id="smaller-norm"),
        pytest.param(grown("tokens_per_second", 0.95), ("tokens_per_second", "level"), id="speed"),
        pytest.param(lambda rows: rows.pop("val_loss"), ("val_loss", "vanished"), id="vanished"),
        pytest.param(
            lambda rows: rows.update(val_loss=rows["val_loss"][:120]),
            ("val_loss", "vanished"),
            id="vanished-later",
        ),
        pytest.param(grown("loss", np.nan, 150), ("loss", "not_finite"), id="nan"),
        pytest.param(
            grown("val_loss", np.inf, 0), ("val_loss", "not_finite"), id="always-infinite"
        ),
    ],
)
def test_what_is_worse_is_found(change: Change, found: tuple[str, str]) -> None:
    assert found in named(seeded_run(7, change))


def test_spikes_are_counted() -> None:
    def change(rows: Rows) -> None:
        rows["loss"][5::20] *= 3

    assert ("loss", "spikes") in named(seeded_run(7, change))


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(grown("loss", 0.5, 50), id="loss"),
        pytest.param(grown("tokens_per_second", 2.0), id="speed"),
        pytest.param(grown("val_accuracy", 1.05, 50), id="metric"),
    ],
)
def test_what_is_better_is_a_note(change: Change) -> None:
    trial = seeded_run(7, change)
    assert named(trial) == set()
    assert any(each.is_better for each in differences(GOOD, trial))


def test_it_tells_since_when() -> None:
    def change(rows: Rows) -> None:
        rows["loss"][100:] *= 1.5
        rows["loss"][20:30] *= 1.5  # an earlier part, which passes

    (found,) = (each for each in worse(seeded_run(7, change)) if each.quantity == "final")
    assert found.step is not None
    assert 80 <= found.step <= 120
    assert found.limit < found.measured
    assert " %, band " in found.note


def test_a_run_that_was_cut_off_is_judged_by_what_is_left() -> None:
    assert named(seeded_run(7, steps=100)) == {(None, "length")}
    slow = named(seeded_run(7, grown("tokens_per_second", 0.9), steps=100))
    assert slow == {(None, "length"), ("tokens_per_second", "level")}


def test_rows_after_the_good_runs_are_left_out() -> None:
    assert named(seeded_run(7, grown("loss", 5.0, STEPS), steps=2 * STEPS)) == set()


def test_a_single_nan_among_rows_is_left_out() -> None:
    def change(rows: Rows) -> None:
        rows["loss"][10] = np.nan

    assert named(seeded_run(7, change)) == set()


def test_runs_of_different_lengths_are_aligned_by_their_shares() -> None:
    runs = [seeded_run(seed, steps=150 + 20 * seed) for seed in range(5)]
    baseline = make_baseline(runs)
    assert baseline.axis is ProgressAxis.SHARE
    found = [each for each in differences(baseline, seeded_run(8, steps=180)) if each.is_outside]
    assert [each for each in found if not each.is_better] == []


def counting_tokens(seed: int, batch: int, change: Change = lambda rows: rows) -> Trial:
    """Return a run that sees 24,000 tokens in batches of this size, and logs how many."""
    count = 24_000 // batch
    chosen = np.arange(count) * 240 // count
    rows = {name: each[chosen] for name, each in rows_of_seed(seed, 240).items()}
    rows["num_input_tokens_seen"] = batch * np.arange(1, count + 1.0)
    change(rows)
    return trial_of(rows, f"seed_{seed}")


BY_TOKENS = make_baseline([counting_tokens(seed, 100 + 20 * seed) for seed in range(6)])


def outside(baseline: BaselineFile, trial: Trial) -> set[tuple[str | None, str]]:
    found = [each for each in differences(baseline, trial) if each.is_outside]
    return {(each.metric, each.quantity) for each in found if not each.is_better}


def test_runs_with_batches_of_other_sizes_are_aligned_by_tokens() -> None:
    assert (BY_TOKENS.axis, BY_TOKENS.length) == (ProgressAxis.TOKENS, 24_000)
    assert outside(BY_TOKENS, counting_tokens(8, 150)) == set()
    worse_run = counting_tokens(8, 150, grown("loss", 1.5, 80))
    assert ("loss", "final") in outside(BY_TOKENS, worse_run)
    (since,) = {
        each.step for each in differences(BY_TOKENS, worse_run) if each[:2] == ("loss", "final")
    }
    assert since is not None
    assert 70 <= since <= 90  # a step of the training, not a number of tokens


def test_a_run_that_saw_fewer_tokens_ended_early() -> None:
    def end(rows: Rows) -> None:
        rows.update({name: each[:120] for name, each in rows.items()})

    found = [*differences(BY_TOKENS, counting_tokens(8, 150, end))]
    lengths = [(each.measured, each.limit) for each in found if each.quantity == "length"]
    assert lengths == [(18_000, BY_TOKENS.shortest)]


def test_a_counter_that_falls_counts_no_tokens() -> None:
    def restart(rows: Rows) -> None:
        rows["num_input_tokens_seen"] = 100.0 * (np.arange(len(rows["loss"])) % 100)

    with pytest.raises(SMDebugValueError, match="logs no number of tokens seen that only rises"):
        outside(BY_TOKENS, seeded_run(8, restart))


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        *((name, True) for name in ("tokens", "train/num_tokens", "total_tokens", "tokens_seen")),
        *((name, True) for name in ("consumed_train_tokens", "throughput/total_tokens")),
        *((name, False) for name in ("tokens_per_second", "eval/num_tokens", "mean_tokens")),
    ],
)
def test_counters_of_tokens_are_told_by_their_names(name: str, counts: bool) -> None:
    rows = {"loss": np.ones(50), name: np.arange(50.0)}
    assert TokenCounter(trial_of(rows)).total == 49 * counts


def test_constant_metrics_have_a_band() -> None:
    constant = {"loss": np.zeros(50), "val_accuracy": np.ones(50)}
    baseline = make_baseline([trial_of(constant, name) for name in "abc"])
    assert not any(each.is_outside for each in differences(baseline, trial_of(constant)))
    changed = constant | {"val_accuracy": np.full(50, 0.9)}
    found = {each.metric for each in differences(baseline, trial_of(changed)) if each.is_outside}
    assert found == {"val_accuracy"}


def test_one_run_has_wide_bands() -> None:
    baseline = make_baseline(good_runs(1))
    healthy = [each for each in differences(baseline, seeded_run(7)) if each.is_outside]
    assert [each for each in healthy if not each.is_better] == []
    worse_run = seeded_run(7, grown("loss", 3.0))
    assert any(
        each.metric == "loss" and each.is_outside for each in differences(baseline, worse_run)
    )
