import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import training_scripts
from click.testing import CliRunner
from training_scripts import LOSSES, RULE, said

from rule_core.storage import aws
from rule_runner.cli import main
from rule_runner.commands.train import supervisor
from rule_runner.commands.train.script import script_name, unseen
from rule_runner.results.output_folder import read_results_file
from rule_runner.results.schema import RuleResult


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a folder whose name has a space and no ASCII."""
    folder = tmp_path / "my tränings"
    folder.mkdir()
    return folder


def script(home: Path, text: str, name: str = "my script.py") -> list[str]:
    (home / name).write_text(text)
    return [sys.executable, name]


def rule(home: Path, then: str = "pass") -> list[str]:
    (home / "three.py").write_text(RULE.format(then=then))
    return ["--source", "three.py", "--output", "out"]


def verdict(home: Path, folder: str = "results") -> RuleResult:
    (found,) = read_results_file(home / "out" / folder).rules
    return found


# -- scripts that end by themselves ------------------------------------------------------------


def test_script_without_a_framework_is_run_and_nothing_else(home: Path) -> None:
    words = script(home, "import sys\nprint(sys.argv[1:], input())\nsys.exit(3)")
    done = subprocess.run(
        training_scripts.command(["--output", "out"], [*words, "--rule", "ä b"]),
        cwd=home,
        env=training_scripts.environment(),
        input="typed\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (3, "['--rule', 'ä b'] typed\n")
    assert said(done) == [
        "The training ended with exit code 3.",
        f"The script has saved nothing, so nothing was judged. {unseen([])}",
    ]
    assert not (home / "out").exists()


def test_hook_of_the_script_is_judged_where_it_saves(home: Path) -> None:
    words = script(home, f"{LOSSES}\nsave(0, 6)\nos.chdir('/')")
    done = training_scripts.train(home, rule(home), words)
    assert (done.returncode, done.stdout) == (0, "saved 6\n")
    result = verdict(home)
    assert (result.outcome, result.step, result.trial) == (
        "IssuesFound",
        3,
        str(home / "own trial"),
    )
    assert "Three: IssuesFound at step 3\n" in done.stderr
    assert "Trial: own trial\nResults: out/results\n" in done.stderr
    assert said(done)[-1] == "The training ended with exit code 0."
    assert not (home / "out" / "trial").exists()


def test_each_training_of_a_script_is_judged(home: Path) -> None:
    again = LOSSES.partition("hook = ")[2].replace('"own trial"', '"second trial"')
    words = script(home, f"{LOSSES}\nsave(0, 2)\nhook.close()\nhook = {again}\nsave(0, 6)")
    done = training_scripts.train(home, rule(home), words)
    assert (done.returncode, done.stdout) == (0, "saved 2\nsaved 6\n")
    assert verdict(home).outcome == "NoIssuesFound"
    second = verdict(home, "results-2")
    assert (second.outcome, second.step) == ("IssuesFound", 3)
    assert second.trial == str(home / "second trial")
    assert said(done)[-3:] == [
        "Training 1: 1 NoIssuesFound, in out/results",
        "Training 2: 1 IssuesFound, in out/results-2",
        "Judged 2 trainings: IssuesFound in 2.",
    ]
    page = (home / "out" / "results-2" / "report.html").read_text()
    assert "<title>my script-2" in page


@pytest.mark.merge
def test_of_many_trainings_only_those_with_findings_are_shown_at_length(home: Path) -> None:
    text = LOSSES.replace('hook = Hook("own trial"', "made = lambda fold: Hook(str(fold)")
    loop = "for fold in range(4):\n    hook = made(fold)\n    save(0, 2 + fold)\n    hook.close()"
    done = training_scripts.train(home, rule(home), script(home, f"{text}\n{loop}"))
    assert said(done)[-5:] == [
        "Training 1: 1 NoIssuesFound, in out/results",
        "Training 2: 1 NoIssuesFound, in out/results-2",
        "Training 3: 1 IssuesFound, in out/results-3",
        "Training 4: 1 IssuesFound, in out/results-4",
        "Judged 4 trainings: IssuesFound in 3, 4.",
    ]
    assert re.findall("^Three: .*", done.stderr, re.MULTILINE) == [
        "Three: IssuesFound at step 3",
        "Three: IssuesFound at step 3",
    ]


def test_results_report_and_events_have_the_name_of_the_script(home: Path) -> None:
    training_scripts.train(home, rule(home), script(home, f"{LOSSES}\nsave(0, 6)"))
    results = home / "out" / "results"
    assert "<title>my script" in (results / "report.html").read_text()
    events = [json.loads(line) for line in (results / "events.jsonl").read_text().splitlines()]
    assert {event["detail"]["TrainingJobName"] for event in events} == {"my script"}


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("python -u my/train.py --data x.py", "train"),
        ("torchrun --nproc-per-node 2 ddp.py", "ddp"),
        ("python -m package.train", "train"),
        ("bash run.sh", "run"),
        ("/opt/bin/fit", "fit"),
    ],
)
def test_run_is_named_after_the_script(
    home: Path, monkeypatch: pytest.MonkeyPatch, command: str, name: str
) -> None:
    monkeypatch.chdir(home)
    (home / "run.sh").touch()
    assert script_name(command.split()) == name


@pytest.mark.merge
def test_trainings_that_are_not_saved_are_named_at_the_end(home: Path) -> None:
    text = "from rule_core.saving.auto_hook import AUTO\nfor _ in 'ab': AUTO.report_unsaved('Odd.')"
    done = training_scripts.train(home, rule(home), script(home, f"{LOSSES}\nsave(0, 6)\n{text}"))
    assert [one for one in said(done) if "Odd" in one] == ["Odd.", "NotEvaluated: Odd."]
    assert said(done)[-1] == "NotEvaluated: Odd."


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ([["NoIssuesFound"], ["NoIssuesFound"]], "Judged 2 trainings: no issues in any."),
        (
            [["IssuesFound", "NotEvaluated"], ["IssuesFound"], []],
            "Judged 3 trainings: IssuesFound in 1, 2; Error in 3; NotEvaluated in 1.",
        ),
    ],
)
def test_several_trainings_are_summed_up(outcomes: list[list[str]], expected: str) -> None:
    judged = [
        (
            number,
            SimpleNamespace(
                rules=[SimpleNamespace(outcome=one) for one in found],
                problem="" if found else "The evaluator was stopped.",
            ),
        )
        for number, found in enumerate(outcomes, 1)
    ]
    assert supervisor.summed_up(judged) == expected  # type: ignore[arg-type]  # all it reads


def test_script_written_for_the_json_file_reads_ours(home: Path) -> None:
    text = LOSSES.replace("Hook(", "Hook.create_from_json_file() or (").replace(
        "hook = ", "hook = Hook.create_from_json_file(); unused = "
    )
    words = script(home, re.sub("unused = .*", "", text) + "\nsave(0, 6)")
    options = [*rule(home), "--save-interval", "3", "--collections", "losses"]
    done = training_scripts.train(home, options, words)
    assert done.returncode == 0
    assert (verdict(home).step, verdict(home).trial) == (3, str(home / "out" / "trial"))


def test_training_that_is_killed_is_judged_as_far_as_it_came(home: Path) -> None:
    words = script(home, f"{LOSSES}\nsave(0, 3)\nos.kill(os.getpid(), signal.SIGKILL)")
    done = training_scripts.train(home, rule(home), words)
    assert done.returncode == 128 + signal.SIGKILL
    result = verdict(home)
    assert (result.outcome, result.coverage.judged, result.trial_ended) == (
        "NoIssuesFound",
        3,
        True,
    )
    assert said(done) == ["The training ended with exit code 137."]


# -- an evaluation beside them -----------------------------------------------------------------

# The script goes on when the rule has found something, or when it was stopped.
PIPE = "open('found', 'w').close()"


def waiting(home: Path, then: str) -> list[str]:
    os.mkfifo(home / "found")
    return script(home, f"{LOSSES}\nsave(0, 6)\nopen('found').close()\n{then}")


def test_training_is_stopped_by_a_finding(home: Path) -> None:
    words = waiting(home, "signal.pause()")
    options = [*rule(home, PIPE), "--stop-on-finding", "--keep-going"]
    done = training_scripts.train(home, options, words)
    assert done.returncode == 10
    assert said(done) == [
        (
            "Three has found an issue: the training is stopped. "
            "The condition is met for loss at step 3."
        ),
        "The training was stopped, and ended with exit code 143.",
    ]
    assert (verdict(home).outcome, verdict(home).coverage.judged) == ("IssuesFound", 6)


def test_training_may_write_its_last_checkpoint(home: Path) -> None:
    then = """
