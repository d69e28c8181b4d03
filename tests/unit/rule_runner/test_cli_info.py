"""The commands trial, doctor and rules: whole output and exit codes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rule_runner.cli import main
from rule_runner.commands.doctor import command
from rule_runner.commands.doctor.checks import good, wrong
from rule_runner.loading.loader import every_builtin
from rule_runner.report.rule_pages import page
from smdebug.core.writer import TrialWriter


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


@pytest.fixture
def trial(tmp_path: Path) -> str:
    with TrialWriter(tmp_path / "runs", collections={"losses": "loss"}) as writer:
        writer.step(0, {"loss": 0.5})
        writer.step(5, {"loss": 0.25})
    return str(tmp_path / "runs")


def test_trial_show(trial: str) -> None:
    done = call("trial", "show", trial)
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == (
        f"trial: runs\n"
        f"path: {trial}\n"
        "ended: yes\n"
        "workers: 1 of 1 (worker_0)\n"
        "tensors: 1, 186 bytes of records in event files\n"
        "steps:\n"
        "  all, by global number: 2 steps, 0 to 5\n"
        "collections:\n"
        "  losses: 1 tensor, 'loss'\n"
        "tensors:\n"
        "  loss: 2 steps (0 to 5), GLOBAL, (1) float64, value, 186 bytes\n"
    )


def test_trial_show_as_json(trial: str) -> None:
    done = call("trial", "show", trial, "--format", "json")
    report = json.loads(done.stdout)
    assert (done.exit_code, done.stderr) == (0, "")
    assert (report["schema_version"], report["name"], report["ended"]) == (1, "runs", True)


def test_trial_show_cuts_nothing_with_all(tmp_path: Path) -> None:
    with TrialWriter(tmp_path) as writer:
        writer.step(0, {f"t{number}": number for number in range(30)})
    cut, whole = call("trial", "show", str(tmp_path)), call("trial", "show", str(tmp_path), "--all")
    assert cut.stdout.endswith("  and 10 more (--all)\n")
    assert len(whole.stdout.splitlines()) == len(cut.stdout.splitlines()) + 9


def test_trial_show_says_on_stdout_alone_what_is_damaged(trial: str) -> None:
    index = Path(trial) / "index" / "000000000" / "000000000005_worker_0.json"
    index.write_text("{")
    done = subprocess.run(
        [sys.executable, "-m", "rule_runner", "trial", "show", trial],
        check=False,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    problems = done.stdout.partition("problems:\n")[2]
    key = "index/000000000/000000000005_worker_0.json"
    assert problems.startswith(f"  {key}: File '{key}' is cut off: ")
    assert problems.count("\n") == 1


@pytest.mark.parametrize(
    ("make", "text"),
    [
        pytest.param(False, "Trial '{path}' does not exist.", id="missing"),
        pytest.param(
            True,
            "Folder '{path}' holds no trial: neither 'collections/' nor 'index/' has a file. Give "
            "the folder to which the training job saved its tensors.",
            id="empty",
        ),
    ],
)
def test_trial_show_without_a_trial(tmp_path: Path, make: bool, text: str) -> None:
    path = tmp_path / "t"
    if make:
        path.mkdir()
    done = call("trial", "show", str(path))
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == f"Error: {text.format(path=path)}\n"


def test_doctor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "examine_installation", lambda: iter([good("It works.")]))
    done = call("doctor")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == "ok: It works.\nNo problems found.\n"


def test_doctor_of_a_broken_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "examine_installation", lambda: iter([wrong("It does not.")]))
    done = call("doctor")
    assert (done.exit_code, done.stderr) == (1, "")
    assert done.stdout == "wrong: It does not.\n1 problem found.\n"


def test_doctor_of_a_trial(monkeypatch: pytest.MonkeyPatch, trial: str) -> None:
    monkeypatch.setattr(command, "examine_installation", lambda: iter([]))
    done = call("doctor", trial)
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == (
        "ok: The training job has ended; the trial has 2 steps.\n"
        "warning: No saved tensor is in collection 'gradients': rule VanishingGradient has "
        "nothing to judge. Configure the hook to save it.\n"
        "No problems found.\n"
    )


def test_doctor_works_where_another_smdebug_shadows_ours(tmp_path: Path) -> None:
    other = tmp_path / "smdebug"
    other.mkdir()
    (other / "__init__.py").write_text("")
    done = subprocess.run(
        [sys.executable, "-m", "rule_runner", "doctor"],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(tmp_path)},
    )
    ours = Path(__file__).parents[3] / "smdebug"
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith(
        f"wrong: Package 'smdebug' is imported from '{other}' and not from '{ours}'. "
    )
    assert done.stdout.endswith("1 problem found.\n")


def test_doctor_cannot_examine_a_trial_there(monkeypatch: pytest.MonkeyPatch, trial: str) -> None:
    monkeypatch.setattr(command, "examine_installation", lambda: iter([]))
    monkeypatch.setitem(sys.modules, "rule_runner.commands.doctor.trial", None)
    done = call("doctor", trial)
    assert (done.exit_code, done.stderr) == (1, "")
    assert done.stdout == (
        "wrong: The trial was not examined: this installation cannot read trials "
        "(ModuleNotFoundError). Repair it first.\n1 problem found.\n"
    )


def test_rules_list() -> None:
    done = call("rules", "list")
    assert (done.exit_code, done.stderr) == (0, "")
    shown = done.stdout.splitlines()
    assert [line.split()[0] for line in shown] == list(every_builtin())
    assert "ExplodingTensor" in every_builtin()
    name = "ExplodingTensor".ljust(max(map(len, every_builtin())))
    line = f"{name}  error    A tensor holds NaN or infinity."
    assert [other for other in shown if other.startswith("ExplodingTensor ")] == [line]


def test_rules_show() -> None:
    done = call("rules", "show", "VanishingGradient")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == page("VanishingGradient")


def test_rules_show_without_such_a_rule() -> None:
    done = call("rules", "show", "VanishingGradent")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == (
        "Error: Unknown rule 'VanishingGradent'. Did you mean 'VanishingGradient'?\n"
    )
