"""BaselineFile: what makes one, what it refuses, and what is wrong with a file."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from seeded_runs import good_runs, seeded_run, trial_of

from builtin_rules.statistics.baselines.baseline_file import (
    MAX_BYTES,
    make_baseline,
    read_baseline,
)
from smdebug.exceptions import SMDebugValueError

GOOD = make_baseline(good_runs()).to_json()


def test_the_same_runs_give_the_same_text() -> None:
    assert make_baseline(good_runs()[::-1]).to_json() == GOOD


def test_it_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "good.json"
    path.write_text(GOOD)
    assert read_baseline(str(path)) == make_baseline(good_runs())
    assert json.loads(GOOD)["schema_version"] == 1


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "truncated"),
        (GOOD[:3000], "truncated"),
        ("[]", "Expected `object`"),
        ('{"schema_version": 2}', "it has version 2, and this program reads 1"),
        ('{"schema_version": 1}', "missing required field"),
        ('{"schema_version": "1"}', "Expected `int`"),
        (GOOD.replace('"high": ', '"high": NaN, "x": ', 1), "malformed"),
        (GOOD.replace('"kind": "loss"', '"kind": "joy"', 1), "Invalid enum value"),
        (GOOD.replace('"schema_version"', '"more": 1, "schema_version"'), "unknown field"),
        ('{"schema_version": 1, "runs": ' + "[" * 100_000, "recursion"),
        ("x" * (MAX_BYTES + 1), "more than 4 MiB"),
    ],
)
def test_a_file_that_cannot_be_used_gets_one_sentence(
    tmp_path: Path, content: str, reason: str
) -> None:
    path = tmp_path / "good.json"
    path.write_text(content)
    with pytest.raises(SMDebugValueError, match=reason) as raised:
        read_baseline(str(path))
    assert str(raised.value).startswith(f"Baseline {str(path)!r} cannot be used: ")
    assert "\n" not in str(raised.value)


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", ".", "absent", "a\0b"):
        with pytest.raises(SMDebugValueError, match="cannot be used"):
            read_baseline(str(tmp_path / name))


def test_a_run_that_diverged_is_not_good() -> None:
    diverged = seeded_run(5, lambda rows: rows["loss"].__setitem__(slice(150, None), np.nan))
    with pytest.raises(SMDebugValueError, match="'loss' is not finite from step 150 on"):
        make_baseline([*good_runs(), diverged])


def test_runs_need_something_in_common() -> None:
    runs = [trial_of({"loss": np.ones(9)}), trial_of({"val_loss": np.ones(9)})]
    with pytest.raises(SMDebugValueError, match="in common"):
        make_baseline(runs)
    with pytest.raises(SMDebugValueError, match="in common"):
        make_baseline([trial_of({"temperature": np.ones(9)})])


def test_a_metric_without_a_finite_value_in_some_run_is_left_out(tmp_path: Path) -> None:
    broken = seeded_run(5, lambda rows: rows.update(grad_norm=np.full(200, np.nan)))
    huge = seeded_run(6, lambda rows: rows.update(val_accuracy=np.full(200, -1.7e308)))
    path = tmp_path / "good.json"
    path.write_text(make_baseline([*good_runs(), broken, huge]).to_json())
    names = {metric.name for metric in read_baseline(str(path)).metrics}
    assert names == {"duration", "loss", "tokens_per_second", "val_loss"}
