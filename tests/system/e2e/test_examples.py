"""Every example as a user runs it, and the verdict that the README beside them promises."""

import ast
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rule_runner.commands.rule_tests import run_rule_tests
from rule_runner.config.defaults import Isolation

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
RULE_TESTS = ROOT / "examples" / "rules"
ROW = re.compile(r"^\| `(\w+\.py)` \|[^|]*\| `([^|`]*)` \| `(\w+)` \|$", re.MULTILINE)
ROWS = ROW.findall((ROOT / "examples" / "README.md").read_text())


def frameworks(path: Path) -> set[str]:
    """Return the packages that an example and the part of smdebug that it uses need."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    names = {one.name for node in nodes if isinstance(node, ast.Import) for one in node.names}
    names |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    return {name.partition(".")[0] for name in names} - {"smdebug"}


def python(*arguments: str | Path, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_rule_tests_pass(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_rule_tests([str(RULE_TESTS)], None, Isolation.NONE, update=False) == 0
    assert ", 0 failed.\n" in capsys.readouterr().out


def test_the_readme_names_every_example() -> None:
    assert sorted(name for name, _, _ in ROWS) == [path.name for path in EXAMPLES]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_are_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) < 30


@pytest.mark.parametrize(("name", "arguments", "verdict"), ROWS, ids=[row[0] for row in ROWS])
def test_an_example_is_judged(tmp_path: Path, name: str, arguments: str, verdict: str) -> None:
    path = ROOT / "examples" / name
    for package in sorted(frameworks(path)):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed.")
    python(path, tmp_path / "trial", folder=tmp_path)
    command = ["-m", "rule_runner", "evaluate", "--trial", tmp_path / "trial", *arguments.split()]
    found = json.loads(python(*command, "--no-wait", "--format", "json", folder=tmp_path))
    rules = found["rules"]
    assert {rule["outcome"] for rule in rules} == {verdict}
    assert min(rule["coverage"]["judged"] for rule in rules) > 0
    assert {rule["trial_ended"] for rule in rules} == {True}
