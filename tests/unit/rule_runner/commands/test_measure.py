from pathlib import Path

import pytest
from click.testing import CliRunner
from measuring_elsewhere import saved_trial

from rule_runner.cli import main


def test_misspelt_shard_is_wrong_usage(tmp_path: Path) -> None:
    arguments = ["measure", "--trial", str(tmp_path), "--rule", "NormGrowth", "--shard", "2/2"]
    result = CliRunner().invoke(main, [*arguments, "--output", str(tmp_path)])
    assert result.exit_code == 2
    assert "2/2" in result.stderr


def test_shards_hold_every_part_once(tmp_path: Path) -> None:
    trial, parts = saved_trial(tmp_path / "trial", 3, 4), 0
    for number in range(2):
        arguments = ["measure", "--trial", str(trial), "--rule", "NormGrowth"]
        arguments += ["--shard", f"{number}/2", "--output", str(tmp_path / "measures")]
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == 0, result.output
        parts += int(result.stdout.split()[1])
    assert parts == 3 * 4


def test_misspelt_trial_is_one_sentence(tmp_path: Path) -> None:
    arguments = ["measure", "--trial", str(tmp_path / "no"), "--rule", "NormGrowth"]
    result = CliRunner().invoke(main, [*arguments, "--output", str(tmp_path / "measures")])
    assert result.exit_code == 1
    assert "does not exist" in result.stderr


def test_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    trial = saved_trial(tmp_path / "trial", 1, 2)
    (tmp_path / "file").write_text("")
    arguments = ["measure", "--trial", str(trial), "--rule", "NormGrowth"]
    result = CliRunner().invoke(main, [*arguments, "--output", str(tmp_path / "file" / "below")])
    assert result.exit_code == 73
    assert "cannot be written" in result.stderr


@pytest.mark.parametrize("option", ["--measure-on=local:1", "--measurements=folder"])
def test_rules_in_their_own_processes_measure_themselves(tmp_path: Path, option: str) -> None:
    trial = saved_trial(tmp_path / "trial", 1, 2)
    arguments = ["evaluate", "--trial", str(trial), "--rule", "NormGrowth", option]
    result = CliRunner().invoke(main, [*arguments, "--isolate", "process"])
    assert result.exit_code == 2
    assert "cannot be combined with --isolate process" in result.stderr


def test_missing_measurements_are_one_sentence(tmp_path: Path) -> None:
    trial = saved_trial(tmp_path / "trial", 1, 2)
    arguments = ["evaluate", "--trial", str(trial), "--rule", "NormGrowth"]
    arguments += ["--measurements", str(tmp_path / "no"), "--output", str(tmp_path / "out")]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 1
    assert "The measurements in" in result.stdout
