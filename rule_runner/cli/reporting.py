"""reporting: maps what happened in a command to an exit code and one sentence on stderr."""

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, Final

import click

from rule_runner.errors import (
    EXIT_CLIENT,
    EXIT_INTERNAL,
    EXIT_OUTPUT,
    EXIT_USAGE,
    ClientError,
    OutputError,
    RuleRunnerError,
)
from rule_runner.logs import configure
from rule_runner.status import CLIENT_ERROR, INTERNAL_ERROR

SHADOWED: Final = (
    "ClientError: Another package named 'smdebug' stands before that of rule-runner. "
    "Run 'rule-runner doctor'."
)


def reporting(command: Callable[..., int | None]) -> Callable[..., None]:
    """Log warnings, and end a command with the exit code of what it returns or raises."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        configure(0)
        try:
            code = command(*args, **kwargs) or 0
        except RuleRunnerError as err:
            from rule_runner.show import printable  # noqa: PLC0415 - only when it is needed

            code, prefix = _fault(err)
            click.echo(prefix + printable(err), err=True)
        except (click.exceptions.Exit, click.ClickException, click.Abort, BrokenPipeError):
            raise
        except Exception as err:  # noqa: BLE001 - our own bug, and the last place to say so
            if isinstance(err, ImportError) and (err.name or "").startswith("smdebug"):
                click.echo(SHADOWED, err=True)
                sys.exit(EXIT_CLIENT)
            import structlog  # noqa: PLC0415 - see `configure`

            structlog.get_logger().exception("internal_error")
            click.echo(INTERNAL_ERROR, err=True)
            code = EXIT_INTERNAL
        sys.exit(code)

    return run


def _fault(err: RuleRunnerError) -> tuple[int, str]:
    """Return the exit code of an error, and what its sentence begins with."""
    if isinstance(err, ClientError):
        return EXIT_CLIENT, CLIENT_ERROR
    return (EXIT_OUTPUT, "") if isinstance(err, OutputError) else (EXIT_USAGE, "Error: ")
