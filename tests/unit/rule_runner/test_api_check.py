"""rule_runner.check: what the command of this name does, as a typed result."""

import logging
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest
import vanishing

import rule_runner
from rule_runner.commands.check import command
from rule_runner.errors import TrialError, UsageError
from smdebug.core.writer import TrialWriter


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder with a trial whose gradients vanish, and a growing healthy one."""
    monkeypatch.setattr(command, "DEFAULT_END_GRACE_S", 0.0)
    vanishing.write_trial(tmp_path / "runs" / "bad")
    writer = TrialWriter(tmp_path / "runs" / "growing", collections={"losses": "loss"})
    for step in range(40):
        writer.step(step, {"loss": np.float32(1 / (1 + step))})
    monkeypatch.chdir(tmp_path)
    yield tmp_path / "runs"
    writer.close()


def test_each_trial_is_judged_and_nothing_is_left_behind(
    runs: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = runs.parent / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    result = rule_runner.check(runs)
    bad, growing = result.trials
    assert (bad.path, bad.state) == (str(runs / "bad"), "suspicious")
    assert (growing.path, growing.state) == (str(runs / "growing"), "looks healthy")
    assert growing.evaluation is not None
    assert not growing.evaluation.trial.ended
    (incident,) = bad.incidents
    assert "VanishingGradient" in (incident.root, *incident.consequences)
    (rule,) = [rule for rule in bad.rules if rule.rule == "VanishingGradient"]
    assert (rule.state, rule.step, rule.findings_count) == ("open", 70, 1)
    assert (bad.results, result.results, result.report) == ("", "", "")
    assert ([*scratch.iterdir()], sorted(path.name for path in runs.parent.iterdir())) == (
        *([], ["runs", "scratch"]),
    )
    assert capfd.readouterr() == ("", "")
    assert handlers == [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]


def test_several_paths_are_one_check(runs: Path) -> None:
    result = rule_runner.check([runs / "growing", str(runs / "bad"), runs / "none"])
    assert [Path(trial.path).name for trial in result.trials] == ["bad", "growing"]
    (problem,) = result.problems
    assert problem == f"Trial '{runs}/none' does not exist."
    with pytest.raises(TrialError, match=r"none' does not exist\.$"):
        rule_runner.check(runs / "none")
    with pytest.raises(UsageError, match=r"^output must be a folder of this machine"):
        rule_runner.check(runs, output="s3://bucket/out")


def test_an_output_folder_is_that_of_the_command(runs: Path) -> None:
    first = rule_runner.check(runs / "bad", output="out")
    assert Path("out/results.json").is_file()
    assert (first.results, first.report) == ("out", "out/report.html")
    second = rule_runner.check(runs / "bad", output="out")
    assert [trial.unchanged for trial in second.trials] == [True]
    assert second.trials[0].incidents == first.trials[0].incidents
    assert "<svg" in second._repr_html_()
    again = rule_runner.check(runs / "bad", output="out", again=True, overwrite=True)
    assert [trial.unchanged for trial in again.trials] == [False]


def test_what_it_shows_adds_nothing_to_its_json(runs: Path) -> None:
    result = rule_runner.check(runs)
    before = msgspec.json.encode(result)
    page = result._repr_html_()
    assert "suspicious since step " in page
    assert "may still grow" in page
    assert "<svg" in page
    assert msgspec.json.encode(result) == before
    assert b"measurements" not in before
    evaluation = result.trials[0].evaluation
    assert evaluation is not None
    same = msgspec.json.decode(msgspec.json.encode(evaluation), type=type(evaluation))
    assert same == evaluation
    assert "VanishingGradient" in same._repr_html_()  # without its measurements


def test_a_frame_has_the_trial_of_each_row(runs: Path) -> None:
    frame = rule_runner.check(runs).to_pandas()
    assert {*frame["trial"]} == {str(runs / "bad"), str(runs / "growing")}
    first = frame[frame["rule"] == "VanishingGradient"].iloc[0]
    assert (first["trial_state"], first["step"]) == ("suspicious", 70)


def test_notes_of_a_check_are_logged(runs: Path, caplog: pytest.LogCaptureFixture) -> None:
    rule_runner.check(runs / "bad", output="out")
    Path("out/checked.json").unlink()
    with caplog.at_level(logging.WARNING):
        rule_runner.check(runs / "bad", output="out")
    assert any("nothing was judged again" in record.getMessage() for record in caplog.records)
