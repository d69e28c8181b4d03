"""trends: small steps in one direction over the runs in a folder."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from seeded_runs import good_runs, rows_of_seed

from builtin_rules.statistics.baselines.baseline_file import make_baseline
from builtin_rules.statistics.baselines.trend import trends
from rule_core.trials.create_trial import create_trial
from smdebug.exceptions import SMDebugValueError


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")


def write_runs(folder: Path, factors: Sequence[float], name: str = "val_loss") -> None:
    """Write a run for each factor of a metric, one a day."""
    for position, factor in enumerate(factors):
        rows = rows_of_seed(position + 50)
        rows[name] *= factor
        run = folder / f"run-{len(factors) - position}"  # names tell nothing
        run.mkdir(parents=True)
        lines = [
            json.dumps({"step": step, "timestamp": 1.7e9 + 86400 * position + step, **values})
            for step, values in enumerate(
                {key: float(each[step]) for key, each in rows.items()} for step in range(200)
            )
        ]
        (run / "metrics.jsonl").write_text("\n".join(lines) + "\n")


def found(folder: Path, latest: str = "run-1", most: int = 20) -> list[str | None]:
    trial = create_trial(str(folder / latest))
    return [each.metric for each in trends(make_baseline(good_runs()), str(folder), trial, most)]


def test_small_steps_in_one_direction_are_found(tmp_path: Path) -> None:
    write_runs(tmp_path, [1.02**step for step in range(12)])
    assert found(tmp_path) == ["val_loss"]
    assert found(tmp_path, "run-1/metrics.jsonl") == ["val_loss"]
    assert found(tmp_path, most=3) == []


def test_a_log_of_the_run_itself_does_not_count_twice(tmp_path: Path) -> None:
    write_runs(tmp_path, [1.2**step for step in range(6)])
    assert found(tmp_path) == found(tmp_path, "run-1/metrics.jsonl") == []


def test_steps_back_and_forth_and_to_the_better_are_none(tmp_path: Path) -> None:
    write_runs(tmp_path / "noise", [1.0 + 0.02 * (step % 2) for step in range(12)])
    assert found(tmp_path / "noise") == []
    write_runs(tmp_path / "better", [0.98**step for step in range(12)])
    assert found(tmp_path / "better") == []


def test_later_runs_and_other_files_do_not_count(tmp_path: Path) -> None:
    write_runs(tmp_path, [1.02**step for step in range(12)])
    (tmp_path / "notes.txt").write_text("nothing")
    assert found(tmp_path, "run-9") == []


def test_a_folder_that_is_absent_gets_one_sentence(tmp_path: Path) -> None:
    write_runs(tmp_path, [1.0])
    trial = create_trial(str(tmp_path / "run-1"))
    with pytest.raises(SMDebugValueError, match="earlier runs cannot be read"):
        list(trends(make_baseline(good_runs()), str(tmp_path / "absent"), trial, 20))
