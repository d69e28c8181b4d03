"""rule-runner check: judges each trial below a path by the rules whose inputs it holds."""

import gc
import io
import json
import math
import os
import re
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import evaluating
import numpy as np
import profiler_writer
import pytest
import rawtrial
import s3_objects
from click.testing import CliRunner, Result
from jsonschema import Draft202012Validator
from profiler_writer import END, cpu
from referencing import Registry, Resource

from rule_runner.cli import main
from rule_runner.commands.check import command as checking
from rule_runner.config.model import EvaluationConfig
from rule_runner.config.request import EvaluationRequest
from rule_runner.config.resolve import resolve
from rule_runner.engine.evaluate import evaluate
from rule_runner.engine.outcome import EvaluationOutcome
from rule_runner.errors import EXIT_SIGNAL, TrialError
from rule_runner.loading import trial_lists, trial_search
from rule_runner.results.schema import EVALUATION_SCHEMA, RULE_SCHEMA
from smdebug.trials import Trial

SCHEMA: Final = RULE_SCHEMA.with_name("check_result.schema.json")
COLLECTIONS: Final = {"losses": ["^loss$"], "gradients": ["^gradient"]}
HEALTHY: Final = {"loss": np.float32([1]), "gradient/fc": np.float32([0.5, 0.1])}
VANISHED: Final = {"loss": np.float32([1]), "gradient/fc": np.float32([1e-12, 1e-12])}
PLAIN: Final = {"loss": np.float32([1])}
RULES_FOR_PLAIN: Final = {
    *("ExplodingTensor", "LossNotDecreasing", "LossSpike", "Overfit", "Overtraining"),
    *("ResumeLostState", "StalledTrainingRule"),
}


def files(tensors: Mapping[str, Any], steps: int = 3, *, ended: bool = True) -> dict[str, bytes]:
    return evaluating.trial(dict.fromkeys(range(steps), tensors), COLLECTIONS, ended=ended)


