"""SystemFiles: the system metrics of a node, a file for each minute."""

import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from rule_core.profiler.recording import layout
from rule_core.profiler.recording.sampler.readings import MetricValue

DRAFT: Final = ".tmp"
END_MARK: Final = "system/training_job_end.ts"
NODES: Final = "system/nodes.json"
_FIELDS: Final = ("Type", "Name", "Dimension", "Value", "NodeId", "Timestamp")
_MINUTE_S: Final = 60
_US: Final = 1_000_000


class SystemFiles:
    """Writes samples; a file becomes visible when its minute is over.

    A draft that a killed sampler of this node has left is completed first.

    Parameters
    ----------
    folder
        Folder or S3 address of the recording.
    node
        Number of the node, from 1.

    Raises
    ------
    OSError
        From this and all methods, if the folder cannot be written.
    """

    def __init__(self, folder: str, node: int) -> None:
        self._is_remote = folder.strip().lower().startswith("s3")
        self._folder = folder
        self._root = Path(tempfile.mkdtemp(prefix="rule-runner-") if self._is_remote else folder)
        self._node = node
        self._key = ""
        self._minute = 0
        self._file = -1
        for draft in sorted(self._root.glob(f"{layout.SYSTEM_FOLDER}/*/*.algo-{node}.json{DRAFT}")):
            self._complete(draft)

    def add(self, time_us: int, readings: Sequence[MetricValue]) -> None:
        """Append the values of a moment, in epoch microseconds."""
        minute = time_us // _US // _MINUTE_S
        if minute != self._minute or not self._key:
            self.close()
            # Readers take the time in the name for that of the first sample.
            key = layout.system_key(time_us // _US, self._node)
            self._minute = minute
            path = self._draft(key)
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            self._key = key
        node, seconds = f"algo-{self._node}", time_us / _US
        samples = ((*reading[:3], round(reading.value, 4), node, seconds) for reading in readings)
        documents = (dict(zip(_FIELDS, sample, strict=True)) for sample in samples)
        lines = "".join(f"{json.dumps(document)}\n" for document in documents).encode()
        while lines:
            lines = lines[os.write(self._file, lines) :]

    def close(self) -> None:
        """Make the current file visible."""
        if self._key:
            key, self._key = self._key, ""
            os.close(self._file)
            self._publish(key)

    def end(self) -> None:
        """Mark the end of the recording."""
        self.close()
        self._write(END_MARK, b"")

    def name_node(self, host: str) -> None:
        """Record the name of this node's host."""
        path = self._root / NODES
        nodes: object = None
        with suppress(OSError, ValueError):
            nodes = json.loads(path.read_text())
        others = nodes if isinstance(nodes, dict) else {}
        self._write(NODES, json.dumps({**others, f"algo-{self._node}": host}).encode())

    def remove_end_mark(self) -> None:
        """Forget that an earlier recording in this folder has ended."""
        if not self._is_remote:
            (self._root / END_MARK).unlink(missing_ok=True)

    def discard_staging(self) -> None:
        """Remove the temporary folder of a recording in S3."""
        if self._is_remote:
            shutil.rmtree(self._root, ignore_errors=True)

    def _draft(self, key: str) -> Path:
        return self._root / (key + DRAFT)

    def _complete(self, draft: Path) -> None:
        """Publish a draft without its last line if that is cut off."""
        content = draft.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if whole != content:
            draft.write_bytes(whole)
        self._publish(draft.relative_to(self._root).as_posix().removesuffix(DRAFT))

    def _publish(self, key: str) -> None:
        """Give a draft its name; lines of an earlier sampler in the same minute stay first."""
        draft, final = self._draft(key), self._root / key
        if not draft.exists():  # the training has cleared its folders
            return
        if final.exists():
            with final.open("ab") as file:
                file.write(draft.read_bytes())
            draft.unlink()
        else:
            draft.replace(final)
        if self._is_remote:
            self._upload(key, final.read_bytes())
            final.unlink()

    def _write(self, key: str, content: bytes) -> None:
        if self._is_remote:
            self._upload(key, content)
            return
        path = self._root / key
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f"{path.name}.{os.getpid()}{DRAFT}")
        draft.write_bytes(content)
        draft.replace(path)

    def _upload(self, key: str, content: bytes) -> None:
        from rule_core.storage.publish import publish
        from rule_core.storage.uri import open_output

        publish(open_output(self._folder), key, content)
