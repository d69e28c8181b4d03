"""lines_with_numbers: the lines that may be rows, and no others."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rule_core.sources.text import number_lines
from rule_core.sources.text.number_lines import NOT_FINITE, lines_with_numbers

STAMP = "2026-05-01 12:00:01"
WORDS = ["loss", "nan", "NaN", "inf", "Infinity", "info", "banana", "nano", "7", "|", "é", "½", ""]


def found(text: str) -> list[str]:
    return [text[start:end] for start, end in lines_with_numbers(text)]


@given(
    st.lists(st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join), max_size=20),
    st.integers(1, 40),
)
@example(["nan", "a"], 1)
@example(["a", "inf"], 5)
def test_lines_are_those_that_a_pattern_finds_in_each(lines: list[str], block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(number_lines, "BLOCK", block)
        expected = [line for line in lines if re.search(rf"[0-9|]|{NOT_FINITE}", line)]
        assert found("\n".join(lines)) == found("\n".join(lines) + "\n") == expected


@pytest.mark.parametrize(
    ("line", "is_found"),
    [
        (f"{STAMP} loading", False),
        (f"{STAMP},123 INFO | loading", False),
        (f"[{STAMP.replace(' ', 'T')}.123456Z] INFO: loading", False),
        ("INFO 2026/05/01 12:00:01 info", False),
        (f"{STAMP} loss nan", True),
        (f"{STAMP} step 1", True),
        (f"step 1 at {STAMP}", True),
        (f"| {STAMP} | a |", True),
        ("2026-05-01 loading", True),
    ],
)
def test_a_time_is_no_number(line: str, is_found: bool) -> None:
    assert found(f"start\n{line}\nend") == [line] * is_found
