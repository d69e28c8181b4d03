"""Trials that hooks wrote, taken apart by hand; and outputs that block or fail on request."""

import errno
import json
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from memory_store import MemoryOutput, MemoryPendingFile

from smdebug.core.hook import Hook
from smdebug.core.save_config import SaveConfig
from smdebug.trials import Trial, create_trial

ALWAYS = SaveConfig(save_interval=1)
ONES = np.ones(2, np.float32)


def hook(root: Path, **options: Any) -> Hook:
    """Return a hook that saves at every step and raises, by default."""
    settings: dict[str, Any] = {"save_config": ALWAYS, "on_error": "raise"}
    return Hook(root, **settings | options)


def opened(root: Path) -> Trial:
    """Open a trial without any waiting."""
    return create_trial(root, timeout=0)


def indexes(root: Path, worker: str = "worker_0") -> dict[int, dict[str, Any]]:
    """Return the index files of a worker by step."""
    paths = sorted(root.glob(f"index/*/*_{worker}.json"))
    return {int(path.name[:12]): json.loads(path.read_text()) for path in paths}


def records(root: Path, worker: str = "worker_0") -> dict[int, list[str]]:
    """Return the names of a worker's records by step, in the order of the file."""
    return {
        step: [record["tensorname"] for record in index["tensor_payload"]]
        for step, index in indexes(root, worker).items()
    }


def collections(root: Path, worker: str = "worker_0") -> dict[str, Any]:
    """Return a worker's collections as they stand in its file."""
    path = root / f"collections/000000000/{worker}_collections.json"
    document: dict[str, Any] = json.loads(path.read_text())["collections"]
    return document


def members(root: Path, worker: str = "worker_0") -> dict[str, list[str]]:
    """Return the members of a worker's collections that have any."""
    members = {
        name: collection["tensor_names"] for name, collection in collections(root, worker).items()
    }
    return {name: names for name, names in members.items() if names}


def files(root: Path) -> list[str]:
    """Return all files below a folder."""
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


class ToldOutput(MemoryOutput):
    """Keeps the order in which files are published, and calls `before` ahead of each writing."""

    def __init__(self, before: Callable[[str], object] = str) -> None:
        self.content: dict[str, bytes] = {}
        super().__init__(self.content)
        self.before = before
        self.published: list[str] = []
        self.discarded: list[str] = []

    def open(self, key: str) -> "ToldDraft":
        """Begin a file."""
        return ToldDraft(self, key)


class ToldDraft(MemoryPendingFile):
    """A draft of a `ToldOutput`."""

    def __init__(self, output: ToldOutput, key: str) -> None:
        super().__init__(output.content, key)
        self.output, self.key = output, key

    def write(self, *parts: bytes | memoryview) -> None:
        """Append bytes, after `before`."""
        self.output.before(self.key)
        super().write(*parts)

    def publish(self) -> None:
        """Give the file its key, and note it."""
        super().publish()
        self.output.published.append(self.key)

    def discard(self) -> None:
        """Forget the bytes, and note it."""
        super().discard()
        self.output.discarded.append(self.key)


class Gate:
    """Stops the writing of event files until it is opened."""

    def __init__(self) -> None:
        self.reached, self.opened = threading.Event(), threading.Event()

    def __call__(self, key: str) -> None:
        """Wait for the gate, if `key` is an event file."""
        if key.startswith("events/"):
            self.reached.set()
            if not self.opened.wait(60):
                msg = "Nobody opened the gate."
                raise AssertionError(msg)


class Full:
    """Lets so many event files be begun; then the disk is full."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.begun: set[str] = set()

    def __call__(self, key: str) -> None:
        """Raise, if `key` is one event file too many."""
        if key.startswith("events/"):
            self.begun.add(key)
            if len(self.begun) > self.room:
                raise OSError(errno.ENOSPC, "No space left on device", key)


def values(trial: Trial, name: str) -> Mapping[int, list[Any]]:
    """Return the values of a tensor by step, as lists."""
    tensor = trial.tensor(name)
    return {step: tensor.value(step).tolist() for step in tensor.steps()}
