"""Each test belongs to one lane: scripts/test, .ci/run or .ci/nightly selects it."""

import ast
import re
import tomllib
from itertools import combinations
from pathlib import Path

import pytest
from _pytest.mark.expression import Expression

ROOT = Path(__file__).parents[1]
MARKS = ("smoke", "merge", "nightly")
SELECTION = re.compile(r'/(?:test|pytest) .*-m (?:"([^"]+)"|(\w+))|-m "([^"]+)"$')


def selections(script: str) -> list[Expression]:
    """Return the selections by marks in a script."""
    lines = (ROOT / script).read_text("utf-8").splitlines()
    matches = filter(None, map(SELECTION.search, lines))
    return [Expression.compile("".join(filter(None, match.groups()))) for match in matches]


@pytest.mark.parametrize(
    "marks",
    [marks for count in range(4) for marks in combinations(MARKS, count)],
    ids=lambda marks: "-".join(marks) or "none",
)
def test_each_combination_of_marks_is_in_one_lane(marks: tuple[str, ...]) -> None:
    (fast,), (merge,) = selections("scripts/test"), selections(".ci/run")
    coverage, night, *_ = selections(".ci/nightly")
    is_fast, is_merge, is_night = (
        selection.evaluate(lambda name, **_: name in marks) for selection in (fast, merge, night)
    )
    assert is_merge != is_night
    assert is_merge or not is_fast  # .ci/run has the fast tests run first, and not again
    assert coverage.input == merge.input


def test_every_test_file_is_collected() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["pytest"]
    roots = [ROOT / folder for folder in settings["testpaths"]]
    (ignored,) = (
        ast.literal_eval(node.value)
        for node in ast.parse((ROOT / "tests" / "conftest.py").read_text("utf-8")).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "collect_ignore"
    )
    files = [*ROOT.glob("test_*.py"), *ROOT.glob("[!.]*/**/test_*.py")]
    assert len(files) > 400
    for file in files:
        assert any(file.is_relative_to(root) for root in roots), file
        assert not any(file.is_relative_to(ROOT / "tests" / path) for path in ignored), file
