"""Child processes: starts programs in sessions of their own, feeds them, and ends them."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO, Any, Final

PACKAGES: Final = Path(__file__).parents[1]


def module_command(module: str, *arguments: object) -> list[str]:
    """Return the command that runs a module; modules in the working folder are not found."""
    return [sys.executable, "-P", "-m", module, *map(str, arguments)]


def environment_with(
    folder: Path = PACKAGES, environ: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return an environment in which Python finds modules in a folder first.

    Parameters
    ----------
    folder
        By default that of the packages of this project.
    environ
        By default that of this process.
    """
    variables = dict(os.environ if environ is None else environ)
    paths = [str(folder), *filter(None, [variables.get("PYTHONPATH")])]
    return variables | {"PYTHONPATH": os.pathsep.join(paths)}


@contextmanager
def input_file(data: bytes) -> Iterator[IO[bytes]]:
    """Open a file with `data` as standard input: unlike a pipe, it never blocks its writer."""
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        yield file


def start(
    command: Sequence[str | Path], stdin: bytes | int = subprocess.DEVNULL, **options: Any
) -> "subprocess.Popen[bytes]":
    """Start a program in a session of its own, which signals of the terminal do not reach.

    Parameters
    ----------
    stdin
        What it reads, or as for `subprocess.Popen`.
    options
        Further options of `subprocess.Popen`.

    Raises
    ------
    OSError
        If it cannot be started.
    """
    with input_file(stdin) if isinstance(stdin, bytes) else nullcontext(stdin) as source:
        return subprocess.Popen(command, stdin=source, start_new_session=True, **options)


def start_module(
    module: str, *arguments: object, environ: Mapping[str, str] | None = None, **options: Any
) -> "subprocess.Popen[bytes]":
    """Start a module of this project, as `start` does; its output is discarded by default."""
    options = {"stdout": subprocess.DEVNULL, **options}
    return start(
        module_command(module, *arguments), env=environment_with(environ=environ), **options
    )


def end(
    process: "subprocess.Popen[bytes]", seconds: float, last_input: bytes | None = None
) -> None:
    """Wait until a process has ended after its last input, and kill it after some seconds."""
    try:
        process.communicate(last_input, seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def signal_group(group: int, number: int = signal.SIGKILL) -> None:
    """Send a signal to a process group, unless it has ended or belongs to another user."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
