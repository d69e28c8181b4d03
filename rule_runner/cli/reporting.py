"""reporting: maps the outcome of a command to an exit code and one sentence on stderr."""

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, Final

import click

from rule_runner.errors import (
    EXIT_CLIENT,
    EXIT_INTERNAL,
    EXIT_OUTPUT,
    EXIT_TEMPORARY,
    EXIT_USAGE,
    ClientError,
    OutputError,
    RuleRunnerError,
    TemporaryError,
)
from rule_runner.logs import configure, get_logger
from rule_runner.results.status import INTERNAL_ERROR

_ERROR: Final = "Error: "
SHADOWED: Final = (
    "Error: The package 'smdebug' of rule-runner is damaged, or another one is imported instead. "
    "Run 'rule-runner doctor'."
)


def reporting(command: Callable[..., int | None]) -> Callable[..., None]:
    """Log warnings, and end a command with the exit code of its result or error."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        configure(0)
        try:
            code = command(*args, **kwargs) or 0
        except RuleRunnerError as err:
            from rule_runner.escape import printable

            code = _fault(err)
            click.echo(_ERROR * (code != EXIT_OUTPUT) + printable(err), err=True)
        except (click.exceptions.Exit, click.ClickException, click.Abort, BrokenPipeError):
            raise
        except Exception as err:  # noqa: BLE001 - our own bug, and the last place to say so
            if isinstance(err, ImportError) and (err.name or "").startswith("smdebug"):
                click.echo(SHADOWED, err=True)
                sys.exit(EXIT_CLIENT)
            from rule_runner.file_descriptors import exhausted

            full = exhausted(err)
            if full:
                click.echo(_ERROR + full, err=True)
                sys.exit(EXIT_CLIENT)
            get_logger(__name__).exception("internal_error")
            click.echo(INTERNAL_ERROR, err=True)
            code = EXIT_INTERNAL
        sys.exit(code)

    return run


def _fault(err: RuleRunnerError) -> int:
    """Return the exit code for an error."""
    if isinstance(err, ClientError):
        return EXIT_CLIENT
    if isinstance(err, TemporaryError):
        return EXIT_TEMPORARY
    return EXIT_OUTPUT if isinstance(err, OutputError) else EXIT_USAGE