def stop(*_):
    print("last checkpoint")
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
open("ready", "w").close()
signal.pause()
"""
    os.mkfifo(home / "ready")
    words = script(home, f"{LOSSES}\nsave(0, 6)\n{then}")
    # The rule finds nothing before the script is ready to be stopped.
    options = [*rule(home, "open('ready').close()"), "--stop-on-finding"]
    done = training_scripts.train(home, options, words)
    assert (done.returncode, done.stdout) == (10, "saved 6\nlast checkpoint\n")
    assert said(done)[-1] == "The training was stopped, and ended with exit code 0."


def test_training_that_does_not_stop_is_killed_with_all_that_it_started(home: Path) -> None:
    then = """
import subprocess
signal.signal(signal.SIGTERM, signal.SIG_IGN)
# Holds the pipe that the test reads: it would wait for ever if this one were left.
left = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
print(left.pid, flush=True)
open("ready", "w").close()
signal.pause()
"""
    os.mkfifo(home / "ready")
    words = script(home, f"{LOSSES}\nsave(0, 6)\n{then}")
    options = [*rule(home, "open('ready').close()"), "--stop-on-finding", "--grace", "0.1"]
    done = training_scripts.train(home, options, words)
    assert done.returncode == 10
    assert said(done)[-1] == "The training was stopped, and ended with exit code 137."


def test_training_that_a_shell_started_is_stopped_too(home: Path) -> None:
    python, name = waiting(home, "signal.pause()")
    (home / "run.sh").write_text(f"{python} '{name}'\necho not reached\n")
    done = training_scripts.train(
        home, [*rule(home, PIPE), "--stop-on-finding"], ["bash", "run.sh"]
    )
    assert (done.returncode, done.stdout) == (10, "saved 6\n")


WARNING = f"self.SEVERITY = 'warning'; {PIPE}"


@pytest.mark.parametrize(
    ("then", "more", "sentence"),
    [
        pytest.param(PIPE, [], "an issue; the training goes on", id="not-asked-for"),
        pytest.param(
            PIPE,
            ["--stop-on-finding", "--mode", "observe"],
            "an issue; the training goes on",
            id="observed",
        ),
        pytest.param(
            WARNING,
            ["--stop-on-finding"],
            "a warning; the training goes on, because --stop-on is error",
            id="warning",
        ),
    ],
)
def test_training_goes_on_after_a_finding(
    home: Path, then: str, more: list[str], sentence: str
) -> None:
    # The training goes on long enough for the finding to be reported.
    words = waiting(home, "import time\ntime.sleep(1)\nsave(6, 9)")
    done = training_scripts.train(home, [*rule(home, then), "--keep-going", *more], words)
    assert (done.returncode, done.stdout) == (0, "saved 6\nsaved 9\n")
    assert said(done) == [
        f"Three has found {sentence}. The condition is met for loss at step 3.",
        "The training ended with exit code 0.",
    ]
    assert verdict(home).coverage.judged == 9


def test_evaluator_that_is_killed_costs_the_verdict_only(home: Path) -> None:
    words = waiting(home, "save(6, 9)")
    die = f"{PIPE}; os.kill(os.getpid(), signal.SIGKILL)"
    done = training_scripts.train(home, rule(home, die), words)
    assert (done.returncode, done.stdout) == (0, "saved 6\nsaved 9\n")
    assert said(done)[-1] == (
        "The evaluator was ended by signal 9 before all verdicts. The training was not touched. "
        "Judge it with: rule-runner evaluate --request out/results/request.json --output DIR"
    )


def test_a_training_takes_the_options_of_an_evaluation(home: Path) -> None:
    words = script(home, f"{LOSSES}\nsave(0, 6)")
    options = ["--fail-on-issues", "--format", "json", "--sink", "file:told", "--dry-run"]
    action = ["--action", "webhook:https://example.com/"]
    done = training_scripts.train(home, [*rule(home), *options, *action], words)
    assert done.returncode == 10
    saved, _, document = done.stdout.partition("\n")
    assert saved == "saved 6"
    (result,) = json.loads(document)["rules"]
    assert (result["outcome"], len(result["actions"])) == ("IssuesFound", 1)
    told = [json.loads(line) for line in (home / "told").read_text().splitlines()]
    assert {event["source"] for event in told} == {"rule-runner"}


def test_a_job_file_names_the_rules_of_a_training(home: Path) -> None:
    options = rule(home)
    parameters = {"source_s3_uri": "three.py", "rule_to_invoke": "Three"}
    configurations = [
        {"RuleConfigurationName": name, "RuleParameters": parameters} for name in ("a", "b")
    ]
    request = {"DebugRuleConfigurations": configurations, "TrainingJobName": "job"}
    (home / "job.json").write_text(json.dumps(request))
    words = script(home, f"{LOSSES}\nsave(0, 6)")
    options = ["--job", "job.json", "--except", "b", *options[2:]]
    done = training_scripts.train(home, options, words)
    assert done.returncode == 0, done.stderr
    result = verdict(home)
    assert (result.configuration_name, result.outcome) == ("a", "IssuesFound")


def test_rule_that_fails_costs_its_verdict_only(home: Path) -> None:
    words = script(home, f"{LOSSES}\nsave(0, 6)\nsys.exit(5)")
    done = training_scripts.train(home, rule(home, "raise KeyError('x')"), words)
    assert done.returncode == 5
    assert "Rule 'Three' raised KeyError at step 3: 'x'." in done.stderr


# -- signals -----------------------------------------------------------------------------------


def interrupted(home: Path, then: str, number: int) -> "subprocess.Popen[str]":
    os.mkfifo(home / "ready")
    ready = "open('ready', 'w').close()"
    words = script(home, f"{LOSSES}\nsave(0, 6)\n{then.format(ready=ready)}")
    process = training_scripts.start(home, rule(home), words)
    (home / "ready").open().close()
    process.send_signal(number)
    return process


def test_interrupt_is_handed_on_and_results_are_written(home: Path) -> None:
    then = """
