"""docs/sources/README.md: its tables show what is read, and its example what is printed."""

import re
import runpy
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rule_runner.cli import main

ROOT = Path(__file__).parents[4]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "source_tables"))
PAGE = (ROOT / "docs" / "sources" / "README.md").read_text()


def test_the_tables_are_what_is_read() -> None:
    tables = SCRIPT["tables"](ROOT / "docs" / "sources" / "writers.yaml")
    assert SCRIPT["filled"](PAGE, tables) == PAGE  # otherwise run scripts/source_tables
    assert SCRIPT["filled"](PAGE, {**tables, "modes": "other\n"}) != PAGE


def test_the_row_of_a_replica_is_what_was_read() -> None:
    text = "step,loss,val_loss\n10,2.5,\n20,2.0,2.1\n"
    row = SCRIPT["found"]({"writer": "Mine", "file": "a.csv", "text": text})
    shown = "`a.csv`: `step,loss,val_loss`"
    series = "TRAIN: `loss`; EVAL: `val_loss`"
    assert row == ("Mine", shown, "`csv`", "10 to 20: 'step'", series)


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (("found", {"writer": "Mine", "file": "a.log", "text": "no numbers\n"}), "Mine: "),
        (("filled", "# Page\n", {"modes": ""}), "README.md has no place for the table 'modes'"),
    ],
)
def test_what_cannot_be_shown_ends_the_script(call: tuple[Any, ...], problem: str) -> None:
    with pytest.raises(SystemExit, match=problem):
        SCRIPT[call[0]](*call[1:])


def test_the_example_prints_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    match = re.search(
        r"printf '(.*)' > mine.log\n(rule-runner .*)\n```\n\n```text\n(.*?)```", PAGE, re.DOTALL
    )
    assert match is not None
    Path("mine.log").write_text(match[1].replace("\\n", "\n"))
    shown = CliRunner().invoke(main, match[2].split()[1:]).stdout
    assert match[3] in shown