def profiler_files() -> dict[str, bytes]:
    return END | dict(profiler_writer.each_file([cpu([50.0] * 300)]))


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with an ended trial of each kind, and the working directory beside it."""
    for name, tensors in {"a": HEALTHY, "b/debug-output": VANISHED, "plain": PLAIN}.items():
        rawtrial.write(tmp_path / "runs" / name, files(tensors))
    rawtrial.write(tmp_path / "runs/b/profiler-output", profiler_files())
    (tmp_path / "runs" / "notes").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path / "runs"


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(checking, "DEFAULT_END_GRACE_S", 0.0)
    evaluating.log_nothing()
    yield
    evaluating.log_nothing()


def check(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["check", *arguments], catch_exceptions=False)


def checked(*arguments: str) -> dict[str, Any]:
    """Return the validated result that ``--format json`` prints, with the trials by path."""
    result: dict[str, Any] = json.loads(check(*arguments, "--format", "json").stdout)
    registry = Registry().with_resource(
        "urn:rule-runner:evaluation_result:1",
        Resource.from_contents(json.loads(EVALUATION_SCHEMA.read_text())),
    )
    Draft202012Validator(json.loads(SCHEMA.read_text()), registry=registry).validate(result)
    return {**result, "by_path": {trial["path"]: trial for trial in result["trials"]}}


def rules_of(trial: dict[str, Any]) -> set[str]:
    return {rule["rule"] for rule in trial["evaluation"]["rules"]}


def test_a_finding_that_has_recovered_is_named_and_does_not_count(tmp_path: Path) -> None:
    fall, back = np.linspace(3.0, 1.0, 100), np.full(100, 1.0)
    for name, losses in {"back": [*fall, *[2.9] * 40, *back], "lost": [*fall, *[2.9] * 40]}.items():
        rows = [f"{step},{loss}" for step, loss in enumerate(losses)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["step,loss", *rows, ""]))
    out = ["--output", str(tmp_path / "out"), "--fail-on-issues"]
    done = check(str(tmp_path / "back.csv"), *out)
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert ": looks healthy, judged by " in lines[0]
    assert "  recovered: LossNotDecreasing (step 117 to 145)" in lines
    assert "Checked 1 trial: 1 healthy." in lines
    (trial,) = checked(str(tmp_path / "back.csv"), *out, "--overwrite")["trials"]
    (found,) = [rule for rule in trial["evaluation"]["rules"] if rule["outcome"] == "IssuesFound"]
    assert (found["rule"], found["state"]) == ("LossNotDecreasing", "recovered")
    assert (found["step"], found["recovered_at"], found["findings_count"]) == (117, 145, 1)
    out[1] += "-lost"
    assert check(str(tmp_path / "lost.csv"), *out).exit_code == 10


# -- which rules judge which trial ----------------------------------------------------------------


def test_one_argument_is_enough_for_all_trials_below(runs: Path) -> None:
    done = check("runs")
    lines = done.stdout.splitlines()
    assert done.exit_code == 0
    heads = [line for line in lines if line.startswith("runs/")]
    judged = r"suspicious since step 0, judged by \d of \d+ rules"
    assert re.fullmatch(f"runs/b/debug-output: {judged}", heads[-1])  # findings last
    assert {line.partition(":")[0] for line in heads} == {
        *("runs/a", "runs/b/debug-output", "runs/b/profiler-output", "runs/plain")
    }
    finding = "VanishingGradient (warning): gradient/fc has almost vanished at step 0: its mean"
    assert any(line.startswith(f"  {finding}") for line in lines), lines
    assert len([line for line in lines if line.startswith("NotEvaluated: ")]) == 1
    assert "Checked 4 trials: 1 suspicious, 3 healthy." in lines
    (report,) = Path("rule-output").glob("check-*/report.html")
    assert lines[-1] == f"Report: {report}"
    assert "b-debug-output/report.html" in report.read_text()
    page = (report.parent / "b-debug-output" / "report.html").read_text()
    assert re.search(r"\d+ rules were not evaluated: AllZero, .*\bCheckInputImages, ", page)
    assert "It needs trees (pattern &#39;^trees/&#39;), which the trial does not hold." in page
    del runs


@pytest.mark.usefixtures("runs")
def test_the_rules_are_those_whose_inputs_the_trial_holds() -> None:
    trials = checked("runs")["by_path"]
    plain, with_gradients = trials["runs/plain"], trials["runs/a"]
    assert rules_of(plain) == RULES_FOR_PLAIN
    assert rules_of(with_gradients) >= RULES_FOR_PLAIN | {
        "GradientNormSpike",
        "VanishingGradient",
    }
    needs = "It needs gradients (collection 'gradients'), which the trial does not hold."
    assert plain["left_out"]["VanishingGradient"] == needs
    # The rule has a parameter without a default.
    assert plain["left_out"]["SimilarAcrossRuns"].startswith("Parameter 'other_trials' is required")
    profiler = trials["runs/b/profiler-output"]
    assert "OverallSystemUsage" in rules_of(profiler)
    assert "OverallFrameworkMetrics" in profiler["left_out"]


@pytest.mark.usefixtures("runs")
def test_a_trial_itself_is_a_path_and_counts_once() -> None:
    result = checked("runs/a", "runs/a/", "runs", "--output", "out")
    assert len(result["trials"]) == 4
    alone = checked("runs/a", "--output", "alone")
    assert (alone["results"], alone["report"]) == ("alone", "")
    assert Path("alone/results.json").is_file()


def test_tensors_and_profiler_data_of_one_folder_are_one_trial(tmp_path: Path) -> None:
    rawtrial.write(tmp_path / "both", files(PLAIN) | profiler_files())
    (trial,) = checked(str(tmp_path), "--output", str(tmp_path / "out"))["trials"]
    assert rules_of(trial) >= RULES_FOR_PLAIN | {"OverallSystemUsage"}
    assert trial["evaluation"]["profiler_trial"]["ended"] is True


# -- trials that have not ended ------------------------------------------------------------------


def test_a_running_trial_is_judged_up_to_its_last_step(runs: Path) -> None:
    (runs / "a" / evaluating.END).unlink()
    done = check("runs/a")
    assert done.exit_code == 0
    assert done.stdout.startswith("runs/a: ")
    assert " (may still grow)\n" in done.stdout
    assert "rules from losses and gradients; learning rates, weights" in done.stdout


def test_a_log_that_was_just_written_is_judged_as_if_it_had_ended(tmp_path: Path) -> None:
    losses = [2.3 + 0.01 * math.sin(7 * step) for step in range(60)]
    log = tmp_path / "log.csv"
    log.write_text("step,loss\n" + "".join(f"{step},{loss}\n" for step, loss in enumerate(losses)))
    done = check(str(log), "--fail-on-issues")
    assert done.exit_code == 10
    assert ": suspicious since step 59, judged by " in done.stdout
    assert " (may still grow)\n" in done.stdout
    with log.open("a") as file:
        file.writelines(f"{step},{2.3 * 0.98 ** (step - 60)}\n" for step in range(60, 260))
    done = check(str(log), "--fail-on-issues")
    assert (done.exit_code, "looks healthy" in done.stdout) == (0, True)


def test_running_trials_are_followed_after_ended_ones(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The inputs of a rule may arrive later, so the rule is not left out."""
    running = runs / "a"
    rawtrial.write(running, files(PLAIN, 1, ended=False))
    (running / evaluating.END).unlink()
    for key in files(HEALTHY):
        if "0000000000" not in key and key.startswith(("index", "events")):
            (running / key).unlink(missing_ok=True)
    later = rawtrial.step_files(5, VANISHED) | {evaluating.END: b""}
    timer = threading.Timer(0.3, rawtrial.write, (running, later))

    def started(config: EvaluationConfig, **more: Any) -> EvaluationOutcome:
        if config.trial.name == "a":
            timer.start()
        return evaluate(config, **more)

    monkeypatch.setattr("rule_runner.commands.evaluate.evaluate", started)
    result = checked("runs", "--follow")
    timer.join()
    last = result["trials"][-1]
    assert last["path"] == "runs/a"
    verdicts = {rule["rule"]: rule["outcome"] for rule in last["evaluation"]["rules"]}
    assert (verdicts["VanishingGradient"], verdicts["DeadRelu"]) == ("IssuesFound", "NotEvaluated")


