"""doctor: prints problems of the installation or of a trial, with remedies."""

from collections.abc import Iterator

from rule_core.sources.options import DEFAULT, SourceOptions
from rule_runner.commands.doctor.checks import Diagnosis, Grade, wrong
from rule_runner.commands.doctor.installation import examine_installation
from rule_runner.errors import counted


def run_doctor(path: str | None, sources: SourceOptions = DEFAULT) -> int:
    """Print all diagnoses; return 1 if there is a problem, otherwise 0."""
    problems = 0
    for check in _checks(path, sources):
        _print(check)
        problems += check.grade is Grade.WRONG
    print(f"{counted(problems, 'problem') if problems else 'No problems'} found.")
    return 1 if problems else 0


def _checks(path: str | None, sources: SourceOptions) -> Iterator[Diagnosis]:
    """Examine the installation, and a trial if the installation allows it."""
    yield from examine_installation()
    if path is None:
        return
    try:
        from rule_runner.commands.doctor.trial import examine_trial
    except ImportError as err:
        yield wrong(
            "The trial was not examined: this installation cannot read trials "
            f"({type(err).__name__}). Repair it first."
        )
    else:
        yield from examine_trial(path, sources)


def _print(check: Diagnosis) -> None:
    from rich.console import Console
    from rich.text import Text

    style = {Grade.OK: "green", Grade.WARNING: "yellow", Grade.WRONG: "bold red"}[check.grade]
    Console().print(Text.assemble((check.grade.value, style), ": ", check.text), soft_wrap=True)
