"""rule_runner.evaluate with names of rules, and what `dir(rule_runner)` lists."""

import builtins
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec
import numpy as np
import pytest
import vanishing

import rule_runner
from rule_core.exceptions import SMDebugRuntimeError
from rule_runner.debugger import Rule, rule_configs
from rule_runner.errors import JobError, UnknownRuleError, UsageError
from rule_runner.results.schema import RULE_SCHEMA, EvaluationResult, finding_rows
from smdebug.core.writer import TrialWriter


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    """Return an ended trial whose gradients vanish at 70."""
    return vanishing.write_trial(tmp_path / "trial")


def outcomes(result: EvaluationResult) -> dict[str, str]:
    return {rule.rule: rule.outcome for rule in result.rules}


def test_names_are_rules(trial: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    monkeypatch.chdir(scratch)
    result = rule_runner.evaluate(trial, ["VanishingGradient", "ExplodingTensor"])
    expected = {"VanishingGradient": "IssuesFound", "ExplodingTensor": "NoIssuesFound"}
    assert outcomes(result) == expected
    assert outcomes(rule_runner.evaluate(trial, tuple(expected))) == expected
    assert list(scratch.iterdir()) == []


def test_without_rules_those_that_fit_are_evaluated(trial: Path) -> None:
    result = rule_runner.evaluate(trial)
    assert outcomes(result)["VanishingGradient"] == "IssuesFound"
    assert "DeadRelu" not in outcomes(result)
    assert "DeadRelu" in result.left_out


def test_a_misspelt_name_has_its_nearest(trial: Path) -> None:
    problem = r"^Unknown rule 'VanishingGradent'\. Did you mean 'VanishingGradient'\?$"
    with pytest.raises(UnknownRuleError, match=problem):
        rule_runner.evaluate(trial, ["VanishingGradent"])


def test_a_string_is_the_path_of_a_job_file(trial: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(trial.parent)
    with pytest.raises(JobError, match=r"^Job file rules\.yaml does not exist\."):
        rule_runner.evaluate(trial, "rules.yaml")
    problem = r"^Job file 'ExplodingTensor' does not exist\. To name a rule, give a list: \['Expl"
    with pytest.raises(UsageError, match=problem):
        rule_runner.evaluate(trial, "ExplodingTensor")
    Path("ExplodingTensor").write_text("{}")
    with pytest.raises(JobError, match=r"^Job file ExplodingTensor holds no rules"):
        rule_runner.evaluate(trial, "ExplodingTensor")


class _Printer:
    """Takes what IPython would print."""

    def __init__(self) -> None:
        self.printed = ""

    def text(self, printed: str) -> None:
        self.printed += printed


def test_ipython_prints_lines_and_not_every_field(trial: Path) -> None:
    printer = _Printer()
    rule_runner.evaluate(trial, ["VanishingGradient"])._repr_pretty_(printer, False)
    assert printer.printed.startswith("VanishingGradient: IssuesFound at step 70 (warning)\n")
    printer = _Printer()
    rule_runner.check(trial)._repr_pretty_(printer, False)
    assert ": suspicious since step " in printer.printed.splitlines()[0]
    assert printer.printed.endswith("Checked 1 trial: 1 suspicious.")


def test_numbers_that_are_not_finite_are_numbers_in_a_frame(trial: Path) -> None:
    (rule,) = rule_runner.evaluate(trial, ["VanishingGradient"]).rules
    evidence = [
        msgspec.structs.replace(rule.findings[0], measured=measured, tensor="NaN")
        for measured in ("NaN", "-Infinity", "text", 1.5)
    ]
    rows = finding_rows([msgspec.structs.replace(rule, evidence=evidence)])
    assert [str(row["measured"]) for row in rows] == ["nan", "-inf", "text", "1.5"]
    assert {row["tensor"] for row in rows} == {"NaN"}


def test_names_are_chosen_already(trial: Path) -> None:
    for option in ({"only": ["ExplodingTensor"]}, {"exclude": ["ExplodingTensor"]}):
        with pytest.raises(UsageError, match=r"^Arguments 'only' and 'exclude' need rule conf"):
            rule_runner.evaluate(trial, ["ExplodingTensor"], **option)  # type: ignore[arg-type] # one of several keywords
    with pytest.raises(UsageError, match=r"^No trial was given, and a list of names does not"):
        rule_runner.evaluate(None, ["ExplodingTensor"])


def test_names_do_not_wait_unless_asked(tmp_path: Path) -> None:
    writer = TrialWriter(tmp_path / "growing", collections={"losses": "loss"})
    for step in range(3):
        writer.step(step, {"loss": np.float32(1)})
    names = ["ExplodingTensor"]
    result = rule_runner.evaluate(tmp_path / "growing", names, timeout=20)
    assert (result.trial.ended, result.rules[0].coverage.judged) == (False, 3)
    followed = rule_runner.evaluate(tmp_path / "growing", names, wait=True, timeout=0.2)
    assert [rule.status for rule in followed.rules] == ["Stopped"]
    objects = [Rule.sagemaker(rule_configs.exploding_tensor())]
    followed = rule_runner.evaluate(tmp_path / "growing", objects, timeout=0.2)
    assert [rule.status for rule in followed.rules] == ["Stopped"]  # as ever
    seen = rule_runner.evaluate(tmp_path / "growing", objects, wait=False)
    assert seen.rules[0].coverage.judged == 3
    writer.close()
    assert rule_runner.evaluate(tmp_path / "growing", names).trial.ended


def test_a_frame_has_a_row_for_each_finding_and_each_silent_rule(trial: Path) -> None:
    rules = ["VanishingGradient", "ExplodingTensor"]
    frame = rule_runner.evaluate(trial, rules, keep_going=True).to_pandas()
    assert [*frame["rule"]] == ["VanishingGradient"] * 3 + ["ExplodingTensor"]
    assert [*frame["step"][:3]] == [70, 80, 90]
    first = frame.iloc[0]
    assert (first["outcome"], first["tensor"], first["state"]) == (
        *("IssuesFound", "gradient/fc.weight", "open"),
    )
    assert first["measured"] < first["limit"] == 1e-7
    assert first["summary"].startswith("gradient/fc.weight has almost vanished at step 70")
    assert frame.iloc[3]["outcome"] == "NoIssuesFound"


def test_without_pandas_one_sentence_says_so(trial: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = rule_runner.evaluate(trial, ["ExplodingTensor"])
    imported = builtins.__import__

    def without_pandas(name: str, *arguments: object) -> object:
        if name == "pandas":
            raise ImportError(name)
        return imported(name, *arguments)  # type: ignore[arg-type] # as they came

    monkeypatch.setattr(builtins, "__import__", without_pandas)
    with pytest.raises(SMDebugRuntimeError, match=r"need pandas.*pip install"):
        result.to_pandas()


def test_the_api_is_listed_and_imported_when_it_is_used() -> None:
    code = (
        "import sys, rule_runner\n"
        "print(*dir(rule_runner))\n"
        "print(sorted(name for name in sys.modules if name.startswith('rule_runner')))\n"
        "print(*[bool(getattr(rule_runner, name)) for name in dir(rule_runner)])\n"
        "print('pandas' in sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names, imported, usable, has_pandas = ended.stdout.splitlines()
    assert {"check", "evaluate", "debugger", "__version__", "EvaluationResult"} <= {*names.split()}
    assert {"CheckResult", "CheckedTrial", "RuleResult", "Evidence"} <= {*names.split()}
    assert imported == "['rule_runner']"
    assert {*usable.split()} == {"True"}
    assert has_pandas == "False"
    assert RULE_SCHEMA.is_file()
