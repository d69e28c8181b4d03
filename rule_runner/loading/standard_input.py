"""standard_input: what is piped to a command, as a trial."""

import os
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Thread
from typing import Final

from rule_core.format.paths import END_OF_JOB
from rule_runner.loading.private_folders import private_folder

STANDARD_INPUT: Final = "-"  # as the path of a trial
_READ_BYTES: Final = 1 << 20


@cache
def standard_input() -> str:
    """Return the folder of a trial to which standard input is copied, until this process ends."""
    folder = private_folder() / "standard-input"
    folder.mkdir()
    Thread(target=_copy, args=(sys.stdin.fileno(), folder), daemon=True).start()
    return str(folder)


def _copy(descriptor: int, folder: Path) -> None:
    """Copy a pipe up to its end, and mark that the trial has ended."""
    with suppress(OSError):  # such as a full disk, or a folder that was removed
        try:
            with (folder / "stdin.log").open("wb", buffering=0) as log:
                while data := os.read(descriptor, _READ_BYTES):
                    log.write(data)
        finally:
            (folder / END_OF_JOB).touch()
