"""A job definition, judged by the command: as a user meets it, every bad input included."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import fromstring

import pytest
import saved
import vanishing
from click.testing import CliRunner, Result

from rule_runner.cli import main
from rule_runner.results.schema import EVALUATION_SCHEMA, RULE_SCHEMA

jsonschema = pytest.importorskip("jsonschema")
referencing = pytest.importorskip("referencing")
VANISHING = {"rule_to_invoke": "VanishingGradient", "threshold": "1e-7"}
EXPLODING = {"rule_to_invoke": "ExplodingTensor"}
YAML = """
TrainingJobName: mnist-42
DebugRuleConfigurations:
  - RuleConfigurationName: Gradients
    RuleEvaluatorImage: image
    InstanceType: ml.t3.medium
    VolumeSizeInGB: 30
    RuleParameters:
      rule_to_invoke: VanishingGradient
      threshold: 1e-7
  - RuleConfigurationName: Stalled
    RuleParameters: {rule_to_invoke: LossNotDecreasing, num_steps: 10, use_losses_collection: yes}
"""
PYTHON = """
import sys
from rule_runner.debugger import Rule, rule_configs

print("the file was run")
rules = [
    Rule.sagemaker(rule_configs.vanishing_gradient(), name="Gradients"),
    Rule.sagemaker(rule_configs.exploding_tensor(), actions=rule_configs.StopTraining()),
]
"""
MINE = """
from smdebug.rules import Rule

print("the rule was loaded")

class Mine(Rule):
    def __init__(self, base_trial, limit):
        super().__init__(base_trial)
        self.limit = float(limit)

    def invoke_at_step(self, step):
        return self.base_trial.tensor("loss").value(step) < self.limit
"""
COMPARES = """
from smdebug.rules import Rule

class Compares(Rule):
    def __init__(self, base_trial, other_trials=None):
        super().__init__(base_trial)
        self.names = [one.name for one in other_trials or ()]

    def invoke_at_step(self, step):
        self.base_trial.tensor("loss").value(step)
        return self.found(step, measured=",".join(self.names))
