"""TensorBoardWriter: writes saved tensors as scalars and histograms that TensorBoard shows."""

import os
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from rule_core.format.summary_encoder import summary_record, version_record
from rule_core.modes import ModeKeys
from rule_core.saving.tensor_adapter import Array
from rule_core.storage.uri import is_s3, open_output

_NUMBERS: Final = "biufV"  # kinds of types; V are bfloat16 and those of 8 bits


class TensorBoardWriter:
    """Writes one event file for each mode: in `folder`, or below it in a folder of the mode's name.

    Local files grow with each step; in S3 they appear when the writer is closed.

    Parameters
    ----------
    folder
        A folder or ``s3://bucket/prefix``.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._writes: dict[ModeKeys, Callable[[bytes], Any]] = {}
        self._closes: list[Callable[[], None]] = []

    def add(
        self,
        step: int,
        mode: ModeKeys,
        wall_time: float,
        arrays: Iterable[tuple[str, Array]],
        histograms: Mapping[str, Array],
    ) -> None:
        """Write the arrays of one element as scalars, and histograms of the other tensors.

        Parameters
        ----------
        step
            The global step.
        arrays, histograms
            Tensors by name; what is not numbers is left out.
        """
        scalars = {name: array for name, array in arrays if array.size == 1 and _has_numbers(array)}
        several = {
            name: array
            for name, array in histograms.items()
            if name not in scalars and array.size and _has_numbers(array)
        }
        if scalars or several:
            write = self._writes.get(mode) or self._open(mode, wall_time)
            write(summary_record(step, wall_time, scalars, several))

    def _open(self, mode: ModeKeys, wall_time: float) -> Callable[[bytes], Any]:
        """Begin the file of a mode."""
        key = event_file_name(time.time())
        if mode is not ModeKeys.GLOBAL:
            key = f"{mode.name}/{key}"
        write: Callable[[bytes], Any]
        if is_s3(self._folder):
            remote = open_output(self._folder).open(key)
            write, close = remote.write, remote.publish
        else:
            path = Path(self._folder, key).expanduser()
            path.parent.mkdir(parents=True, exist_ok=True)
            local = path.open("xb", buffering=0)
            write, close = local.write, local.close
        self._closes.append(close)
        self._writes[mode] = write
        write(version_record(wall_time))
        return write

    def close(self) -> None:
        """Close the files."""
        while self._closes:
            self._closes.pop()()
        self._writes.clear()


def event_file_name(now: float) -> str:
    """Return the name of a new event file, by which TensorBoard recognizes and sorts it."""
    return f"events.out.tfevents.{int(now)}.rule-runner.{os.getpid()}"


def _has_numbers(array: Array) -> bool:
    return array.dtype.kind in _NUMBERS
