"""recorded_traces: the traces of torch.profiler that a hook recorded beside its timelines."""

import re
from itertools import islice
from typing import Final, NamedTuple

from rule_core.storage.base import ObjectNotFoundError, TrialStore

FOLDERS: Final = ("kineto/", "framework/pytorch/kineto/")
MOST_KEYS: Final = 10_000  # of each folder
_KEY: Final = re.compile(r".*/(\d{9,})/([^/]+)_(\d{10,19})_(\d{10,19})\.pt\.trace\.json(?:\.gz)?")


class RecordedTrace(NamedTuple):
    """A trace of one step on one node; times are microseconds since the epoch."""

    start_us: int
    end_us: int
    step: int
    node: str
    key: str


def recorded_traces(store: TrialStore) -> list[RecordedTrace]:
    """Return the traces in a recording by their start, at most `MOST_KEYS` of each folder.

    Raises
    ------
    StorageUnavailableError
        If the store is unavailable.
    """
    traces = []
    for folder in FOLDERS:
        try:
            for key in islice(store.list_keys(folder), MOST_KEYS):
                if match := _KEY.fullmatch(key):
                    step, node, start, end = match.groups()
                    traces.append(RecordedTrace(int(start), int(end), int(step), node, key))
        except ObjectNotFoundError:
            continue
    return sorted(traces)
