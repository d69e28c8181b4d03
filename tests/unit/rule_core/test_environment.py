"""number: finite numbers of the environment, a default, and one sentence for all else."""

import pytest

from rule_core.environment import number
from rule_core.exceptions import SMDebugValueError


@pytest.mark.parametrize(
    ("environ", "found"),
    [({}, 7.0), ({"N": ""}, 7.0), ({"N": " "}, 7.0), ({"N": "0"}, 0.0), ({"N": " 1.5 "}, 1.5)],
)
def test_numbers(environ: dict[str, str], found: float) -> None:
    assert number("N", 7.0, "steps", environ) == found


@pytest.mark.parametrize("text", ["-1", "inf", "nan", "soon"])
def test_what_is_no_number(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("N", text)
    with pytest.raises(
        SMDebugValueError,
        match=rf"^The environment's N must be a number of steps >= 0, got '{text}'\.$",
    ):
        number("N", 7.0, "steps")
