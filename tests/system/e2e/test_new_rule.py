"""scripts/new_rule: what it writes works, passes its tests and every check, and breaks nothing."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
EVERY_RULE = "tests/system/evaluation/test_every_rule.py"
NEEDED = (
    *("builtin_rules", "rule_core", "rule_runner", "smdebug", "scripts"),
    *("tests/unit/builtin_rules", "tests/system/evaluation"),
)
FILES = (
    "builtin_rules/tensors/losses/loss_too_high.py",
    "builtin_rules/__init__.py",
    "builtin_rules/pages/LossTooHigh.md",
    "tests/unit/builtin_rules/tensors/losses/test_loss_too_high.py",
    "tests/unit/builtin_rules/tensors/losses/loss_too_high.rules.yaml",
)
PYTHON = [name for name in FILES if name.endswith(".py")]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a copy of what a rule and its tests need."""
    root = tmp_path / "tree"
    ignored = shutil.ignore_patterns("__pycache__")
    for name in (*NEEDED, "tests/support"):
        shutil.copytree(ROOT / name, root / name, ignore=ignored)
    for name in ("pyproject.toml", "tests/conftest.py"):
        shutil.copy(ROOT / name, root / name)
    return root


def run(root: Path, *command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, *command],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root), "COVERAGE_PROCESS_START": ""},
        capture_output=True,
        text=True,
        check=False,
    )


def new_rule(root: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return run(root, "scripts/new_rule", *arguments)


def contents(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }


@pytest.mark.nightly
def test_a_new_rule_passes_its_tests_and_those_of_every_rule(tree: Path) -> None:
    before = contents(tree)
    done = new_rule(tree, "LossTooHigh")
    assert (done.returncode, done.stderr) == (0, "")
    after = contents(tree)
    assert sorted(name for name in after if after[name] != before.get(name)) == sorted(FILES)
    for name in (
        FILES[0],
        *FILES[2:],
        "SEVERITY",
        "PARAMS",
        "builtin_rules/causes.py",
        "tests/system/evaluation",
    ):
        assert name in done.stdout
    tests = (
        "tests/unit/builtin_rules/tensors/losses/test_loss_too_high.py",
        "tests/unit/builtin_rules/test_rule_page.py",
        "tests/system/evaluation/test_every_rule.py",
    )
    chosen = "LossTooHigh or loss_too_high or table"
    tested = run(tree, "-m", "pytest", "-v", "-p", "no:cacheprovider", *tests, "-k", chosen)
    assert tested.returncode == 0, tested.stdout
    for test in ("says_what_it_judges", "constructor_takes_the_declared_parameters"):
        assert re.search(rf"{test}\[LossTooHigh\] PASSED", tested.stdout), tested.stdout
    assert run(tree, "-m", "ruff", "check", *PYTHON).stdout == "All checks passed!\n"
    assert run(tree, "-m", "ruff", "format", "--check", *PYTHON).returncode == 0
    typed = run(tree, "-m", "mypy", FILES[0])
    assert typed.returncode == 0, typed.stdout


@pytest.mark.parametrize("name", ["AaaFirst", "NearMiss", "ZzzLast"])
def test_a_rule_takes_its_place_in_the_table(tree: Path, name: str) -> None:
    assert new_rule(tree, name).returncode == 0
    assert run(tree, "-m", "ruff", "check", FILES[1]).stdout == "All checks passed!\n"
    rules = run(tree, "-c", "import builtin_rules as b; print(*b.RULES)").stdout.split()
    assert name in rules
    assert rules == sorted(rules)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("AllZero", "Rule 'AllZero' already exists. Choose another name."),
        ("Allzero", "Rule 'AllZero' already exists. Choose another name."),
        ("All", "Rule 'all' already exists. Choose another name."),
        (
            "TensorSelection",
            (
                "File 'builtin_rules/statistics/tensor_selection.py' already exists. "
                "Choose another name."
            ),
        ),
        (
            "EveryRuleSteps",
            (
                "File 'tests/system/evaluation/test_every_rule_steps.py' already exists. "
                "Choose another name."
            ),
        ),
        (
            "CheckLoss",
            "Name of a rule must be the problem, without 'Check' or 'Detect', got 'CheckLoss'.",
        ),
        *(
            (name, f"Name of a rule must be words with capitals, such as DeadRelu, got {name!r}.")
            for name in ("loss_high", "lossHigh", "Loss-High", "../Loss", "LOSS", "Loss2", "")
        ),
    ],
)
def test_a_name_that_cannot_be_changes_nothing(tree: Path, name: str, sentence: str) -> None:
    before = contents(tree)
    done = new_rule(tree, name)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"{sentence}\n")
    assert contents(tree) == before


def test_a_rule_is_not_written_twice(tree: Path) -> None:
    assert new_rule(tree, "LossTooHigh").returncode == 0
    before = contents(tree)
    assert new_rule(tree, "LossTooHigh").returncode == 2
    assert contents(tree) == before
