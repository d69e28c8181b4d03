"""step_range: a range of steps as options name it."""

from rule_runner.errors import UsageError


def step_range(text: str, option: str) -> tuple[int, int]:
    """Return the first step of ``9:12`` or ``9``, and the step after the last.

    Raises
    ------
    UsageError
        If an option is neither.
    """
    first, colon, last = text.partition(":")
    try:
        start = parse_step(first)
        end = parse_step(last) if colon else start + 1
    except ValueError as err:
        msg = f"Option {option} must be a step, or FIRST:LAST without the last, got {text!r}."
        raise UsageError(msg) from err
    return start, end


def parse_step(text: str) -> int:
    """Return a step; raise `ValueError` if it is none."""
    step = int(text)
    if step < 0:
        raise ValueError
    return step
