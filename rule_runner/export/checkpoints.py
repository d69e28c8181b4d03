"""SafetensorsExport: tensors as checkpoints, a folder for each step.

The header is written by hand: the package `safetensors` takes all tensors of a file at once, while
this writes them one after another, and the format is eight bytes of length, JSON and the numbers.
"""

import json
import shutil
import struct
import tempfile
from pathlib import Path
from typing import IO, Any, Final

import numpy as np

from rule_core.model.segments import segment_of
from rule_core.modes import ModeKeys
from rule_runner.export.saved_parts import SavedPart

TYPES: Final = {"bool": "BOOL", "bfloat16": "BF16"} | {
    f"{kind}{bits}": f"{kind[0].upper()}{bits}"
    for kind, sizes in (
        ("int", (8, 16, 32, 64)),
        ("uint", (8, 16, 32, 64)),
        ("float", (16, 32, 64)),
    )
    for bits in sizes
}
_LENGTH: Final = struct.Struct("<Q")
_ALIGNMENT: Final = 8


class SafetensorsExport:
    """Writes ``checkpoint-STEP/model.safetensors`` for each step that has tensors."""

    def __init__(self, output: Path) -> None:
        output.mkdir()
        self._output = output
        self._step = -1
        self._header: dict[str, dict[str, Any]] = {}
        self._data: IO[bytes] | None = None

    def add(self, saved: SavedPart) -> bool:
        """Add the tensors of a step to its checkpoint."""
        if saved.step != self._step:
            self._finish()
            self._step = saved.step
        was_added = False
        for name, array in saved.arrays():
            reason = _reason(saved, array)
            if reason:
                saved.omissions.add(name, reason)
                continue
            self._write(self._free_name(saved, name), array)
            was_added = True
        return was_added

    def _free_name(self, saved: SavedPart, name: str) -> str:
        """Return a name that the checkpoint does not have yet."""
        if name in self._header and saved.mode is not ModeKeys.GLOBAL:
            name = f"{saved.mode.name.lower()}/{name}"
        return f"{name}/{saved.worker}" if name in self._header else name

    def _write(self, name: str, array: Any) -> None:
        if self._data is None:
            self._data = tempfile.TemporaryFile(dir=self._output)  # noqa: SIM115 - until it is finished
        start = self._data.tell()
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        self._data.write(np.ascontiguousarray(little).reshape(-1).view(np.uint8).data)
        self._header[name] = {
            "dtype": TYPES[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [start, self._data.tell()],
        }

    def _finish(self) -> None:
        """Write the header and the data of the last step, and publish the file."""
        if self._data is None:
            return
        header = json.dumps(self._header, separators=(",", ":")).encode()
        header += b" " * (-len(header) % _ALIGNMENT)
        folder = self._output / f"checkpoint-{self._step}"
        folder.mkdir()
        with (folder / "model.safetensors").open("xb") as file, self._data as data:
            file.write(_LENGTH.pack(len(header)) + header)
            data.seek(0)
            shutil.copyfileobj(data, file, 1 << 20)
        self._header, self._data = {}, None

    def close(self) -> None:
        """Write the last checkpoint."""
        self._finish()


def _reason(saved: SavedPart, array: Any) -> str:
    """Return why an array is left out; "" if it is not."""
    if segment_of(saved.step):
        return "its step is repeated after a resume, and a checkpoint has only one"
    if array.dtype.name not in TYPES:
        return f"safetensors has no type for {'text' if array.dtype.kind in 'SUO' else array.dtype}"
    if array.size <= 1:
        return "it is a single number; export it to csv, jsonl or tensorboard"
    return ""
