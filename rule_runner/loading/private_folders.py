"""Private folders for fetched files, which are removed when this process ends."""

from pathlib import Path
from typing import Final

_FOLDERS: Final[set[Path]] = set()


def private_folder() -> Path:
    """Create a folder that only this user can enter, and that is removed when this process ends."""
    import atexit
    import tempfile

    if not _FOLDERS:
        atexit.register(remove_private_folders)
    folder = Path(tempfile.mkdtemp(prefix="rule-runner-")).resolve()
    _FOLDERS.add(folder)
    return folder


def remove_private_folders() -> None:
    """Remove all fetched files, for a process that ends without running its exit handlers."""
    if not _FOLDERS:
        return
    import shutil

    while _FOLDERS:
        shutil.rmtree(_FOLDERS.pop(), ignore_errors=True)
