"""test: cases pass or fail with their differences; updates; JUnit."""

import textwrap
from pathlib import Path
from xml.etree.ElementTree import fromstring

import pytest

from rule_runner.commands.rule_tests import run_rule_tests
from rule_runner.config.defaults import Isolation
from rule_runner.errors import ClientError, OutputError

RULE = """
from smdebug.rules import Rule
from smdebug.rules.extensions import Severity

class LossTooHigh(Rule):
    SEVERITY = Severity.WARNING

    def __init__(self, base_trial, threshold="10"):
        super().__init__(base_trial)
        self.threshold = float(threshold)

    def invoke_at_step(self, step):
        print("judged")
        names = self.base_trial.tensor_names(step=step, collection="losses")
        if not names:
            return self.not_judged("no losses")
        answers = []
        for name in names:
            for worker in self.base_trial.tensor(name).workers(step):
                loss = float(self.base_trial.tensor(name).value(step, worker=worker).mean())
                if loss < 0:
                    raise ValueError("negative")
                if loss > self.threshold:
                    severity = Severity.ERROR if loss > 100 else None
                    answers.append(self.found(step, tensor=name, worker=worker, measured=loss,
                                              limit=self.threshold, severity=severity))
        return any(answers)
"""
CASES = """
- name: rises
  losses: {loss: [1, 2, 30]}
  expect: {status: IssuesFound, step: 2, severity: warning, tensors: [loss]}
- name: higher
  losses: {loss: 1 20 300, other: [nan, 0, inf]}
  expect:
    step: 1
    steps: [1, 2]
    findings: [{measured: 20.0}, {step: 2, severity: error}, {tensor: other}]
- name: healthy
  losses: {loss: 9-1x5}
  parameters: {threshold: 9}
  expect: NoIssuesFound
- name: several workers and modes
  workers:
    worker_0: {losses: {loss: 1 1}}
    worker_1: {modes: {EVAL: {losses: {loss: 50}, steps: 7}}, losses: {loss: 1 1}}
  expect: {step: 7, workers: [worker_1], judged: 3}
- name: nothing
  tensors: {other: 1 2}
  expect: {status: NotEvaluated, not_judged: no losses, judged: 0}
- name: raises
  losses: {loss: -1}
  expect: {status: Error, details: "raised ValueError at step 0: negative"}
"""
# Each line stands for ten times as many values as the one before.
YAML_BOMB = "a: &0 x\n" + "".join(
    f"a{level}: &{level} [{', '.join([f'*{level - 1}'] * 10)}]\n" for level in range(1, 12)
)


def table(folder: Path, cases: str, name: str = "my.rules.yaml") -> Path:
    (folder / "my_rules.py").write_text(RULE)
    path = folder / name
    path.write_text("rule: my_rules.py::LossTooHigh\ncases:\n" + textwrap.dedent(cases).strip("\n"))
    return path


def run(path: Path, *, update: bool = False, isolate: str = "none") -> int:
    return run_rule_tests([str(path)], None, Isolation(isolate), update=update)


def test_a_case_passes_in_a_process_of_its_own(tmp_path: Path) -> None:
    table(tmp_path, "- {losses: {loss: 1 30}, expect: {step: 1, findings: [{measured: 30}]}}")
    assert run(tmp_path, isolate="process") == 0


def test_cases_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = table(tmp_path, CASES)
    assert run(tmp_path) == 0, capsys.readouterr().out
    assert capsys.readouterr().out == f"{path}: 6 of 6 passed\n6 cases: 6 passed, 0 failed.\n"


def test_each_difference_has_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = table(
        tmp_path,
        """
        - name: wrong
          losses: {loss: [1, 200]}
          expect:
            step: 0
            severity: warning
            findings: [{limit: 11, tensor: loss}]
        - losses: {loss: 1}
        """,
    )
    assert run(path) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"{path}: 0 of 2 passed",
        "  FAILED wrong",
        f"    {path}:6: step: expected 0, got 1",
        f"    {path}:7: severity: expected warning, got error",
        f"    {path}:8: findings: limit of finding 1: expected 11, got 10.0",
        "      found at step 1 (error): tensor loss, worker worker_0, measured 200.0, limit 10.0",
        "  FAILED case 2",
        f"    {path}:9: The case has no 'expect'. Use --update to write it.",
        "2 cases: 0 passed, 2 failed.",
    ]


