"""Reader of ``trainer_state.json``: the log history of Hugging Face's Trainer."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import takewhile
from typing import Any, Final, NamedTuple

from rule_core.reading.source_record import SourceRecord
from rule_core.sources.format import Recognized, SourceFolder
from rule_core.sources.options import SourceOptions
from rule_core.sources.rows.json_lines import decoded, flattened
from rule_core.sources.rows.row_fields import field_role, to_number, to_step
from rule_core.storage.base import (
    FileStatus,
    ObjectNotFoundError,
    StorageUnavailableError,
    TrialStore,
)
from rule_core.storage.size_limit import check_file_size

KIND: Final = "trainer-state"
NAME: Final = "trainer_state.json"
SUMMARY: Final = "train_runtime"  # in the entry that sums up a training
WATCHED: Final = 16  # checkpoints with the largest steps
LOOKED_AT: Final = 3
_CHECKPOINT: Final = re.compile(r"checkpoint-([0-9]{1,15})/")
_STATE: Final = re.compile(_CHECKPOINT.pattern + re.escape(NAME))
_LFS: Final = b"version https://git-lfs.github.com/spec/"
_FILTERED: Final = (
    "By default, the Trainer replaces NaN and infinite losses in its log (logging_nan_inf_filter), "
    "so a finite loss proves nothing: gradient norms and weights show them."
)


class TrainerState(NamedTuple):
    """What a file says.

    Attributes
    ----------
    rows
        The entries of its log, the oldest first.
    step
        The step at which it was written; 0 if unknown.
    has_ended
        Whether the training has reached its last step, or was stopped.
    """

    rows: list[dict[str, Any]]
    step: float
    has_ended: bool


class UnreadableStateError(Exception):
    """A file of this name that cannot be read; the text says why."""


class IncompleteStateError(UnreadableStateError):
    """A file that may still be written."""


class TrainerStateSource:
    """Reads the log of one training from the newest of its state files.

    The Trainer writes one into each ``checkpoint-<step>`` folder, with all entries so far, and
    `Trainer.save_state` one into the output folder. At first the file with the largest step is
    read; later, each one that changes.
    """

    def __init__(self, store: TrialStore, recognized: Recognized) -> None:
        self.kind = recognized.kind
        self.description = f"{recognized.key}: {recognized.reason}. {_FILTERED.removesuffix('.')}"
        self._store = store
        self._key = recognized.key
        self._seen: dict[str, FileStatus] = {}
        self._incomplete: dict[str, str] = {}
        self._digests: list[int] = []  # of the entries that were given
        self._last: dict[str, int] = {}  # the last step of each name in this segment
        self._has_ended: bool | None = None
        self._is_unfiltered = False  # whether a loss is not finite

    def read_new(self, record: SourceRecord) -> bool:
        """Pass the new entries on; see `Source`."""
        changed = {
            key: status for key, status in self._watched().items() if self._seen.get(key) != status
        }
        if not changed:
            return False
        self._seen.update(changed)
        if self._digests:
            states = [(changed[key].modified, self._load(key, record)) for key in changed]
            states.sort(key=lambda item: (item[0], item[1].step if item[1] else 0))
        else:
            states = [(0.0, self._newest(list(changed), record))]
        for _, state in states:
            if state is not None:
                self._give(state, record)
        return True

    def finish(self, record: SourceRecord) -> None:
        """Report the files that are still incomplete; see `FinishingSource`."""
        for key, text in self._incomplete.items():
            record.problem(text, key)

    def has_ended(self) -> bool | None:
        """Return True if the training has stopped; None if not, since it may have crashed."""
        return self._has_ended

    def last_write(self) -> float:
        """Return when a file was last written; see `Source`."""
        return max((status.modified for status in self._seen.values()), default=0.0)

    # -- files -------------------------------------------------------------------------------

    def _watched(self) -> dict[str, FileStatus]:
        """Return the state files that may have changed, those of large steps first.

        Raises
        ------
        ObjectNotFoundError
            If there never was one.
        """
        folder = self._key.removesuffix(NAME)
        keys = self._store.list_keys(f"{folder}checkpoint-")
        names = _by_step(_STATE, (key.removeprefix(folder) for key in keys))
        statuses = {}
        for position, key in enumerate([self._key, *(folder + name for name in names)]):
            if position <= WATCHED or key not in self._seen:
                with suppress(ObjectNotFoundError):  # deleted, as old checkpoints are
                    statuses[key] = self._store.status(key)
        if not statuses and not self._seen:
            raise ObjectNotFoundError(self._key)
        return statuses

    def _newest(self, keys: list[str], record: SourceRecord) -> TrainerState | None:
        """Return the state with the largest step: that of the output folder or a checkpoint."""
        newest = self._load(self._key, record) if self._key in keys else None
        checkpoints = (self._load(key, record) for key in keys if key != self._key)
        readable = filter(None, (newest, next(filter(None, checkpoints), None)))
        return max(readable, key=lambda state: state.step, default=None)

    def _load(self, key: str, record: SourceRecord) -> TrainerState | None:
        """Return the state in a file; None, after a report, if it cannot be read."""
        self._incomplete.pop(key, None)
        try:
            check_file_size(key, self._seen[key].size)
            return read_state(bytes(self._store.read(key)))
        except ObjectNotFoundError:
            self._seen.pop(key, None)
        except IncompleteStateError as err:
            self._incomplete[key] = str(err)
        except UnreadableStateError as err:
            record.problem(str(err), key)
        except StorageUnavailableError as err:
            if err.transient:
                self._seen.pop(key, None)
                raise
            record.problem(str(err), key)
        return None

    # -- entries -----------------------------------------------------------------------------

    def _give(self, state: TrainerState, record: SourceRecord) -> None:
        """Pass on the entries that differ from those that were given."""
        digests = [hash(repr(sorted(row.items()))) for row in state.rows]
        pairs = zip(digests, self._digests, strict=False)
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        if same < len(self._digests):
            if same == len(digests):  # an earlier checkpoint
                return
            record.begin_segment()  # the training was resumed before the last entry
            self._last.clear()
        self._digests = digests
        self._has_ended = state.has_ended or None
        for row in state.rows[same:]:
            self._add(row, record)

    def _add(self, row: Mapping[str, Any], record: SourceRecord) -> None:
        if SUMMARY in row:
            return
        step = to_step("step", row.get("step"), "entries")
        if isinstance(step, str):
            record.problem(step, f"{self._key}: log_history")
            return
        values = {
            name: value_number
            for name, value in flattened(row)
            if field_role(name) is None and (value_number := to_number(value)) is not None
        }
        for name in [name for name in values if self._last.get(name) == step]:
            del values[name]  # evaluated once more after the training
            text = f"Step {step} occurs more than once; its first value counts."
            record.problem(text, f"{self._key}: {name}")
        self._last.update(dict.fromkeys(values, step))
        record.row(step, values)
        self._is_unfiltered |= not math.isfinite(values.get("loss", 0.0))
        record.caveat = "" if self._is_unfiltered else _FILTERED


def read_state(data: bytes) -> TrainerState:
    """Return what a state file says.

    Raises
    ------
    UnreadableStateError
        If it says something else, with what to do.
    """
    if data.startswith(_LFS):
        msg = "It is a Git LFS pointer instead of the file. Run git lfs pull in its repository."
        raise UnreadableStateError(msg)
    state = decoded(data.decode("utf-8", "replace"))
    if state is None:
        msg = f"It is not complete JSON ({len(data)} bytes)."
        raise IncompleteStateError(msg)
    rows = state.get("log_history") if isinstance(state, dict) else None
    if not isinstance(rows, list):
        msg = "It has no log_history: the Trainer of transformers did not write it."
        raise UnreadableStateError(msg)
    step, last_step = (to_number(state.get(name)) or 0 for name in ("global_step", "max_steps"))
    return TrainerState(
        [row for row in rows if isinstance(row, dict)],
        step,
        has_ended=step >= last_step > 0 or _was_stopped(state),
    )


def _was_stopped(state: Mapping[str, Any]) -> bool:
    """Return whether a callback has stopped the training, such as EarlyStoppingCallback."""
    field: Any = state
    for name in ("stateful_callbacks", "TrainerControl", "args", "should_training_stop"):
        field = field.get(name) if isinstance(field, dict) else None
    return field is True


def _by_step(pattern: re.Pattern[str], names: Iterable[str]) -> list[str]:
    """Return the names that match, those with large steps first."""
    steps = {name: int(match[1]) for name in names if (match := pattern.fullmatch(name))}
    return sorted(steps, key=steps.__getitem__, reverse=True)


class _TrainerStateFormat:
    """Recognises output folders of the Trainer."""

    kind: Final = KIND

    def recognize(self, folder: SourceFolder) -> Iterator[Recognized]:
        """Yield the state of an output folder; see `SourceFormat`.

        A checkpoint folder belongs to its output folder, unless it is the root.
        """
        if _CHECKPOINT.search(folder.key):
            return
        key = folder.key + NAME
        if NAME in folder.names:
            yield Recognized(KIND, key, "it has the name of the state of Hugging Face's Trainer")
            return
        for name in _by_step(_CHECKPOINT, folder.names)[:LOOKED_AT]:
            if NAME in folder.list_folder(name):
                yield Recognized(KIND, key, f"{name}{NAME} is a state of Hugging Face's Trainer")
                return

    def open(
        self, store: TrialStore, recognized: Recognized, options: SourceOptions
    ) -> TrainerStateSource:
        """Return the reader of a state; see `SourceFormat`."""
        del options
        return TrainerStateSource(store, recognized)


FORMAT: Final = _TrainerStateFormat()
