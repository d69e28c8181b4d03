"""The command line as a user meets it: every bad input is one sentence and the right exit code."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import fromstring

import numpy as np
import pytest
import saved
import vanishing
from click.testing import CliRunner, Result

from builtin_rules import RULES
from rule_runner.cli import main
from rule_runner.cli.evaluation import FORMATS
from rule_runner.cli.reporting import SHADOWED
from rule_runner.loading.loader import every_builtin
from rule_runner.results.schema import EVALUATION_SCHEMA
from smdebug.core.writer import TrialWriter

jsonschema = pytest.importorskip("jsonschema")
RULE = "from smdebug.rules import Rule\n\nclass Mine(Rule):\n    def invoke_at_step(self, step):\n"
READ = "        loss = self.base_trial.tensor('loss').value(step)\n"


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    """Return an ended trial: losses 1, 1/11 ... at steps 0, 10 ... 90; gradients vanish at 70."""
    return vanishing.write_trial(tmp_path / "trial")


def evaluate(trial: Path, *arguments: object, output: Path | None = None) -> Result:
    folder = output or trial.parent / "out"
    return CliRunner().invoke(
        main,
        ["evaluate", "--trial", str(trial), "--output", str(folder), *map(str, arguments)],
    )


def rule_file(folder: Path, body: str, name: str = "mine.py") -> Path:
    path = folder / name
    path.write_text(RULE + body)
    return path


def result_of(trial: Path, name: str = "out") -> dict[str, Any]:
    found: dict[str, Any] = saved.result(trial.parent / name)
    return found


def test_the_plain_output_names_verdict_step_and_evidence(trial: Path) -> None:
    result = evaluate(trial, "--rule", "VanishingGradient")
    assert result.exit_code == 0
    assert result.stderr == ""
    assert result.stdout.splitlines() == [
        "VanishingGradient: IssuesFound at step 70 (warning)",
        "  judged 8 of 10 steps (0 to 70)",
        (
            "  gradient/fc.weight has almost vanished at step 70: its mean magnitude is 3.162e-08. "
            "Use ReLU or GELU in place of sigmoid and tanh, and add normalisation or residual "
            "connections between layers. (measured 3.16228e-8, limit 1e-7)"
        ),
        f"Results: {trial.parent / 'out'}",
        f"Report: {trial.parent / 'out' / 'report.html'}",
    ]


def test_the_json_output_is_one_object_of_the_schema(trial: Path) -> None:
    arguments = ["--rule", "VanishingGradient", "--rule", "loss=LossNotDecreasing"]
    result = evaluate(trial, *arguments, "--format", "json")
    document = json.loads(result.stdout)
    jsonschema.validate(document, json.loads(EVALUATION_SCHEMA.read_text()))
    outcomes = {rule["configuration_name"]: rule["outcome"] for rule in document["rules"]}
    assert outcomes == {"VanishingGradient": "IssuesFound", "loss": "NoIssuesFound"}
    assert sorted(one.name for one in (trial.parent / "out").iterdir()) == [
        "events.jsonl",
        "findings.jsonl",
        "measurements.json",
        "report.html",
        "results.json",
    ]


def test_the_junit_output_is_one_report(trial: Path) -> None:
    rules = ["--rule", "VanishingGradient", "--rule", "AllZero", "-p", "AllZero.tensor_regex=no"]
    result = evaluate(trial, *rules, "--format", "junit")
    assert (result.exit_code, result.stderr) == (1, "")
    root = fromstring(result.stdout)
    (suite,) = root
    found = {case.get("name"): [child.tag for child in case] for case in suite.iter("testcase")}
    assert found == {
        "VanishingGradient": ["failure", "system-out"],
        "AllZero": ["skipped", "system-out"],
    }


def test_the_sarif_output_is_one_log(trial: Path) -> None:
    result = evaluate(trial, "--rule", "VanishingGradient", "--fail-on-issues", "--format", "sarif")
    assert (result.exit_code, result.stderr) == (10, "")
    (run,) = json.loads(result.stdout)["runs"]
    (found,) = run["results"]
    arguments = ["--rule", "VanishingGradient", "--fail-on-issues", "--format", "sarif"]
    again = json.loads(evaluate(trial, *arguments, output=trial.parent / "again").stdout)
    # Code hosts follow a finding across runs.
    assert again["runs"][0]["results"][0]["partialFingerprints"] == found["partialFingerprints"]
    assert found["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == trial.as_uri()
    (invocation,) = run["invocations"]
    assert (invocation["executionSuccessful"], invocation["exitCode"]) == (True, 10)


def test_events_go_to_stdout_when_asked(trial: Path) -> None:
    result = evaluate(trial, "--rule", "VanishingGradient", "--sink", "stdout")
    events = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
    statuses = [
        (event["detail"]["TrainingJobStatus"], entry["RuleEvaluationStatus"])
        for event in events
        for entry in event["detail"]["DebugRuleEvaluationStatuses"]
    ]
    assert statuses == [
        ("InProgress", "InProgress"),
        ("Completed", "InProgress"),
        ("Completed", "IssuesFound"),
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        pytest.param(
            ["--rule", "VanishingGradent"],
            1,
            "Error: Unknown rule 'VanishingGradent'. Did you mean 'VanishingGradient'?",
            id="unknown-rule",
        ),
        pytest.param(
            ["--rule", "VanishingGradient", "-p", "treshold=1"],
            1,
            "Error: Unknown parameter 'treshold' of rule 'VanishingGradient'. "
            "Did you mean 'threshold'? Its parameters: 'threshold', 'literal'.",
            id="misspelt-parameter",
        ),
        pytest.param(
            ["--rule", "VanishingGradient", "-p", "threshold=abc"],
            1,
            "Error: Parameter 'threshold' must be a finite number >= 0, got 'abc'.",
            id="ill-typed-parameter",
        ),
        pytest.param(
            ["--rule", "VanishingGradient", "-p", "threshold"],
            2,
            "Error: A parameter must be key=value, got 'threshold'.",
            id="no-value",
        ),
        pytest.param(
            ["--rule", "AllZero", "--rule", "ExplodingTensor", "-p", "only_nan=1"],
            2,
            "Error: Parameter 'only_nan' does not name its rule. "
            "Write ID.only_nan=value with an ID of 'AllZero', 'ExplodingTensor'.",
            id="whose-parameter",
        ),
        pytest.param(
            ["--rule", "AllZero", "--rule", "AllZero"],
            2,
            "Error: Two rule jobs are called 'AllZero'. Give IDs: --rule first=AllZero.",
            id="twice",
        ),
        pytest.param(
            [],
            2,
            "Error: No rule was given: give --rule auto, --rule NAME or --source FILE.",
            id="none",
        ),
        pytest.param(
            ["--rule", "../x=AllZero"],
            2,
            "Error: Name of a rule job must be 1 to 255 bytes, without '/' and control characters "
            "and not beginning with '.', got '../x'.",
            id="outside-the-output-folder",
        ),
        pytest.param(
            ["--rule", "AllZero", "--sink", "stdout", "--format", "json"],
            2,
            "Error: --sink stdout and --format json both write to stdout. Choose one.",
            id="two-on-stdout",
        ),
        pytest.param(
            ["--rule", "AllZero", "--event-source", "aws.mine"],
            2,
            "Error: Event source must not be empty or begin with 'aws.', got 'aws.mine'. "
            "That prefix is reserved for AWS services.",
            id="reserved-source",
        ),
    ],
)
def test_wrong_arguments_are_one_sentence(
    trial: Path, arguments: list[str], code: int, sentence: str
) -> None:
    result = evaluate(trial, *arguments)
    assert (result.exit_code, result.stderr.splitlines()) == (code, [sentence])
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        pytest.param("nowhere", "Trial '{}' does not exist.", id="missing"),
        pytest.param("file", "File '{}' is in no format that is read as a trial", id="no-trial"),
    ],
)
def test_a_missing_trial_is_an_error_at_once(tmp_path: Path, path: str, sentence: str) -> None:
    (tmp_path / "file").write_text("nothing of the kind\n")
    os.utime(tmp_path / "file", (0, 0))  # a new file may become a trial
    result = evaluate(tmp_path / path, "--rule", "AllZero")
    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: {sentence.format(tmp_path / path)}")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        (
            "s3://b/t",
            (
                "A bucket's name must be 3 to 255 letters, digits, dots, hyphens and underscores, "
                "got 'b' in 's3://b/t'."
            ),
        ),
        (
            "gs://bucket/t",
            (
                "Trials at gs:// addresses cannot be read yet, got 'gs://bucket/t'. "
                "Copy the trial to a local folder and give its path."
            ),
        ),
    ],
)
def test_an_address_that_cannot_be_read_is_one_sentence(
    tmp_path: Path, address: str, sentence: str
) -> None:
    arguments = ["evaluate", "--trial", address, "--rule", "AllZero", "--output", str(tmp_path)]
    result = CliRunner().invoke(main, arguments)
    assert (result.exit_code, result.stderr) == (1, f"Error: {sentence}\n")


def test_a_request_in_json_is_the_evaluation_and_options_replace_its_fields(trial: Path) -> None:
    rules = [{"id": "vanish", "name": "VanishingGradient"}]
    request = {"trial": str(trial), "rules": rules, "format": "json", "fail_on_issues": True}
    out = trial.parent / "out"
    arguments = ["evaluate", "--request", "-", "--output", str(out), "--mode", "observe"]
    result = CliRunner().invoke(main, arguments, input=json.dumps(request))
    (rule,) = json.loads(result.stdout)["rules"]
    assert (rule["configuration_name"], rule["outcome"]) == ("vanish", "IssuesFound")
    assert (rule["mode"], result.exit_code) == ("observe", 0)
    assert (out / "results.json").exists()


def test_a_wrong_request_is_one_sentence_and_exit_code_2() -> None:
    result = CliRunner().invoke(main, ["evaluate", "--request", "-"], input='{"rule": []}')
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        "Error: Request from standard input is not valid: Object contains unknown field `rule`.\n"
    )


def test_a_file_that_does_not_parse_names_the_line(trial: Path) -> None:
    path = trial.parent / "bad.py"
    path.write_text("class Mine(Rule:\n")
    result = evaluate(trial, "--source", path)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: {path} ") or str(path) in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_class_that_does_not_exist_is_named_with_those_that_are(trial: Path) -> None:
    path = rule_file(trial.parent, "        return False\n")
    result = evaluate(trial, "--source", path, "--rule", "Other")
    assert result.exit_code == 1
    assert result.stderr == (f"Error: No class 'Other' in {path}. Rule classes there: 'Mine'.\n")


def test_a_rule_that_raises_ends_with_the_step_and_what_was_found_is_kept(trial: Path) -> None:
    body = READ + "        if step == 40:\n            raise KeyError('conv1')\n"
    body += "        return self.found(step, tensor='loss', measured=loss, limit=0)\n"
    path = rule_file(trial.parent, body)
    result = evaluate(trial, "--source", path, "--keep-going")
    assert result.exit_code == 0
    found = result_of(trial)
    assert (found["status"], found["step"], found["findings_count"]) == ("IssuesFound", 0, 4)
    assert found["notes"] == ["Rule 'Mine' raised KeyError at step 40: 'conv1'."]
    findings = (trial.parent / "out" / "findings.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in findings] == [0, 10, 20, 30]


@pytest.mark.parametrize(
    ("body", "code", "outcome", "details"),
    [
        pytest.param(
            READ + "        if step == 40:\n            raise KeyError('conv1')\n",
            1,
            "Error",
            "ClientError: Rule 'Mine' raised KeyError at step 40: 'conv1'.",
            id="raises",
        ),
        pytest.param(READ + "        return None\n", 0, "NoIssuesFound", None, id="none"),
        pytest.param(
            READ + "        import numpy\n        return numpy.array([1, 0])\n",
            1,
            "Error",
            "ClientError: Rule 'Mine' raised ValueError at step 0: The truth value of an array "
            "with more than one element is ambiguous. Use a.any() or a.all().",
            id="no-truth-value",
        ),
        pytest.param(
            "        return False\n",
            1,
            "NotEvaluated",
            "InsufficientInformationForRuleInvocation: Rule 'Mine' judged none of 10 known steps "
            "(skipped for nothing read: 10). Trial '{trial}' holds 10 steps (0 to 90), 2 tensors "
            "and the collections 'gradients', 'losses'.",
            id="reads-nothing",
        ),
        pytest.param(
            "        self.base_trial.tensor_names(collection='weights')\n        return False\n",
            1,
            "NotEvaluated",
            "InsufficientInformationForRuleInvocation: Rule 'Mine' judged none of 10 known steps "
            "(skipped for nothing read: 10). It looked for collection 'weights'. "
            "The nearest names: 'gradient/fc.weight', 'loss'. Trial '{trial}' "
            "holds 10 steps (0 to 90), 2 tensors and the collections 'gradients', 'losses'.",
            id="other-collections",
        ),
        pytest.param(
            "        import sys\n        sys.exit(3)\n",
            1,
            "Error",
            "ClientError: Rule 'Mine' raised SystemExit at step 0: 3.",
            id="exits",
        ),
        pytest.param(
            "        return self.base_trial.tensor_names(regex='(a+)+$' + 'l' * 0) == [] and "
            "self.base_trial.tensor_names(step=step, regex='^(.?)*x(l|[^x])*$Q') == 1\n",
            1,
            "NotEvaluated",
            None,
            id="harmless-pattern",
        ),
    ],
)
def test_what_a_rule_does_decides_its_status(
    trial: Path, body: str, code: int, outcome: str, details: str | None
) -> None:
    result = evaluate(trial, "--source", rule_file(trial.parent, body))
    assert result.exit_code == code
    found = result_of(trial)
    assert found["outcome"] == outcome
    if details is not None:
        assert found["status_details"] == details.format(trial=trial)


def test_a_pattern_that_takes_for_ever_is_one_sentence(tmp_path: Path) -> None:
    name = "a" * 60 + "!"
    with TrialWriter(tmp_path / "trial") as writer:
        writer.step(0, {name: 1.0})
    arguments = ["--rule", "ExplodingTensor", "-p", "tensor_regex=^(a|aa|a?)+$"]
    result = evaluate(tmp_path / "trial", *arguments)
    assert result.exit_code == 1
    assert result_of(tmp_path / "trial")["status_details"] == (
        "ClientError: Rule 'ExplodingTensor' raised SMDebugValueError at step 0: Pattern "
        "'^(a|aa|a?)+$' takes more than 0.5 s on a name of 61 characters. "
        "Write it without nested repetitions."
    )


def test_a_trial_without_data_gets_the_text_of_the_contract(tmp_path: Path) -> None:
    with TrialWriter(tmp_path / "trial"):
        pass
    result = evaluate(tmp_path / "trial", "--rule", "VanishingGradient")
    assert result.exit_code == 1
    found = result_of(tmp_path / "trial")
    assert (found["status"], found["outcome"]) == ("Error", "NotEvaluated")
    assert found["status_details"].startswith(
        "ClientError: No debugging data was saved by the training job."
    )


def test_an_empty_ended_folder_gets_it_too(tmp_path: Path) -> None:
    (tmp_path / "trial").mkdir()
    (tmp_path / "trial" / "training_job_end.ts").touch()
    result = evaluate(tmp_path / "trial", "--rule", "AllZero", "-p", "tensor_regex=.")
    assert result.exit_code == 1
    details = result_of(tmp_path / "trial")["status_details"]
    assert details.startswith("ClientError: No debugging data was saved by the training job.")


def damage(path: Path, kind: str, garbage: bytes) -> None:
    """Put something else in the place of a file of a trial."""
    content = path.read_bytes()
    path.unlink()
    match kind:
        case "truncated":
            path.write_bytes(content[:50])
        case "link":
            elsewhere = path.parents[3] / "elsewhere"
            elsewhere.write_bytes(content)
            path.symlink_to(elsewhere)
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "garbage":
            path.write_bytes(garbage)
        case _:
            assert kind == "missing"


@pytest.mark.parametrize("kind", ["truncated", "link", "pipe", "garbage", "folder"])
def test_a_damaged_index_file_costs_its_step_only(trial: Path, kind: str) -> None:
    path = trial / "index" / "000000000" / "000000000030_worker_0.json"
    damage(path, kind, b"\x00\xff\x1b[31m")
    result = evaluate(trial, "--rule", "VanishingGradient")
    assert result.exit_code == 0
    found = result_of(trial)
    coverage = found["coverage"]
    assert (found["step"], coverage["judged"]) == (70, 7)
    if kind == "folder":  # which is not listed as a file is
        assert (coverage["known"], coverage["skipped"]) == (9, {})
    else:
        assert (coverage["known"], coverage["skipped"]) == (10, {"unreadable": 1})
        assert [str(path.relative_to(trial)) in note for note in found["notes"]] == [True]


@pytest.mark.parametrize("kind", ["truncated", "missing", "link", "pipe", "garbage"])
def test_a_damaged_event_file_costs_its_step_only(trial: Path, kind: str) -> None:
    path = trial / "events" / "000000000030" / "000000000030_worker_0.tfevents"
    damage(path, kind, b"\x1b" * path.stat().st_size)
    result = evaluate(trial, "--rule", "VanishingGradient")
    assert result.exit_code == 0
    found = result_of(trial)
    assert (found["step"], found["coverage"]["judged"], found["coverage"]["known"]) == (70, 7, 10)
    assert found["coverage"]["skipped"] == {"unreadable": 1}
    assert [str(path.relative_to(trial)) in note for note in found["notes"]] == [True]


@pytest.mark.skipif(
    os.geteuid() == 0, reason="Only an ordinary user is refused what permissions forbid."
)
def test_an_unreadable_index_file_is_a_note(trial: Path) -> None:
    path = trial / "index" / "000000000" / "000000000030_worker_0.json"
    path.chmod(stat.S_IWUSR)
    result = evaluate(trial, "--rule", "VanishingGradient")
    assert result.exit_code == 0
    assert "Permission denied" in result_of(trial)["notes"][0]


def test_a_second_evaluation_into_one_folder_is_refused(trial: Path) -> None:
    assert evaluate(trial, "--rule", "VanishingGradient").exit_code == 0
    again = evaluate(trial, "--rule", "VanishingGradient", "--keep-going")
    assert again.exit_code == 73
    assert again.stderr == (
        f"Output folder '{trial.parent / 'out'}' holds another evaluation: its rule, parameters, "
        "trial or range differ. Choose another folder, or use --overwrite.\n"
    )
    assert evaluate(trial, "--rule", "VanishingGradient", "--overwrite").exit_code == 0


@pytest.mark.parametrize(
    ("rules", "code"),
    [
        pytest.param(["VanishingGradient"], 10, id="issue"),
        pytest.param(["LossNotDecreasing"], 0, id="none"),
        pytest.param(["VanishingGradient", "AllZero"], 1, id="error-before-issue"),
    ],
)
def test_fail_on_issues_decides_the_exit_code(trial: Path, rules: list[str], code: int) -> None:
    options = [part for rule in rules for part in ("--rule", rule)]
    assert evaluate(trial, *options, "--fail-on-issues").exit_code == code


def test_all_rules_at_once_say_what_they_lack(trial: Path) -> None:
    result = evaluate(trial, "--rule", "all", "--format", "json")
    found = {rule["rule"]: rule["outcome"] for rule in json.loads(result.stdout)["rules"]}
    assert (result.exit_code, list(found)) == (0, list(RULES))
    assert (found["AllZero"], found["VanishingGradient"]) == ("NotEvaluated", "IssuesFound")


def test_an_observed_rule_leaves_the_exit_code_alone(trial: Path) -> None:
    rules = ["--rule", "VanishingGradient", "--rule", "LossNotDecreasing", "--fail-on-issues"]
    result = evaluate(trial, *rules, "--mode", "VanishingGradient=observe")
    assert result.exit_code == 0
    assert "VanishingGradient: IssuesFound at step 70" in result.stdout


def test_a_mode_of_no_rule_is_one_sentence(trial: Path) -> None:
    result = evaluate(trial, "--rule", "VanishingGradient", "--mode", "Vanishing=observe")
    assert (result.exit_code, result.stderr) == (
        2,
        (
            "Error: Mode 'Vanishing=observe' names no rule of this evaluation. "
            "Did you mean 'VanishingGradient'? Its IDs: 'VanishingGradient'.\n"
        ),
    )


def test_what_a_rule_prints_does_not_reach_stdout(trial: Path) -> None:
    path = rule_file(trial.parent, READ + "        print('hello')\n        return False\n")
    result = evaluate(trial, "--source", path, "--format", "json")
    assert json.loads(result.stdout)["rules"][0]["outcome"] == "NoIssuesFound"
    assert "hello" in result.stderr


def test_names_with_escapes_are_harmless_in_every_output(tmp_path: Path) -> None:
    name = "gradient/\x1b[31mred\x07[bold]\u202e<b>\r\n"
    with TrialWriter(tmp_path / "trial", collections={"gradients": "^gradient"}) as writer:
        writer.step(0, {name: np.full((2, 2), 1e-9, np.float32)})
    for form in FORMATS:
        result = evaluate(
            tmp_path / "trial",
            *("--rule", "VanishingGradient", "--format", form, "--overwrite"),
        )
        assert result.exit_code == 0
        text = result.stdout + result.stderr
        assert not {"\x1b", "\x07", "\u202e", "\r"} & set(text)
    files = "".join(path.read_text() for path in (tmp_path / "out").iterdir() if path.is_file())
    assert not {"\x1b", "\x07", "\u202e", "\r"} & set(files)


def test_help_needs_no_arguments(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RULE_RUNNER_ROOT", str(tmp_path))
    result = CliRunner().invoke(main, [])
    assert result.exit_code == 0
    assert result.stdout.startswith("Usage: ")


def test_rules_are_listed_and_shown() -> None:
    listed = CliRunner().invoke(main, ["rules", "list"])
    assert [line.split()[0] for line in listed.stdout.splitlines()] == list(every_builtin())
    shown = CliRunner().invoke(main, ["rules", "show", "VanishingGradient"])
    assert "threshold" in shown.stdout
    assert "the collection gradients: values, or the saved reduction" in shown.stdout
    unknown = CliRunner().invoke(main, ["rules", "show", "Vanishing"])
    assert unknown.exit_code == 1
    assert unknown.stderr.startswith("Error: Unknown rule 'Vanishing'.")


def test_files_that_come_after_the_end_are_counted_and_not_judged(trial: Path) -> None:
    body = READ + "        index = self.base_trial.path + '/index/000000000/0000000000'\n"
    body += "        import shutil\n"
    body += "        shutil.copy(index + '90_worker_0.json', index + '95_worker_0.json')\n"
    result = evaluate(trial, "--source", rule_file(trial.parent, body + "        return False\n"))
    assert result.exit_code == 0
    found = result_of(trial)
    assert found["coverage"]["last"] == 90
    assert found["notes"] == ["1 index files arrived after the end and were not judged."]


def test_another_smdebug_in_the_way_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "smdebug").mkdir()
    # What another one lacks; an editable installation would find it elsewhere.
    (tmp_path / "smdebug" / "__init__.py").write_text("raise ImportError(name='smdebug.trials')")
    done = subprocess.run(
        [sys.executable, "-m", "rule_runner", "evaluate", "--trial=x", "--rule=AllZero"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr.splitlines()) == (1, [f"Error: {SHADOWED}"])


def test_a_defect_of_ours_is_exit_70(trial: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(**_: object) -> int:
        raise ZeroDivisionError

    monkeypatch.setattr("rule_runner.commands.evaluate.evaluate_trial", broken)
    result = evaluate(trial, "--rule", "AllZero")
    assert result.exit_code == 70
    assert result.stderr.splitlines()[-1] == (
        "InternalServerError: We encountered an internal error. Please try again."
    )


def test_a_damaged_file_is_noted_with_rules_in_processes_of_their_own(trial: Path) -> None:
    path = trial / "events" / "000000000030" / "000000000030_worker_0.tfevents"
    path.write_bytes(path.read_bytes()[:60])
    result = evaluate(trial, "--rule", "VanishingGradient", "--rule-timeout", "60")
    assert result.exit_code == 0
    found = result_of(trial)
    assert (found["step"], found["coverage"]["skipped"]) == (70, {"unreadable": 1})
    assert [str(path.relative_to(trial)) in note for note in found["notes"]] == [True]
