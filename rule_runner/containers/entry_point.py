"""The entry point of the image: drops root permanently, then runs rule-runner.

The image starts it with ``python -I``, so that neither the environment nor the working folder can
inject code into the process while it is root.
"""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NoReturn

from rule_runner.errors import ParameterError

ORDINARY: Final = 1000  # user and group of the image
HOME: Final = "/tmp"  # noqa: S108 - the ordinary user has no home folder
ROOTS_HOME: Final = "/root"
_PR_SET_NO_NEW_PRIVS: Final = 38


def main() -> NoReturn:
    """Drop root if this process has it, then become ``rule-runner`` with the same arguments.

    Signals that arrive meanwhile are blocked, and handled by ``rule-runner``. The image blocks
    them even before it imports this module.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGINT))
    if os.geteuid() == 0:
        try:
            give_up_root()
        except OSError as err:
            sys.exit(
                f"Error: This container was started as root and cannot become user {ORDINARY}: "
                f"{err.strerror}. Add --user {ORDINARY}:{ORDINARY}, or the user and group that "
                "own the output folder."
            )
    command = Path(sys.executable).with_name("rule-runner")
    try:
        os.execv(command, [command.name, *sys.argv[1:]])  # noqa: S606 - a program of this package
    except OSError as err:  # outside of the image the interpreter may be root's alone
        sys.exit(
            f"Error: User {os.geteuid()} cannot run '{command}': {err.strerror}. Use the image, or "
            "let that user read and execute the program and its interpreter."
        )


def give_up_root() -> None:
    """Give the contract's output folders to the ordinary user, and become that user.

    Raises
    ------
    OSError
        If this process lacks the capabilities for that.
    """
    mask = os.umask(0o022)  # new parents of the folders are passable
    for folder in output_folders():
        try:
            hand_over(folder)
        except PermissionError:
            raise
        except OSError:  # a link, a file, a read-only disk: the evaluation reports it
            continue
    os.umask(mask)
    # Programs that this process starts, such as ``su``, gain none.
    prctl(_PR_SET_NO_NEW_PRIVS, 1)
    os.setgroups([])
    os.setresgid(ORDINARY, ORDINARY, ORDINARY)
    os.setresuid(ORDINARY, ORDINARY, ORDINARY)
    if os.environ.get("HOME", ROOTS_HOME) == ROOTS_HOME:
        os.environ["HOME"] = HOME


def output_folders() -> Iterator[Path]:
    """Yield the contract's output folders that lie below its root and overlap no input."""
    from rule_runner.config.sagemaker_contract import JOB, MESSAGE, empty_contract, read_contract

    try:
        contract = read_contract()
    except ParameterError:  # the command reports it
        contract = empty_contract()
    root = _normal(contract.root)
    inputs = [_normal(folder) for folder in (*contract.inputs, contract.place(JOB).parent)]
    for folder in map(_normal, (contract.place(MESSAGE).parent, contract.output)):
        overlaps = any(
            folder.is_relative_to(path) or path.is_relative_to(folder) for path in inputs
        )
        if folder.is_relative_to(root) and not overlaps:
            yield folder


def hand_over(folder: Path) -> None:
    """Create the absolute path `folder` if it is missing, and change its owner.

    Follow no link in any part of the path, and leave the owners of its content alone.

    Raises
    ------
    OSError
        If a part of the path is a link or not a folder, or the owner cannot be changed.
    """
    flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(folder.anchor, flags)
    try:
        for name in folder.parts[1:]:
            with suppress(FileExistsError):
                os.mkdir(name, 0o755, dir_fd=descriptor)
            inner = os.open(name, flags, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        status = os.fstat(descriptor)
        if (status.st_uid, status.st_gid) != (ORDINARY, ORDINARY):
            os.chown(".", ORDINARY, ORDINARY, dir_fd=descriptor, follow_symlinks=False)
    finally:
        os.close(descriptor)


def _normal(path: Path) -> Path:
    """Return an absolute path without "..", and without following links."""
    return Path(os.path.normpath(path.absolute()))


def prctl(option: int, value: int) -> None:
    """Set an option of this process.

    Raises
    ------
    OSError
        If the kernel refuses.
    """
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(option, value, 0, 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


if __name__ == "__main__":
    main()