# -- exit codes, output --------------------------------------------------------------------------


@pytest.mark.usefixtures("runs")
def test_exit_codes_are_those_of_the_worst_trial() -> None:
    assert check("runs/b", "--fail-on-issues").exit_code == 10
    assert check("runs/b").exit_code == 0
    assert check("runs/a", "--fail-on-issues").exit_code == 0
    assert check("runs/b", "nowhere", "--fail-on-issues").exit_code == 1


@pytest.mark.usefixtures("runs")
def test_an_output_folder_is_replaced_only_when_that_is_asked_for() -> None:
    first = check("runs/a", "--output", "out")
    again = check("runs/a", "--output", "out")  # nothing is left to do
    unchanged = "Unchanged since the last check: 1. Option --again judges all.\n"
    assert (again.exit_code, again.stdout.replace(unchanged, "")) == (0, first.stdout)
    assert unchanged in again.stdout
    other = check("runs/plain", "--output", "out")
    assert (other.exit_code, other.stdout) == (73, "")
    assert "--overwrite" in other.stderr
    assert check("runs/plain", "--output", "out", "--overwrite").exit_code == 0
    assert check("runs", "--output", "s3://bucket/out").exit_code == 2


@pytest.mark.usefixtures("runs")
def test_reports_are_left_out_on_request() -> None:
    done = check("runs/b", "--output", "out", "--no-report")
    assert (done.exit_code, done.stdout.splitlines()[-1]) == (0, "Results: out")
    assert not [*Path("out").rglob("report.html")]


