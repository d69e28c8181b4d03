"""ConfigFile: the configuration of a recording, which may change during the training."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Final

from rule_core.clock import Clock
from rule_core.profiler.files.constants import CONFIG_PATH_DEFAULT
from rule_core.profiler.recording.config import RecordingConfig, read_config
from rule_core.storage.uri import is_s3

PATH_VARIABLE: Final = "SMPROFILER_CONFIG_PATH"
CHECK_S: Final = 1.0


def config_path() -> Path:
    """Return the path of this process's profiler configuration, whether or not it exists."""
    return Path(os.environ.get(PATH_VARIABLE) or CONFIG_PATH_DEFAULT)


class ConfigFile:
    """A configuration file that is read again when it changes.

    Parameters
    ----------
    path
        The file; None: `config` never changes.
    config
        A configuration instead of a file.
    clock
        The clock that limits the checks.

    Attributes
    ----------
    config
        The configuration. A relative folder is below the working folder of the beginning, which the
        script may leave.
    """

    def __init__(
        self, path: Path | None, clock: Clock, config: RecordingConfig | None = None
    ) -> None:
        self._path = path
        self._clock = clock
        self._checked_s = clock.monotonic()
        self._stamp = None if path is None else file_stamp(path)
        self._working_folder = Path.cwd()
        self.config = self._located(
            config or (RecordingConfig() if path is None else read_config(path))
        )

    def has_changed(self) -> bool:
        """Read the file if it has changed, at most once a second; return whether it has.

        Raises
        ------
        SMDebugValueError, OSError
            If its new content cannot be used; the configuration stays as it was.
        """
        now_s = self._clock.monotonic()
        if self._path is None or now_s - self._checked_s < CHECK_S:
            return False
        self._checked_s = now_s
        stamp = file_stamp(self._path)
        if stamp == self._stamp:
            return False
        self._stamp = stamp
        self.config = self._located(read_config(self._path))
        return True

    def _located(self, config: RecordingConfig) -> RecordingConfig:
        if is_s3(config.folder):
            return config
        return replace(config, folder=str(self._working_folder / config.folder))


def file_stamp(path: Path) -> tuple[int, int] | None:
    """Return the time and the size of a file; None if it does not exist."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
