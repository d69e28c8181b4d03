"""StopSignal: the file with which the platform stops profiler rules."""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from rule_core.environment import number
from rule_core.storage.base import (
    ByteRange,
    ObjectNotFoundError,
    StorageUnavailableError,
    TrialStore,
)
from rule_core.storage.local import LocalStore

ENV_STOP_SIGNAL: Final = "SAGEMAKER_ENV_RULE_STOP_SIGNAL_FILE"
ENV_GRACE: Final = "rule_stop_grace_time_secs"
GRACE_S: Final = 60.0
_LONGEST: Final = 100  # bytes; a timestamp has ten


class StopSignal:
    """Files with the time of their writing; the job is over a grace time after it.

    Parameters
    ----------
    files
        Files on this machine.
    grace_s
        Seconds between the time in a file and the end of the job.
    store, key
        A file in the store of a remote trial; none without a key.
    """

    def __init__(
        self,
        files: Sequence[Path] = (),
        grace_s: float = GRACE_S,
        store: TrialStore | None = None,
        key: str = "",
    ) -> None:
        self.files = tuple(files)
        self.grace_s = grace_s
        self._reads: list[Callable[[], bytes]] = [partial(_content, file) for file in files]
        if store is not None and key:
            self._reads.append(lambda: bytes(store.read(key, ByteRange(0, _LONGEST))))

    @classmethod
    def from_environment(
        cls, store: TrialStore, environ: Mapping[str, str] = os.environ
    ) -> "StopSignal":
        """Create a stop signal for the file in the environment, relative to the trial or absolute.

        Raises
        ------
        SMDebugValueError
            If the grace time is not a number >= 0.
        """
        path = environ.get(ENV_STOP_SIGNAL, "").strip()
        grace_s = number(ENV_GRACE, GRACE_S, "seconds", environ)
        if not path:
            return cls((), grace_s)
        if isinstance(store, LocalStore):
            return cls((store.root / path,), grace_s)
        if Path(path).is_absolute():
            return cls((Path(path),), grace_s)
        return cls((), grace_s, store, os.path.normpath(path))

    def is_given(self, now_s: float) -> bool:
        """Return whether the job is over at a time in seconds since the epoch.

        A file without a valid time ends the job at once.

        Raises
        ------
        StorageUnavailableError
            If the store is temporarily unavailable.
        """
        return any(self._is_due(read, now_s) for read in self._reads)

    def _is_due(self, read: Callable[[], bytes], now_s: float) -> bool:
        try:
            return now_s > int(read()) + self.grace_s
        except (FileNotFoundError, ObjectNotFoundError):
            return False
        except StorageUnavailableError as err:
            if err.transient:
                raise
        except (OSError, ValueError):
            pass
        return True


def _content(file: Path) -> bytes:
    with file.open("rb") as stream:
        return stream.read(_LONGEST)