def test_a_signal_stops_it_after_the_current_trial(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    def signalled(config: EvaluationConfig, **more: Any) -> EvaluationOutcome:
        done = evaluate(config, **more)
        os.kill(os.getpid(), signal.SIGTERM)
        return done

    monkeypatch.setattr("rule_runner.commands.evaluate.evaluate", signalled)
    done = check(str(runs))
    assert done.exit_code == EXIT_SIGNAL + signal.SIGTERM
    assert "Stopped by a signal before 3 of 4 trials." in done.stdout
    assert "Checked 1 trial: " in done.stdout


def test_folders_of_results_have_stable_names(tmp_path: Path) -> None:
    for name in ("a/out", "b/out", "a-out", "c d/\u00e9"):
        rawtrial.write(tmp_path / "runs" / name, files(PLAIN, 1))
    runs = str(tmp_path / "runs")
    assert [*checking._find([runs], EvaluationRequest())[0]] == ["a-out", "a-out-2", "b-out", "c-d"]
    assert [
        *checking._find([f"{runs}/a", f"{runs}/b/", f"{runs}/a/out"], EvaluationRequest())[0]
    ] == [
        "a-out",
        "b-out",
    ]
    assert [*checking._find([f"{runs}/a-out"], EvaluationRequest())[0]] == ["a-out"]


@pytest.mark.usefixtures("runs")
def test_a_folder_in_use_affects_only_its_trial() -> None:
    check("runs/plain", "--output", "out/a")
    done = check("runs", "--output", "out")
    assert done.exit_code == 73
    assert "runs/a: cannot be judged\n" in done.stdout
    assert "Checked 4 trials: 1 suspicious, 1 not judged, 2 healthy." in done.stdout


# -- nothing, wrong and damaged ------------------------------------------------------------------


def test_a_path_without_trials_is_rejected_with_what_a_trial_looks_like(runs: Path) -> None:
    done = check(str(runs / "notes"))
    assert (done.exit_code, done.stdout) == (1, "")
    assert f"No trial at '{runs}/notes' or below. A trial is a folder that holds" in done.stderr
    assert not Path("rule-output").exists()


def test_a_path_with_pickles_alone_is_rejected_with_what_to_save(runs: Path) -> None:
    (runs / "notes" / "pytorch_model.bin").write_bytes(b"\x80\x02}q\x00.")
    done = check(str(runs / "notes"))
    assert (done.exit_code, done.stdout) == (1, "")
    assert "'pytorch_model.bin' is a pickle" in done.stderr
    assert "Save checkpoints as safetensors" in done.stderr


@pytest.mark.usefixtures("runs")
def test_a_wrong_path_gets_the_nearest_name_and_affects_no_other() -> None:
    alone = check("rnus")
    assert alone.exit_code == 1
    assert "Did you mean 'runs'?" in alone.stderr.replace(f"{Path.cwd()}/", "")
    done = check("rnus", "runs/a")
    assert (done.exit_code, "runs/a: " in done.stdout) == (1, True)
    assert "Trial 'rnus' does not exist." in done.stdout


def test_damaged_trials_are_named_and_affect_no_other(runs: Path) -> None:
    rawtrial.write(runs / "cut", files(HEALTHY))
    (runs / "cut" / rawtrial.collections_key()).write_bytes(b"{")
    (runs / "empty").mkdir()
    (runs / "empty" / evaluating.END).touch()
    rawtrial.write(runs / "torn", files(HEALTHY))
    for key in files(HEALTHY):
        if key.startswith("events"):
            (runs / "torn" / key).write_bytes(b"\0" * 40)
    trials = checked("runs")["by_path"]
    codes = {Path(path).name: trial["exit_code"] for path, trial in trials.items()}
    assert (codes["empty"], codes["torn"], codes["a"]) == (1, 1, 0)
    done = check("runs/cut", "runs/empty", "--output", "out")
    assert done.exit_code == 1
    assert "runs/empty: cannot tell, nothing was judged\n" in done.stdout
    assert "runs/cut: " in done.stdout
    assert "note: " in done.stdout


def test_a_trial_that_cannot_be_read_is_named(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(request: Any) -> Any:
        if request.any_trial.endswith("plain"):
            msg = f"Trial {request.trial!r} cannot be read: Permission denied."
            raise TrialError(msg)
        return resolve(request)

    monkeypatch.setattr("rule_runner.commands.evaluate.resolve", refuses)
    done = check(str(runs), "--output", "out")
    assert done.exit_code == 1
    assert "runs/plain: cannot be judged\n  Trial '" in done.stdout
    assert "1 suspicious, 1 not judged, 2 healthy." in done.stdout
    assert "cannot be read: Permission denied." in Path("out/report.html").read_text()


@pytest.mark.usefixtures("runs")
def test_an_incomplete_search_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(*arguments: Any) -> trial_search.TrialSearch:
        return trial_search.find_trials(*arguments)._replace(complete=False)

    monkeypatch.setattr(trial_lists, "find_trials", find)
    done = check("runs/a")
    assert done.exit_code == 1
    assert "'runs/a' was searched only in part: it holds too many folders" in done.stdout


@pytest.mark.usefixtures("runs")
def test_verdicts_do_not_depend_on_the_report() -> None:
    Path("out/report.html").mkdir(parents=True)
    done = check("runs/a", "runs/plain", "--output", "out")
    assert done.exit_code == 0
    assert done.stdout.splitlines()[-2:] == [
        "Checked 2 trials: 2 healthy.",
        "Results: out",
    ]


# -- what is not read ----------------------------------------------------------------------------


def test_what_is_not_read_is_one_line_and_a_list(runs: Path) -> None:
    for name in ("sb3/progress.csv", "old/history.pkl"):
        (runs / name).parent.mkdir()
        (runs / name).write_bytes(b"id,text\n1,a\n")
    done = check("runs", "--output", "out")
    assert done.exit_code == 0
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("Not read: ")]
    assert line.startswith("Not read: 2 folders, for example runs/old/history.pkl (it is a pickle")
    page = Path("out/report.html").read_text()
    assert "sb3/progress.csv (its columns (id, text) include nothing that counts rows" in page
    told = {item["path"]: item["reason"] for item in checked("runs", "--output", "out")["not_read"]}
    assert {Path(path).name for path in told} == {"progress.csv", "history.pkl"}


def test_a_path_that_holds_nothing_says_why_file_by_file(runs: Path) -> None:
    for number in range(7):
        (runs / "notes" / f"{number}.csv").write_text("id,text\n1,a\n")
    old = time.time() - 3600
    os.utime(runs / "notes" / "0.csv", (old, old))
    done = check("runs/notes")
    reason = (
        "its columns (id, text) include nothing that counts rows, such as step, epoch or what "
        "--step-column names: the rows may be samples of a data set"
    )
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.count(reason) == 5
    assert f"0.csv ({reason}), " in done.stderr
    alone = check("runs/notes/0.csv")
    assert alone.exit_code == 1
    assert f"is in no format that is read as a trial: {reason}." in alone.stderr


def test_a_search_that_takes_long_is_shown_on_a_terminal(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    class Later:
        times = iter(range(100))

        def monotonic(self) -> float:
            return next(self.times)

    monkeypatch.setattr(checking, "SystemClock", Later)
    monkeypatch.setattr(checking.sys, "stderr", Terminal())
    checking._find([str(runs)], EvaluationRequest())
    shown = checking.sys.stderr.getvalue()
    assert "\rLooking for trials: 3 folders\x1b[K" in shown
    assert "Looking for trials: 1 folder\x1b" in shown
    assert shown.endswith("\r\x1b[K")
    for stream, quiet in ((io.StringIO(), False), (Terminal(), True)):
        monkeypatch.setattr(checking.sys, "stderr", stream)
        checking._find([str(runs)], EvaluationRequest(quiet=quiet))
        assert stream.getvalue() == ""


# -- many, and far away --------------------------------------------------------------------------


def open_trials() -> int:
    """Count by type alone: some objects of other packages warn when their attributes are read."""
    gc.collect()
    return sum(issubclass(type(value), Trial) for value in gc.get_objects())


@pytest.mark.merge
def test_many_trials_are_open_one_after_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        rawtrial.write(tmp_path / "runs" / f"run{number}", files(PLAIN, 1))
    before = open_trials()
    alive = []

    def counted(config: EvaluationConfig, **more: Any) -> EvaluationOutcome:
        alive.append(open_trials() - before)
        return evaluate(config, **more)

    monkeypatch.setattr("rule_runner.commands.evaluate.evaluate", counted)
    done = check(str(tmp_path / "runs"), "--output", str(tmp_path / "out"))
    assert "Checked 4 trials: 4 healthy." in done.stdout
    assert max(alive) == 0


def test_trials_in_s3_are_found_and_judged(
    aws_endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", aws_endpoint)
    monkeypatch.chdir(tmp_path)
    s3_objects.make_bucket(aws_endpoint)
    s3_objects.put(aws_endpoint, "runs/one/debug-output/", files(VANISHED))
    s3_objects.put(aws_endpoint, "runs/two/", files(PLAIN))
    done = check("s3://bucket/runs")
    assert done.exit_code == 0
    assert "s3://bucket/runs/one/debug-output: suspicious since step 0" in done.stdout
    assert "s3://bucket/runs/two: " in done.stdout
    (folder,) = Path("rule-output").glob("[!.]*")
    assert {path.name for path in folder.iterdir()} >= {"one-debug-output", "two", "report.html"}
