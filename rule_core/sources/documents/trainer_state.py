"""Reader of ``trainer_state.json``: the log history of Hugging Face's Trainer."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, Final

from rule_core.reading.source_record import SourceRecord
from rule_core.sources.documents.document_source import (
    DocumentError,
    DocumentSource,
    IncompleteDocumentError,
    Row,
    Rows,
)
from rule_core.sources.format import Recognized, SourceFolder
from rule_core.sources.options import SourceOptions
from rule_core.sources.rows.json_lines import decoded, flattened
from rule_core.sources.rows.row_fields import field_role, to_number, to_step
from rule_core.storage.base import TrialStore

KIND: Final = "trainer-state"
NAME: Final = "trainer_state.json"
SUMMARY: Final = "train_runtime"  # in the entry that sums up a training
WATCHED: Final = 4  # checkpoints with the largest steps
_CHECKPOINT: Final = re.compile(r"(?:.*/)?checkpoint-([0-9]{1,15})/.*")
_LFS: Final = b"version https://git-lfs.github.com/spec/"
_STOPPED: Final = ("stateful_callbacks", "TrainerControl", "args", "should_training_stop")
_FILTERED: Final = (
    "By default, the Trainer replaces NaN and infinite losses in its log (logging_nan_inf_filter), "
    "so a finite loss proves nothing: gradient norms and weights show them."
)


class TrainerStateSource(DocumentSource):
    """Reads the log of one training from the newest of its state files.

    The Trainer writes one into each ``checkpoint-<step>`` folder, with all entries so far, and
    `Trainer.save_state` one into the output folder. At first the file with the largest step is
    read; later, the latest one that was written.
    """

    def __init__(self, store: TrialStore, recognized: Recognized, options: SourceOptions) -> None:
        super().__init__(store, recognized, options)
        self.description += f". {_FILTERED.removesuffix('.')}"
        self._progress: dict[str, tuple[float, bool]] = {}  # the step, and whether it is the last
        self._digests: list[int] = []  # of the entries that were delivered
        self._last: dict[str, int] = {}  # the last step of each name in this segment
        self._has_ended: bool | None = None
        self._is_unfiltered = False  # whether a loss is not finite

    def has_ended(self) -> bool | None:
        """Return True if the training has stopped; None if not, since it may have crashed."""
        return self._has_ended

    def keys(self) -> Sequence[str]:
        """Return the state of the output folder, and those of the largest steps."""
        folder = self.key.removesuffix(NAME)
        names = [key.removeprefix(folder) for key in self.store.list_keys(f"{folder}checkpoint-")]
        states = _by_step([name for name in names if name.endswith(f"/{NAME}")])
        keys = [key for key in self.store.list_keys(self.key) if key == self.key]
        return [*keys, *(folder + name for name in states[:WATCHED])] or [self.key]

    def rows(self, data: bytes, key: str, *, is_last: bool) -> Rows:
        """Return the entries of a state; see `DocumentSource`."""
        del is_last
        if data.startswith(_LFS):
            raise DocumentError("it is a Git LFS pointer; run git lfs pull in its repository")
        state = decoded(data.decode("utf-8", "replace"))
        if state is None:
            raise IncompleteDocumentError(f"it is not complete JSON ({len(data)} bytes)")
        entries = state.get("log_history") if isinstance(state, dict) else None
        if not isinstance(entries, list):
            raise DocumentError(
                "it has no log_history: the Trainer of transformers did not write it"
            )
        step, end = (to_number(state.get(name)) or 0.0 for name in ("global_step", "max_steps"))
        self._progress[key] = step, step >= end > 0 or _was_stopped(state)
        return [tuple(flattened(entry)) for entry in entries if isinstance(entry, dict)]

    def _deliver(self, record: SourceRecord) -> None:
        """Pass on the entries of the newest state that differ from those before."""

        def age(key: str) -> tuple[float, float]:
            return self._statuses[key].modified if self._digests else 0.0, self._progress[key][0]

        readable = [key for key in self._statuses if self._documents.get(key)]
        if not readable:
            return
        newest = max(readable, key=age)
        entries = [*self._documents[newest]]
        digests = [hash(repr(sorted(entry))) for entry in entries]
        pairs = zip(digests, self._digests, strict=False)
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        if same < len(self._digests):
            if same == len(digests):  # an earlier checkpoint
                return
            record.begin_segment()  # the training was resumed before the last entry
            self._last.clear()
        self._digests = digests
        self._has_ended = self._progress[newest][1] or None
        for entry in entries[same:]:
            self._add(entry, record)

    def _add(self, entry: Row, record: SourceRecord) -> None:
        fields = dict(entry)
        if SUMMARY in fields:
            return
        step = to_step("step", fields.get("step"), "entries")
        if isinstance(step, str):
            record.problem(step, f"{self.key}: log_history")
            return
        values = {
            name: value_number
            for name, value in entry
            if field_role(name) is None and (value_number := to_number(value)) is not None
        }
        for name in [name for name in values if self._last.get(name) == step]:
            del values[name]  # evaluated once more after the training
            problem = f"Step {step} occurs more than once; its first value counts."
            record.problem(problem, f"{self.key}: {name}")
        self._last.update(dict.fromkeys(values, step))
        record.row(step, values)
        self._is_unfiltered |= not math.isfinite(values.get("loss", 0.0))
        record.caveat = "" if self._is_unfiltered else _FILTERED


def _was_stopped(state: Mapping[str, Any]) -> bool:
    """Return whether a callback has stopped the training, such as EarlyStoppingCallback."""
    field: Any = state
    for name in _STOPPED:
        field = field.get(name) if isinstance(field, dict) else None
    return field is True


def _by_step(names: Sequence[str]) -> list[str]:
    """Return the names of checkpoints and of files in them, those with large steps first."""
    steps = {name: int(match[1]) for name in names if (match := _CHECKPOINT.fullmatch(name))}
    return sorted(steps, key=steps.__getitem__, reverse=True)


class _TrainerStateFormat:
    """Recognises output folders of the Trainer."""

    kind: Final = KIND

    def recognize(self, folder: SourceFolder) -> Iterator[Recognized]:
        """Yield the state of an output folder; see `SourceFormat`.

        A checkpoint folder belongs to its output folder, unless it is the root.
        """
        if _CHECKPOINT.fullmatch(folder.key):
            return
        reason = "it has the name of the state of Hugging Face's Trainer"
        if NAME not in folder.names:
            names = _by_step(folder.names)[:WATCHED]
            name = next((name for name in names if NAME in folder.list_folder(name)), "")
            reason = name and f"{name}{NAME} is a state of Hugging Face's Trainer"
        if reason:
            yield Recognized(KIND, folder.key + NAME, reason)

    def open(
        self, store: TrialStore, recognized: Recognized, options: SourceOptions
    ) -> TrainerStateSource:
        """Return the reader of a state; see `SourceFormat`."""
        return TrainerStateSource(store, recognized, options)


FORMAT: Final = _TrainerStateFormat()