@pytest.mark.parametrize(
    ("case", "line", "sentence"),
    [
        ("{loses: {loss: 1}}", 3, "A case has no key 'loses'. Did you mean 'losses'?"),
        (
            "{losses: {loss: 1}, expect: {stepp: 1}}",
            3,
            "'expect' has no key 'stepp'. Did you mean 'step'?",
        ),
        (
            "{losses: {loss: 1}, expect: IssueFound}",
            3,
            "'status' must be one of IssuesFound, NoIssuesFound, NotEvaluated, Error, got",
        ),
        ("\n  losses:\n    loss: 1 two", 5, "'loss': expected a number, such as 0.5, nan or"),
        ("{losses: {loss: 1 2}, steps: [3]}", 3, "'loss' has 2 values for 1 steps."),
        ("{expect: NoIssuesFound}", 3, "A case needs values: 'losses', 'tensors' or 'npz'."),
        ("{losses: {loss: 1}, mode: TEST}", 3, "A mode is one of TRAIN, EVAL, PREDICT, GLOBAL"),
        ("{npz: none.npz}", 3, "Case "),
        (
            "{losses: {loss: 1}, rule: Overfi, expect: Error}",
            3,
            "Unknown rule 'Overfi'. Did you mean 'Overfit'?",
        ),
        (
            "{losses: {loss: 1}, rule: StepOutlier, expect: Error}",
            3,
            "Rule 'StepOutlier' judges profiler data",
        ),
    ],
)
def test_a_case_that_cannot_be_used_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], case: str, line: int, sentence: str
) -> None:
    path = table(tmp_path, f"- {case}")
    assert run(path) == 1
    assert f"    {path}:{line}: {sentence}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("rule: [", ":1: did not find expected node content"),
        ("", ": the file is empty"),
        ("rule: a\nrule: b", ":2: key 'rule' occurs twice"),
        (YAML_BOMB, ":6: it expands to more than 100,000 values"),
        ("rule: &a [*a]", ":1: alias '*a' is not defined before it"),
        ("rule: " + "[" * 3000, ":1: it is nested too deeply"),
        ("rule: a\ncase: []", ":2: A test file has no key 'case'. Did you mean 'cases'?"),
        ("rule: a\ncases: []", ":2: 'cases' must be a list of cases"),
    ],
)
def test_a_file_that_cannot_be_read_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, sentence: str
) -> None:
    path = tmp_path / "bad.rules.yaml"
    path.write_text(text)
    assert run(path) == 1
    assert f"{path}{sentence}" in capsys.readouterr().out.replace(
        "expected the node content, but found '<stream end>'", "did not find expected node content"
    )


def test_update_writes_only_expectations(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = table(
        tmp_path,
        """
        # The first case.
        - name: wrong   # a comment
          losses: {loss: [1, 30]}
          expect:
            status: NoIssuesFound

        # The second case.
        - name: right
          expect: {step: 0}   # at once
          losses: {loss: [30]}
        - name: new
          losses: {loss: [3]}   # few
        - {name: flow, tensors: {x: 1}}
        - {name: s, losses: {loss: 20 1 20}, expect: {status: IssuesFound, steps: [0]}}
        """,
    )
    assert run(path, update=True) == 0
    assert path.read_text() == (
        """\
rule: my_rules.py::LossTooHigh
cases:
# The first case.
- name: wrong   # a comment
  losses: {loss: [1, 30]}
  expect: {status: IssuesFound, step: 1, severity: warning, tensors: [loss]}

# The second case.
- name: right
  expect: {step: 0}   # at once
  losses: {loss: [30]}
- name: new
  losses: {loss: [3]}   # few
  expect: {status: NoIssuesFound}
- {name: flow, tensors: {x: 1}, expect: {status: NotEvaluated}}
- {name: s, losses: {loss: 20 1 20}, expect: {status: IssuesFound, steps: [0, 2]}}"""
    )
    assert "5 of 5 passed, 4 updated" in capsys.readouterr().out
    assert run(path) == 0


def test_an_alias_is_not_updated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = table(
        tmp_path,
        """
        - {name: a, losses: {loss: 1}, expect: &fine NoIssuesFound}
        - {name: b, losses: {loss: 30}, expect: *fine}
        """,
    )
    before = path.read_text()
    assert run(path, update=True) == 1
    assert f"{path}:4: An alias cannot be updated" in capsys.readouterr().out
    assert path.read_text() == before


def test_a_python_table(tmp_path: Path) -> None:
    (tmp_path / "my_rules.py").write_text(RULE)
    path = tmp_path / "my.rules.py"
    path.write_text(
        "import numpy as np\n"
        "RULE = 'my_rules.py'\n"
        "PARAMETERS = {'threshold': 5}\n"
        "CASES = [{'losses': {'loss': np.array([1.0, 5.0, high])}, 'expect': {'step': 2}}\n"
        "         for high in np.linspace(5.1, 7, 3)]\n"
    )
    assert run(tmp_path) == 0
    assert run(path, update=True) == 0


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("raise SystemExit(3)", "ends the program at line 1."),
        ("1 / 0", "raised ZeroDivisionError at line 1: division by zero."),
    ],
)
def test_a_python_table_that_raises_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, problem: str
) -> None:
    path = tmp_path / "bad.rules.py"
    path.write_text(line)
    assert run(path) == 1
    assert f"Test file {path} {problem}" in capsys.readouterr().out


def test_junit_names_failures(tmp_path: Path) -> None:
    path = table(tmp_path, "- {name: a, losses: {loss: 1}, expect: {step: 3}}")
    junit = tmp_path / "junit.xml"
    assert run_rule_tests([str(path)], str(junit), Isolation.NONE, update=False) == 1
    suite = fromstring(junit.read_text())[0]
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert (failure.text or "").splitlines()[1] == f"{path}:3: step: expected 3, got none"
    with pytest.raises(OutputError, match="cannot be written"):
        run_rule_tests([str(path)], str(tmp_path), Isolation.NONE, update=False)


def test_paths_must_hold_tests(tmp_path: Path) -> None:
    with pytest.raises(ClientError, match=r"^No test file below .* Test files end in \.rules\."):
        run(tmp_path)
    with pytest.raises(ClientError, match=r"^Test file .* does not exist\.$"):
        run(tmp_path / "none.rules.yaml")
