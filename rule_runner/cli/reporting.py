"""The exit code, the error message and the standard output of a command."""

import fcntl
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial, wraps
from typing import Any, Final, TextIO

import click

from rule_runner import errors
from rule_runner.logs import configure, get_logger
from rule_runner.results.status import INTERNAL_ERROR

_ERROR: Final = "Error: "
SHADOWED: Final = (
    "The package 'smdebug' of rule-runner is damaged, or another one is imported instead. Run "
    "'rule-runner doctor'."
)
_STDOUT: Final = 1
_STDERR: Final = 2


def reporting(command: Callable[..., int | None], level: int = 0) -> Callable[..., None]:
    """Log warnings, and end a command with the exit code of its result or error.

    Parameters
    ----------
    level
        -1: only errors are logged; 1: messages too.
    """

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        configure(level)
        try:
            code = command(*args, **kwargs) or 0
        except errors.RuleRunnerError as err:
            from rule_runner.escape import printable

            code = err.exit_code
            click.echo(_ERROR * (code != errors.EXIT_OUTPUT) + printable(err), err=True)
        except (click.exceptions.Exit, click.ClickException, click.Abort, BrokenPipeError):
            raise
        except Exception as err:  # noqa: BLE001 - our own bug, and the last place to say so
            from rule_runner.file_descriptors import exhausted

            is_shadowed = isinstance(err, ImportError) and (err.name or "").startswith("smdebug")
            if known := SHADOWED if is_shadowed else exhausted(err):
                click.echo(_ERROR + known, err=True)
                sys.exit(errors.EXIT_CLIENT)
            get_logger(__name__).exception("internal_error")
            click.echo(INTERNAL_ERROR, err=True)
            code = errors.EXIT_INTERNAL
        sys.exit(code)

    return run


quiet_reporting: Final = partial(reporting, level=-1)
verbose_reporting: Final = partial(reporting, level=1)


@contextmanager
def results_alone() -> Iterator[None]:
    """Reserve standard output for what is written to ``sys.stdout`` inside the block.

    File descriptor 1 is redirected to standard error for good: native code, subprocesses, threads
    and ``atexit`` functions of rules may outlive the block. After the block, ``sys.stdout`` leads
    there too. Has no effect if ``sys.stdout`` was replaced.
    """
    stream = _reserve_stdout()
    if stream is None:
        yield
        return
    redirected, sys.stdout = sys.stdout, stream
    try:
        yield
    finally:
        sys.stdout = redirected
        stream.close()


def _reserve_stdout() -> TextIO | None:
    """Redirect descriptor 1 to standard error; return a stream to the original standard output."""
    stdout = sys.stdout
    with suppress(AttributeError, OSError, ValueError):  # closed, or not a file
        if stdout.fileno() == _STDOUT:
            stdout.flush()
            descriptor = fcntl.fcntl(_STDOUT, fcntl.F_DUPFD_CLOEXEC, _STDERR + 1)
            os.dup2(_STDERR, _STDOUT)
            return os.fdopen(descriptor, "w", encoding=stdout.encoding, errors=stdout.errors)
    return None