try:
    {ready}
    signal.pause()
except KeyboardInterrupt:
    print("interrupted")
    sys.exit(7)
"""
    process = interrupted(home, then, signal.SIGINT)
    out, _ = process.communicate()
    assert (process.returncode, out) == (7, "saved 6\ninterrupted\n")
    assert (verdict(home).outcome, verdict(home).step) == ("IssuesFound", 3)


def test_sigterm_ends_the_script_and_results_are_written(home: Path) -> None:
    process = interrupted(home, "{ready}\nsignal.pause()", signal.SIGTERM)
    process.communicate()
    assert process.returncode == 128 + signal.SIGTERM
    assert (verdict(home).outcome, verdict(home).step) == ("IssuesFound", 3)


def test_signal_of_a_scheduler_is_handed_on(home: Path) -> None:
    # A pipe remembers the signal, whichever thread it comes to, and when.
    then = """
import os
awake, wake = os.pipe()
os.set_blocking(wake, False)
signal.set_wakeup_fd(wake)
signal.signal(signal.SIGUSR1, lambda *_: None)
{ready}
os.read(awake, 1)
print("warned")
"""
    process = interrupted(home, then, signal.SIGUSR1)
    out, _ = process.communicate()
    assert (process.returncode, out) == (0, "saved 6\nwarned\n")


def test_signal_after_the_script_ends_the_evaluation(home: Path) -> None:
    os.mkfifo(home / "judging")
    os.mkfifo(home / "go on")
    words = script(home, f"{LOSSES}\nsave(0, 6)")
    then = "open('judging', 'w').close(); open('go on').close()"
    process = training_scripts.start(home, rule(home, then), words)
    (home / "judging").open().close()
    assert process.stderr is not None
    lines = iter(process.stderr.readline, "")
    assert "rule-runner: The training ended with exit code 0.\n" in lines
    process.send_signal(signal.SIGTERM)
    (home / "go on").open("w").close()
    process.communicate()
    assert (process.returncode, verdict(home).outcome) == (0, "IssuesFound")


# -- wrong use ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words", "code", "text"),
    [
        pytest.param([], ["./no such"], 2, "'./no such' cannot be started: No such", id="program"),
        pytest.param([], ["a.py"], 2, "Write: python a.py.", id="no-program"),
        pytest.param(["--rule", "Nil"], ["true"], 1, "Unknown rule 'Nil'.", id="rule"),
        pytest.param(["--sink", "emf"], ["true"], 2, "--sink emf cannot be used with", id="sink"),
        pytest.param(["--mode", "x=observe"], ["true"], 2, "Mode 'x=observe'", id="mode"),
        pytest.param(
            ["--trial", "full"],
            ["true"],
            73,
            "'full' is not empty. Choose another one with --trial",
            id="trial",
        ),
        pytest.param(["--output", "full"], ["true"], 73, "another one with --output", id="output"),
        pytest.param(
            ["--trial", "s3://b/t"],
            ["true"],
            2,
            "--trial of train must be a folder of this machine, got 's3:",
            id="trial-in-s3",
        ),
        pytest.param(
            ["--output", "s3://b/t"],
            ["true"],
            2,
            "--output of train must be a folder of this machine, got 's3:",
            id="output-in-s3",
        ),
        pytest.param(["--collections", "q"], ["true"], 2, "knows the collection 'q'", id="names"),
    ],
)
def test_nothing_is_run_where_options_are_wrong(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    words: list[str],
    code: int,
    text: str,
) -> None:
    (home / "full" / "results").mkdir(parents=True)
    (home / "full" / "results" / "file").touch()
    monkeypatch.chdir(home)
    done = CliRunner().invoke(main, ["train", *options, "--", *words])
    assert (done.exit_code, done.stdout) == (code, "")
    assert text.replace("'full'", f"'{home / 'full'}'") in done.stderr


@pytest.mark.merge
def test_hook_of_the_script_may_save_to_s3(home: Path, aws_endpoint: str) -> None:
    del aws_endpoint  # in the environment, for the script and for the evaluator
    aws.client("s3").create_bucket(Bucket="training-runs")
    text = LOSSES.replace('"own trial"', '"s3://training-runs/own"')
    assert text != LOSSES
    done = training_scripts.train(home, rule(home), script(home, f"{text}\nsave(0, 6)"))
    assert (done.returncode, done.stdout) == (0, "saved 6\n")
    result = verdict(home)
    assert (result.outcome, result.step) == ("IssuesFound", 3)
    assert (result.trial, result.trial_ended) == ("s3://training-runs/own", True)
    assert "Trial: s3://training-runs/own\n" in done.stderr
