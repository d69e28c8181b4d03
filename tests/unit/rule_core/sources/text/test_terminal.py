"""plain_text: what a terminal showed, without what controls it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rule_core.sources.text.terminal import plain_text

BAR = "1/2 [=>] loss: 2"


@pytest.mark.parametrize(
    ("line", "visible"),
    [
        ("step 1\tloss 2", ["step 1\tloss 2"]),
        ("  \t ", []),
        ("a\rb\r\rc\r", ["a", "b", "c"]),
        ("\x1b[1;38;2;54;234;195mstep: 1\x1b[0m\x1b[K", ["step: 1"]),
        ("\x1b]0;title\x07step\x1b]8;;http://a\x1b\\ 1\x1b(B\x1b", ["step 1"]),
        ("10%\x1b[1G20%\x1b[A30%\x1b[2Jend", ["10%", "20%", "30%", "end"]),
        (BAR + "\b" * len(BAR) + "2/2", [BAR, "2/2"]),
        (BAR + "\b" * 99 + "\r" + "2/2\b\b\b", [BAR, "2/2"]),
        (BAR + "\b" * 16 + " 1/2 ", [f" 1/2 {BAR}"]),
        (BAR + "\b" * 5 + " 1/2 ", ["1/2 [=>] lo 1/2 "]),
        ("wait |\b/\b-", ["wait -"]),
        ("abc\b\bX", ["aXc"]),
        ("nul \x00 bell\x07 del\x7f next\x85", ["nul  bell del next"]),
        ("損失\u2028 1", ["損失\u2028 1"]),
    ],
)
def test_what_is_visible(line: str, visible: list[str]) -> None:
    assert plain_text(line) == visible


def test_a_long_line_of_backspaces_takes_linear_time() -> None:
    assert plain_text("a" * 500_000 + "\bx" * 500_000) == ["a" * 499_999 + "x"]


@given(st.text(st.sampled_from("ab \t\r\b\x1b[0;mGK\x00é"), max_size=30))
def test_visible_text_has_no_controls_and_is_plain_itself(line: str) -> None:
    for visible in plain_text(line):
        assert not set(visible) & set("\r\b\x1b\x00\n")
        assert plain_text(visible) == [visible]
