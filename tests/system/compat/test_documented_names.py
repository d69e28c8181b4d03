"""The table of docs/compatibility.md: what the documents name exists, with its parameters."""

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

DOCUMENT = Path(__file__).parents[3] / "docs" / "compatibility.md"
TITLE = "\n## What the documents name\n"
ROW = re.compile(
    r"^\| `([\w.]+)(?:\((.*?)\))?` \| (works|differs|absent) \| (.*) \|$", re.MULTILINE
)
ROWS = ROW.findall(DOCUMENT.read_text(encoding="utf-8").partition(TITLE)[2])


def resolve(path: str) -> Any:
    """Return what a dotted path names: a module, class, function or member."""
    parts = path.split(".")
    for end in range(len(parts), 0, -1):
        try:
            value: Any = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            value = getattr(value, part)
        return value
    raise ModuleNotFoundError(path)


def test_the_table_has_every_row() -> None:
    section = DOCUMENT.read_text(encoding="utf-8").partition(TITLE)[2].partition("\n## ")[0]
    assert len(ROWS) == sum(line.startswith("| `") for line in section.splitlines()) > 100
    assert [name for name, _, state, reason in ROWS if state != "works" and not reason] == []


@pytest.mark.parametrize(("name", "parameters", "state"), [row[:3] for row in ROWS])
def test_a_documented_name_is_as_the_table_says(name: str, parameters: str, state: str) -> None:
    if state == "absent":
        with pytest.raises((AttributeError, ModuleNotFoundError)):
            resolve(name)
        return
    target = resolve(name)
    if parameters:
        accepted = inspect.signature(target).parameters
        assert [one for one in parameters.split(", ") if one not in accepted] == []
