"""doctor: says what is wrong with the installation, or with a trial, and what to do about it."""

from collections.abc import Iterator

from rule_runner.diagnosis import Check, Grade, wrong
from rule_runner.doctor_installation import examine_installation


def run_doctor(path: str | None) -> int:
    """Print what was looked at; return 0 if nothing is wrong, else 1."""
    faults = 0
    for check in _checks(path):
        _print(check)
        faults += check.grade is Grade.WRONG
    summary = f"{faults} thing{'s are' if faults > 1 else ' is'} wrong." if faults else ""
    print(summary or "Nothing is wrong.")  # noqa: T201 - stdout carries results
    return 1 if faults else 0


def _checks(path: str | None) -> Iterator[Check]:
    yield from examine_installation()
    if path is not None:
        yield from _trial(path)


def _trial(path: str) -> Iterator[Check]:
    """Examine a trial, if this installation is able to."""
    try:
        from rule_runner.doctor_trial import examine_trial  # noqa: PLC0415
    except ImportError as err:
        yield wrong(
            "The trial was not examined: this installation cannot read trials "
            f"({type(err).__name__}). Mend it first."
        )
        return
    yield from examine_trial(path)


def _print(check: Check) -> None:
    from rich.console import Console  # noqa: PLC0415 - not for the help
    from rich.text import Text  # noqa: PLC0415

    style = {Grade.OK: "green", Grade.WARNING: "yellow", Grade.WRONG: "bold red"}[check.grade]
    Console().print(Text.assemble((check.grade.value, style), ": ", check.text), soft_wrap=True)
