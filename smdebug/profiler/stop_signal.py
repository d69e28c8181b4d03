"""StopSignal: the file by which the platform tells profiler rules that their job is over."""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from smdebug.environment import number
from smdebug.storage.local import LocalStore
from smdebug.storage.protocol import (
    ByteRange,
    ObjectNotFoundError,
    StorageUnavailableError,
    TrialStore,
)

ENV_STOP_SIGNAL: Final = "SAGEMAKER_ENV_RULE_STOP_SIGNAL_FILE"
ENV_GRACE: Final = "rule_stop_grace_time_secs"
GRACE_S: Final = 60.0
_LONGEST: Final = 100  # bytes; a time stamp has ten


class StopSignal:
    """Files, one of which says when it was written: so long after it the job is over.

    Parameters
    ----------
    files
        Of this machine.
    grace_s
        How many seconds after the time in it a file counts.
    store, key
        A file of a trial that is elsewhere; without a key there is none.
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
        """Return the file that the environment names, below a trial's root or absolute.

        Raises
        ------
        SMDebugValueError
            If the grace time is no number >= 0.
        """
        place, grace_s = (
            environ.get(ENV_STOP_SIGNAL, "").strip(),
            number(ENV_GRACE, GRACE_S, "seconds", environ),
        )
        if not place:
            return cls((), grace_s)
        if isinstance(store, LocalStore):
            return cls((store.root / place,), grace_s)
        if Path(place).is_absolute():
            return cls((Path(place),), grace_s)
        return cls((), grace_s, store, os.path.normpath(place))

    def is_given(self, now_s: float) -> bool:
        """Say whether the job is to be taken as over at a time in seconds since the epoch.

        A file that is there and cannot be understood counts at once.

        Raises
        ------
        StorageUnavailableError
            If the store cannot be asked now.
        """
        return any(self._says_so(read, now_s) for read in self._reads)

    def _says_so(self, read: Callable[[], bytes], now_s: float) -> bool:
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
    with file.open("rb") as opened:
        return opened.read(_LONGEST)