"""


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    """Return an ended trial: losses 1, 1/11 ... at steps 0, 10 ... 90; gradients vanish at 70."""
    return vanishing.write_trial(tmp_path / "trial")


def configured(**rules: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {"RuleConfigurationName": name, "RuleParameters": dict(parameters)}
        for name, parameters in rules.items()
    ]


def job_file(tmp_path: Path, *, profiler: Any = (), **rules: Mapping[str, Any]) -> Path:
    request = {
        "TrainingJobName": "mnist-42",
        "DebugRuleConfigurations": configured(**rules),
        "ProfilerRuleConfigurations": list(profiler),
    }
    path = tmp_path / "job.json"
    path.write_text(json.dumps(request))
    return path


def written(tmp_path: Path, text: str, name: str) -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def evaluate(job: Path, trial: Path, *arguments: object) -> Result:
    given = ["--job", job, "--trial", trial, "--output", trial.parent / "out", *arguments]
    return CliRunner().invoke(main, ["evaluate", *map(str, given)])


def check(job: Path, *arguments: object) -> Result:
    return CliRunner().invoke(
        main, ["evaluate", "--job", str(job), "--check", *map(str, arguments)]
    )


def evaluated(result: Result) -> dict[str, Any]:
    """Return the results of ``--format json`` by name, once they are as the schema says."""
    found = json.loads(result.stdout)
    schemas = [json.loads(one.read_text()) for one in (EVALUATION_SCHEMA, RULE_SCHEMA)]
    registry = referencing.Registry().with_resources(
        [(one["$id"], referencing.Resource.from_contents(one)) for one in schemas]
    )
    jsonschema.Draft202012Validator(schemas[0], registry=registry).validate(found)
    return {one["configuration_name"]: one for one in found["rules"]}


def statuses(folder: Path) -> list[dict[str, str]]:
    """Return the status list of each event in an output folder, by name."""
    lines = (folder / "events.jsonl").read_text().splitlines()
    lists = [json.loads(line)["detail"]["DebugRuleEvaluationStatuses"] for line in lines]
    return [
        {one["RuleConfigurationName"]: one["RuleEvaluationStatus"] for one in rules}
        for rules in lists
    ]


@pytest.mark.smoke
def test_a_job_is_judged_as_a_user_starts_it(trial: Path, tmp_path: Path) -> None:
    job = written(tmp_path, YAML, "job.yaml")
    command = [sys.executable, "-m", "rule_runner", "evaluate", "--job", job, "--trial", trial]
    found = subprocess.run(
        [*command, "--output", "out"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout.splitlines() == [
        "Gradients (VanishingGradient): IssuesFound at step 70 (warning)",
        "  judged 8 of 10 steps (0 to 70)",
        (
            "  gradient/fc.weight has almost vanished at step 70: its mean magnitude is 3.162e-08. "
            "Use ReLU or GELU in place of sigmoid and tanh, and add normalisation or residual "
            "connections between layers. (measured 3.16228e-8, limit 1e-7)"
        ),
        "Stalled (LossNotDecreasing): NoIssuesFound",
        "  judged 9 of 10 steps (10 to 90); skipped 1: too few steps since the last evaluation",
        "1 IssuesFound, 1 NoIssuesFound",
        "trial: suspicious since step 70, judged by 2 of 2 rules",
        "Results: out",
        "Report: out/report.html",
    ]
    parameters = saved.result(tmp_path / "out", "Gradients")["parameters"]
    assert parameters["threshold"] == 1e-7


def test_every_event_has_all_rules(trial: Path, tmp_path: Path) -> None:
    job = job_file(tmp_path, Gradients=VANISHING, Exploding=EXPLODING)
    assert evaluate(job, trial).exit_code == 0
    out = tmp_path / "out"
    assert statuses(out)[0] == {"Gradients": "InProgress", "Exploding": "InProgress"}
    assert statuses(out)[-1] == {"Gradients": "IssuesFound", "Exploding": "NoIssuesFound"}
    event = json.loads((out / "events.jsonl").read_text().splitlines()[0])
    assert event["detail"]["TrainingJobName"] == "mnist-42"
    assert saved.result(out, "Exploding")["status"] == "NoIssuesFound"


def test_one_that_is_wrong_fails_alone(trial: Path, tmp_path: Path) -> None:
    wrong = {"rule_to_invoke": "VanishingGradient", "threshold": 0.5}
    job = job_file(tmp_path, Wrong=wrong, Gradients=VANISHING, **{"../up": EXPLODING})
    result = evaluate(job, trial, "--format", "json")
    assert result.exit_code == 1
    rules = evaluated(result)
    assert {name: (one["status"], one["outcome"]) for name, one in rules.items()} == {
        "Wrong": ("Error", "Error"),
        "Gradients": ("IssuesFound", "IssuesFound"),
        "../up": ("Error", "Error"),
    }
    details = "ClientError: Parameter 'threshold' must be a string, got 0.5. Write \"0.5\"."
    assert rules["Wrong"]["status_details"] == details
    assert rules["Wrong"]["coverage"]["judged"] == 0
    out = tmp_path / "out"
    assert [*saved.results(out)] == ["Wrong", "Gradients", "../up"]
    assert [path.name for path in out.iterdir() if path.is_dir()] == []
    assert saved.result(out, "Wrong")["status_details"] == details
    first = {"Wrong": "Error", "Gradients": "InProgress", "../up": "Error"}
    assert statuses(out)[0] == first
    assert [path.name for path in tmp_path.glob("*up*")] == []


def test_all_formats_show_what_is_wrong(trial: Path, tmp_path: Path) -> None:
    report = {"RuleConfigurationName": "Report", "RuleParameters": {"rule_to_invoke": "BatchSize"}}
    job = job_file(tmp_path, Wrong={"rule_to_invoke": "X"}, Good=EXPLODING, profiler=[report])
    note = (
        "Profiler rules are not evaluated without profiler data: 'Report'. "
        "Give --profiler-trial PATH."
    )
    table = evaluate(job, trial, "--overwrite")
    assert f"note: {note}" in table.stdout.splitlines()
    assert json.loads(evaluate(job, trial, "--overwrite", "--format", "json").stdout)["notes"] == [
        note
    ]
    junit = evaluate(job, trial, "--overwrite", "--format", "junit")
    assert fromstring(junit.stdout).attrib["errors"] == "1"
    sarif = evaluate(job, trial, "--overwrite", "--format", "sarif")
    (run,) = json.loads(sarif.stdout)["runs"]
    assert run["properties"]["rules"]["Wrong"]["outcome"] == "Error"
    for one in (junit, sarif):
        assert json.loads(one.stderr)["reason"] == note


def test_a_python_file(trial: Path, tmp_path: Path) -> None:
    job = written(tmp_path, PYTHON, "job.py")
    result = evaluate(job, trial, "--training-job-name", "mnist", "--dry-run", "--format", "json")
    assert (result.exit_code, result.stderr) == (0, "the file was run\n")
    rules = evaluated(result)
    assert {name: one["status"] for name, one in rules.items()} == {
        "Gradients": "IssuesFound",
        "ExplodingTensor": "NoIssuesFound",
    }


def test_a_job_without_a_name_stops_nothing(trial: Path, tmp_path: Path) -> None:
    result = evaluate(written(tmp_path, PYTHON, "job.py"), trial, "--format", "json")
    assert result.exit_code == 1
    assert evaluated(result)["ExplodingTensor"]["status_details"] == (
        "ClientError: Rule 'ExplodingTensor' is to stop a training job, and its name is not known. "
        "Give it to the action, or as --training-job-name."
    )


def test_actions_and_modes_by_name(trial: Path, tmp_path: Path) -> None:
    job = job_file(tmp_path, A=VANISHING, B={**VANISHING, "RULE_RUNNER_MODE": "observe"})
    told = tmp_path / "told"
    action = f"A=command:touch {told}"
    options = ["--action", action, "--action", f"B=command:touch {tmp_path / 'never'}"]
    result = evaluate(job, trial, *options, "--fail-on-issues", "--format", "json")
    assert result.exit_code == 10
    rules = evaluated(result)
    assert [one["mode"] for one in rules.values()] == ["enforce", "observe"]
    assert [one["state"] for one in rules["A"]["actions"]] == ["done"]
    assert (told.exists(), (tmp_path / "never").exists()) == (True, False)


def test_each_rule_is_given_its_own_other_trials(trial: Path, tmp_path: Path) -> None:
    source = {"source_s3_uri": str(written(tmp_path, COMPARES, "compares.py"))}
    for name in ("one", "two", "all"):
        (tmp_path / name).symlink_to(trial)
    job = job_file(
        tmp_path,
        A={**source, "other_trial_0": str(tmp_path / "one")},
        B={
            **source,
            "other_trial_1": str(tmp_path / "one"),
            "other_trial_0": str(tmp_path / "two"),
        },
        C=source,
        D={**source, "other_trials": str(tmp_path / "none")},
    )
    result = evaluate(job, trial, "--other-trial", tmp_path / "all", "--format", "json")
    assert result.exit_code == 1
    rules = evaluated(result)
    measured = {name: rules[name]["evidence"][0]["measured"] for name in "ABC"}
    assert measured == {"A": "all,one", "B": "all,two,one", "C": "all"}
    assert rules["D"]["status_details"] == (
        f"ClientError: Trial '{tmp_path / 'none'}' does not exist."
    )


def test_a_hundred_parameters(trial: Path, tmp_path: Path) -> None:
    source = str(written(tmp_path, MINE, "mine.py"))
    many = {f"p{number}": "x" for number in range(100)}
    job = job_file(tmp_path, A={"source_s3_uri": source, "limit": "0.5", **many})
    result = evaluate(job, trial, "--format", "json")
    assert (result.exit_code, evaluated(result)["A"]["status"]) == (0, "IssuesFound")
    assert json.loads(result.stdout)["notes"] == [
        "SageMaker takes at most 100 parameters, and 102 of rule configuration 'A'."
    ]


def test_only_and_except(trial: Path, tmp_path: Path) -> None:
    job = job_file(tmp_path, A=EXPLODING, B={"rule_to_invoke": "X"}, Gamma=VANISHING)
    one = evaluate(job, trial, "--except", "B", "--except", "Gamma", "--format", "json")
    assert (one.exit_code, list(evaluated(one))) == (0, ["A"])
    two = evaluate(job, trial, "--only", "Gama")
    assert (two.exit_code, two.stderr) == (
        2,
        (
            "Error: Option --only names no rule configuration: 'Gama'. Did you mean 'Gamma'? "
            "Names: 'A', 'B', 'Gamma'.\n"
        ),
    )


def test_the_request_says_where_the_trial_is(
    trial: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "jobs" / "mnist-42" / "debug-output"
    place.parent.mkdir(parents=True)
    trial.rename(place)
    request = {
        "TrainingJobName": "mnist-42",
        "DebugHookConfig": {"S3OutputPath": str(tmp_path / "jobs")},
        "DebugRuleConfigurations": configured(A=EXPLODING),
    }
    job = written(tmp_path, json.dumps(request), "job.json")
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["evaluate", "--job", str(job)])
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0] == "A (ExplodingTensor): NoIssuesFound"
    (folder,) = (tmp_path / "rule-output").glob("[!.]*")
    assert folder.name.startswith("mnist-42-")
    assert [*saved.results(folder)] == ["A"]


def test_check_says_what_is_wrong_and_runs_nothing(tmp_path: Path) -> None:
    report = {"RuleConfigurationName": "Report", "RuleParameters": {"rule_to_invoke": "BatchSize"}}
    wrong = {
        "RuleConfigurationName": "Idle",
        "RuleParameters": {"rule_to_invoke": "BatchSize", "windw": "1"},
    }
    mine = str(written(tmp_path, "raise KeyError\n" + MINE, "mine.py"))
    job = job_file(
        tmp_path,
        Gradients=VANISHING,
        ExplodingTensor=EXPLODING,
        Wrong={"rule_to_invoke": "VanishingGradint"},
        Mine={"source_s3_uri": mine, "other_trial_0": "/not/looked/at"},
        Other={"source_s3_uri": mine, "rule_to_invoke": "Others"},
        profiler=[report, wrong],
    )
    result = check(job)
    assert (result.exit_code, result.stderr) == (1, "")
    assert result.stdout.splitlines() == [
        "Gradients (VanishingGradient): ok",
        "ExplodingTensor: ok",
        (
            "Wrong (VanishingGradint): Unknown rule 'VanishingGradint'. "
            "Did you mean 'VanishingGradient'?"
        ),
        (
            "Mine: ok; its file was not run and its parameters were not checked: "
            "--allow-code does both"
        ),
        (f"Other (Others): No class 'Others' in {mine}. Rule classes there: 'Mine'."),
        "Report (BatchSize): ok",
        (
            "Idle (BatchSize): Unknown parameter 'windw' of rule 'BatchSize'. "
            "Did you mean 'window'? Its parameters: 'cpu_threshold_p95', 'gpu_threshold_p95', "
            "'gpu_memory_threshold_p95', 'patience', 'window', 'scan_interval_us'."
        ),
    ]
    assert check(job, "--only", "Gradients", "--only", "Report").exit_code == 0


def test_check_with_code(tmp_path: Path) -> None:
    mine = str(written(tmp_path, MINE, "mine.py"))
    job = job_file(
        tmp_path, Mine={"source_s3_uri": mine}, Good={"source_s3_uri": mine, "limit": "1"}
    )
    result = check(job, "--allow-code")
    assert (result.exit_code, result.stderr) == (1, "the rule was loaded\n" * 2)
    assert result.stdout.splitlines() == [
        "Mine: Rule 'Mine' needs parameter 'limit', which was not given.",
        "Good (Mine): ok",
    ]


def test_check_of_a_program(tmp_path: Path) -> None:
    job = written(tmp_path, PYTHON, "job.py")
    result = check(job)
    assert (result.exit_code, result.stdout, result.stderr) == (
        2,
        "",
        (
            f"Error: Job file {job} is a program, and checking it runs it. "
            "Give --allow-code to allow that.\n"
        ),
    )
    allowed = check(job, "--allow-code", "--training-job-name", "mnist")
    assert (allowed.exit_code, allowed.stderr) == (0, "the file was run\n")
    assert allowed.stdout.splitlines() == [
        "Gradients (VanishingGradient): ok",
        "ExplodingTensor: ok",
    ]


def test_profiler_rules_only(trial: Path, tmp_path: Path) -> None:
    report = {"RuleConfigurationName": "R", "RuleParameters": {"rule_to_invoke": "ProfilerReport"}}
    job = job_file(tmp_path, profiler=[report])
    said = (
        f"Error: Job file {job} leaves nothing to evaluate. "
        "Profiler rules are not evaluated without profiler data: 'R'. "
        "Give --profiler-trial PATH.\n"
    )
    result = evaluate(job, trial)
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", said)
    assert not (tmp_path / "out").exists()
    checked = check(job)
    assert (checked.exit_code, checked.stdout, checked.stderr) == (
        0,
        "R (ProfilerReport): ok\n",
        "",
    )


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("job.json", '{"DebugRuleConfigurations": []}', " holds no rules: neither Debug"),
        ("job.json", "{}", " holds no rules: neither DebugRuleConfigurations nor Profiler"),
        ("job.yaml", "", " must hold an object with DebugRuleConfigurations, got nothing."),
        ("job.json", '{"a": 1,\n"a": 2}', " does not parse: line 2: key 'a' occurs twice."),
        ("job.yaml", "a: 1\nb: 2\na: 3", " does not parse: line 3: key 'a' occurs twice."),
        ("job.yaml", "a: &a x\nb: [" + "*a," * 150_000 + "]", " does not parse: line 2: it "),
        ("job.yaml", "[" * 200_000, " does not parse: line 1: it is nested too deeply."),
        ("job.json", "[" * 200_000, " does not parse: it is nested too deeply."),
        ("job.json", " " * 1_100_000, " is too large: the limit is 1,048,576 bytes."),
        ("job.yaml", "a: !!python/name:os.system", " does not parse: line 1: tag "),
        ("job.py", "rules = 5", " must be a list of rules, got int."),
        ("job.py", "raise ValueError('no')", " raised ValueError at line 1: no."),
    ],
)
def test_files_that_define_nothing(
    trial: Path, tmp_path: Path, name: str, text: str, problem: str
) -> None:
    result = evaluate(written(tmp_path, text, name), trial)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: ")
    assert problem in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_two_rules_of_one_name(trial: Path, tmp_path: Path) -> None:
    twice = {"DebugRuleConfigurations": [*configured(A=EXPLODING), *configured(A=VANISHING)]}
    job = written(tmp_path, json.dumps(twice), "job.json")
    for result in (evaluate(job, trial), check(job)):
        assert (result.exit_code, result.stdout, result.stderr) == (
            1,
            "",
            (
                f"Error: Two rule configurations of job file {job} are called 'A'. "
                "Names must differ.\n"
            ),
        )


def test_places_that_are_no_job_files(trial: Path, tmp_path: Path) -> None:
    (tmp_path / "latin.json").write_bytes(b'{"a": "\xe9"}')
    for name, problem in {
        "none.json": "does not exist.",
        ".": "is not a regular file.",
        "latin.json": "is not UTF-8 text: byte 0xe9 in line 1.",
    }.items():
        result = evaluate(tmp_path / name, trial)
        assert (result.exit_code, result.stderr) == (
            1,
            f"Error: Job file {tmp_path / name} {problem}\n",
        )


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (
            ["--rule", "AllZero"],
            "Options --job and --rule cannot be combined: give the rules by one",
        ),
        (["--source", "x.py"], "Options --job and --source cannot be combined"),
        (["-p", "a=b"], "Options --job and --param cannot be combined"),
        (["--allow-code"], "Option --allow-code requires --check"),
        (["--check", "--format", "json"], "Option --check cannot be combined with --format json."),
        (["--mode", "B=observe"], "Mode 'B=observe' names no rule of this evaluation."),
        (["--action", "B=sms:+4912"], "Action for unknown rule 'B'."),
        (
            ["--only", "A", "--except", "A"],
            "No rule configuration is left after --only and --except.",
        ),
    ],
)
def test_options_that_do_not_go_together(
    trial: Path, tmp_path: Path, arguments: list[str], problem: str
) -> None:
    result = evaluate(job_file(tmp_path, A=EXPLODING), trial, *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"Error: {problem}")


@pytest.mark.parametrize("option", ["--check", "--allow-code", "--only=A", "--except=A"])
def test_options_of_a_job_without_one(trial: Path, option: str) -> None:
    given = ["evaluate", "--trial", str(trial), "--rule", "AllZero", option]
    result = CliRunner().invoke(main, given)
    assert (result.exit_code, result.stderr) == (
        2,
        f"Error: Option {option.partition('=')[0]} requires --job.\n",
    )


def test_no_trial(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["evaluate", "--rule", "AllZero"])
    assert (result.exit_code, result.stderr) == (
        2,
        (
            "Error: No trial was given: give --trial PATH, or --profiler-trial PATH for profiler "
            "rules.\n"
        ),
    )
    job = str(job_file(tmp_path, A=EXPLODING))
    result = CliRunner().invoke(main, ["evaluate", "--job", job])
    assert (result.exit_code, result.stderr) == (
        2,
        (
            "Error: No trial was given, and the job file does not say where one is saved, with "
            "TrainingJobName and S3OutputPath of DebugHookConfig. Give --trial PATH.\n"
        ),
    )


STALLED = {"rule_to_invoke": "LossNotDecreasing", "num_steps": "10"}


@pytest.mark.parametrize(
    ("job", "own", "option", "expected"),
    [
        pytest.param(0.95, None, None, "NotEvaluated", id="job"),
        pytest.param("0.95", None, None, "NotEvaluated", id="text"),
        pytest.param(0.5, None, None, "NoIssuesFound", id="enough"),
        pytest.param(0.95, None, "0.5", "NoIssuesFound", id="option-before-job"),
        pytest.param(None, "0.95", "0.5", "NotEvaluated", id="rule-before-option"),
        pytest.param(None, None, "0.95", "NotEvaluated", id="option"),
    ],
)
def test_a_job_may_demand_coverage(
    trial: Path, tmp_path: Path, job: object, own: str | None, option: str | None, expected: str
) -> None:
    parameters = STALLED | ({} if own is None else {"RULE_RUNNER_MIN_COVERAGE": own})
    path = job_file(tmp_path, Stalled=parameters)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"minCoverage": job}))
    more = [] if option is None else ["--min-coverage", option]
    result = evaluate(path, trial, "--format", "json", *more)
    assert evaluated(result)["Stalled"]["outcome"] == expected
    assert result.exit_code == int(expected == "NotEvaluated")


@pytest.mark.parametrize("share", [1.5, "most", True, [0.9], "nan"])
def test_an_invalid_minimum_coverage_is_one_sentence(
    trial: Path, tmp_path: Path, share: object
) -> None:
    path = job_file(tmp_path, Stalled=STALLED)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"minCoverage": share}))
    result = evaluate(path, trial)
    assert (result.exit_code, result.stderr) == (
        1,
        f"Error: minCoverage of job file {path} must be a number from 0 to 1, got {share!r}.\n",
    )
