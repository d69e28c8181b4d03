"""Safetensors checkpoints: single files, shards, and folders of checkpoints by step.

Files that hold Python pickles are never opened; `refusal` says what to do with them.
"""

import hashlib
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from rule_core.exceptions import CorruptFileError, SMDebugValueError, TruncatedFileError
from rule_core.format.index_file import Layout
from rule_core.format.safetensors_header import LENGTH, header_end, is_header, parse_header
from rule_core.modes import ModeKeys
from rule_core.reading.source import Source
from rule_core.reading.source_record import NO_TENSORS, SourceRecord, is_step
from rule_core.sources.format import FileSource, Recognized, SourceFolder
from rule_core.sources.options import DEFAULT, SourceOptions
from rule_core.storage.base import (
    ByteRange,
    FileStatus,
    ObjectNotFoundError,
    StorageUnavailableError,
    TrialStore,
)
from rule_core.storage.read_pool import ReadPool

KIND: Final = "safetensors"
SUFFIX: Final = ".safetensors"
INDEX_SUFFIX: Final = ".safetensors.index.json"
HEAD_BYTES: Final = 1 << 16  # holds most headers
MAX_INDEX: Final = 32 << 20  # bytes of the index of shards
MAX_DEPTH: Final = 3  # checkpoint-500/unet/model.safetensors
FOREIGN_KEYS: Final = 100  # read of a folder without checkpoints, before the rest is skipped
MAX_SHARDS: Final = 100_000
FILES_KEPT: Final = 4096  # headers, for files that are looked at again
REPORTED: Final = 20  # damaged tensors of a file
SAMPLE_BYTES: Final = 1 << 12
OVERDUE_S: Final = 60.0  # after which an incomplete checkpoint is reported
DIGITS: Final = 15
_AFTER: Final = "\U0010ffff"  # after all other characters

_SHARD: Final = re.compile(r"(?P<stem>.*)-(?P<place>\d{1,6})-of-(?P<count>\d{1,6})")
# The words of a step, the first that occurs counts; those of epochs apply if no others occur.
_STEPS: Final = tuple(
    re.compile(rf"(?i)(?<![a-z])(?:{words})s?[-_=.]?(\d{{1,{DIGITS}}})(?!\d)")
    for words in ("(?:global[-_]?)?step", "iter(?:ation)?", "checkpoint|ckpt|chkpt", "epoch|ep")
)
_EPOCH: Final = _STEPS[-1]
_OWN: Final = re.compile(r"(?i)(global[-_]?)?(step|iter|checkpoint|ckpt|chkpt|epoch)")
_NUMBER: Final = re.compile(
    rf"(\d{{1,{DIGITS}}})|(?:model|weights?|net|policy|adapters?|lora)[-_.](\d{{1,{DIGITS}}})"
    rf"|(\d{{4,{DIGITS}}})[-_.].+|.*[-_.](0\d{{3,14}})"
)
# Sets of tensors beside those of the model; their names get a prefix.
_BESIDE: Final = re.compile(r"(?i)(.*[-_.])?(ema|optim\w*|model_\d+)([-_.].*)?")
_PICKLED_WEIGHTS: Final = re.compile(
    r"(?i)(pytorch_model|adapter_model|model|diffusion_pytorch_model).*\.bin"
    r"|.*\.(pt|pth|ckpt|distcp)|\.metadata"
)
# Pickles that stand beside any checkpoint of a Trainer.
_STATE: Final = re.compile(
    r"(?i)(optimizer|scheduler|scaler|rng_state|random_states|training_args|sampler).*"
)


class _ShardIndex(msgspec.Struct):
    weight_map: dict[str, str]


class CheckpointFile(NamedTuple):
    """The step of a file, and the set of tensors that it belongs to.

    Attributes
    ----------
    step
        The step; None if neither the file nor its folder says one.
    is_epoch
        Whether the number counts epochs.
    prefix
        What the names of the tensors begin with.
    """

    step: int | None
    is_epoch: bool
    prefix: str


class _IncompleteError(Exception):
    """Files of a checkpoint do not exist yet; the arguments are a file and what is missing."""

    def __str__(self) -> str:
        key, missing = self.args
        return f"Shard {key!r}: {missing}."


class _ReadFile(NamedTuple):
    """A file of a checkpoint, and what is wrong with it as a sentence, or "".

    Attributes
    ----------
    samples
        Identify the content.
    prefix
        What the names of the tensors begin with.
    """

    key: str
    status: FileStatus
    samples: bytes
    prefix: str
    layout: Layout
    problem: str = ""


class _Delivered(NamedTuple):
    """A checkpoint that was passed on.

    Attributes
    ----------
    position
        Its global step; None if it had no tensors.
    files
        Its files; none if it was deleted.
    leftovers
        Other files of the same step, which are not read.
    """

    position: int | None
    files: dict[str, _ReadFile]
    leftovers: set[str]


def step_in(name: str, *, is_folder: bool = False) -> tuple[int, bool] | None:
    """Return the number in the name of a checkpoint, and whether it counts epochs; None without.

    >>> step_in("checkpoint-500", is_folder=True), step_in("model_step_500"), step_in("epoch_3")
    ((500, False), (500, False), (3, True))
    >>> step_in("0000100_adapters"), step_in("llama-7b"), step_in("step-9-old", is_folder=True)
    ((100, False), None, None)
    """
    if name.lower().startswith("tmp"):
        return None
    for pattern in _STEPS:
        matches = [*pattern.finditer(name)]
        if matches and (not is_folder or matches[-1].end() == len(name)):
            return int(matches[-1][1]), pattern is _EPOCH
    number = _NUMBER.fullmatch(name)
    if number is None or (is_folder and number[1] is None):
        return None
    return int(next(filter(None, number.groups()))), False


def locate(key: str) -> CheckpointFile | None:
    """Return the step and prefix of a file, by its path below the folder of the run.

    Returns None for files that belong to no checkpoint of the folder.
    """
    *folders, name = key.split("/")
    if not name.endswith(SUFFIX) or len(folders) >= MAX_DEPTH or name.startswith("."):
        return None
    stem = _family(name)
    step = step_in(folders[0], is_folder=True) if folders else step_in(stem)
    if folders and step is None:
        return None
    prefix = "".join(f"{folder}/" for folder in folders[1:])
    beside = _BESIDE.fullmatch(stem)
    if beside is not None and (folders or not beside[2].lower().startswith("model")):
        prefix += "optimizer/" if beside[2].lower().startswith("optim") else f"{beside[2]}/"
    number, is_epoch = step or (None, False)
    return CheckpointFile(number, is_epoch, prefix)


def refusal(names: Iterable[str]) -> str | None:
    """Return a sentence for a folder, or a file, that holds pickled weights only; None otherwise.

    Parameters
    ----------
    names
        The names of the files in the folder, or the one name of a file.
    """
    names = sorted(names)
    if any(name.endswith(SUFFIX) for name in names):
        return None
    pickles = [
        name for name in names if _PICKLED_WEIGHTS.fullmatch(name) and not _STATE.fullmatch(name)
    ]
    if not pickles:
        return None
    if any(name.endswith(".distcp") or name == ".metadata" for name in pickles):
        return (
            "It is a distributed checkpoint of PyTorch, whose metadata is a pickle, which is never "
            "opened because it could run code. Convert it with "
            "'python -m torch.distributed.checkpoint.format_utils dcp_to_torch FOLDER model.pt', "
            "then load the state dict of a file that you trust and save it with "
            "safetensors.torch.save_file."
        )
    return (
        f"{pickles[0]!r} is a pickle, which is never opened because it could run code. Save "
        "checkpoints as safetensors: save_safetensors=True in Hugging Face's TrainingArguments, "
        "safe_serialization=True in save_pretrained and accelerate, or "
        "safetensors.torch.save_file(model.state_dict(), 'model.safetensors')."
    )


class SafetensorsFormat:
    """Recognises and opens checkpoints; see `SourceFormat`."""

    kind = KIND

    def recognize(self, folder: SourceFolder) -> Iterator[Recognized]:
        """Yield the folder if it or its checkpoint folders hold safetensors; see `SourceFormat`."""
        if any(step_in(part, is_folder=True) for part in folder.key.split("/")[:-1]):
            return  # the checkpoint belongs to the folder above
        folders = [
            name
            for name in folder.names
            if name.endswith("/") and step_in(name[:-1], is_folder=True)
        ]
        for name in _ends(folders):
            if self._holds(folder, _files_below(folder, name)):
                reason = f"{len(folders)} folders such as {name!r} hold safetensors"
                yield Recognized(KIND, folder.key, reason, ModeKeys.TRAIN)
                return
        files = [name for name in folder.names if locate(name) is not None]
        if self._holds(folder, _ends(files)):
            yield Recognized(KIND, folder.key, f"{files[0]!r} is safetensors", ModeKeys.TRAIN)

    def _holds(self, folder: SourceFolder, names: Iterable[str]) -> bool:
        return any(locate(name) and is_header(folder.head(name)) for name in names)

    def open(
        self, store: TrialStore, recognized: Recognized, options: SourceOptions = DEFAULT
    ) -> Source:
        """Return the reader of a file or folder; see `SourceFormat`."""
        del options  # names are given their meanings by the index
        name = recognized.key.rpartition("/")[2]
        if name and not name.endswith((SUFFIX, INDEX_SUFFIX)):
            reason = refusal([name]) or f"It does not end in {SUFFIX!r}."
            raise SMDebugValueError(f"{recognized.key!r} cannot be read as safetensors. {reason}")
        return SafetensorsSource(store, recognized.key, recognized.reason)


class SafetensorsSource(FileSource):
    """The checkpoints of a run; see `Source`.

    A checkpoint is passed on once all its files are as long as their headers say. One that is
    replaced later is another checkpoint, in a new segment, and the tensors of the old one become
    unavailable, as do those of a deleted one.

    Parameters
    ----------
    store
        The store.
    key
        The folder with a final slash, or a file.
    reason
        Why it was recognised, as the end of a sentence.
    """

    def __init__(self, store: TrialStore, key: str, reason: str = "") -> None:
        folder, slash, name = key.rpartition("/")
        reason = reason or "they are safetensors"
        super().__init__(KIND, f"Checkpoints in {key or 'the folder'!r}: {reason}.")
        self._store = store
        self._folder = folder + slash
        self._file = name
        own_name = f"{store.uri.rstrip('/')}/{folder}".rstrip("/").rpartition("/")[2]
        own = step_in(own_name, is_folder=True) if _OWN.match(own_name) else None
        self._own_step = own[0] if own is not None else 0
        self._has_steps = True
        self._files: dict[str, _ReadFile] = {}  # read before, by key
        self._layouts: dict[bytes, Layout] = {}  # by digest of the header, and prefix
        parallel = store.costs.parallel
        self._pool = ReadPool[_ReadFile](parallel) if parallel > 1 else None
        self._delivered: dict[int, _Delivered] = {}  # by step
        self._incomplete: dict[int, str] = {}  # by step

    def read_new(self, record: SourceRecord) -> bool:
        """Pass on the checkpoints that are complete; see `Source`."""
        listed = self._checkpoints(record)
        self._lose_deleted(record, listed)
        self._incomplete.clear()  # those that still are will be read again
        was_read = False
        for step in sorted(listed):
            if self._is_new(record, step, listed[step]):
                was_read |= self._read_checkpoint(record, step, listed[step])
        for step, missing in self._incomplete.items():
            if self._is_overdue(step, listed[step]):
                record.problem(f"The checkpoint is not complete: {missing}", listed[step][0])
        return was_read

    def _checkpoints(self, record: SourceRecord) -> dict[int, list[str]]:
        """Return the keys of each step's files, sorted."""
        by_step: dict[int, list[str]] = {}
        epochs: dict[int, list[str]] = {}
        without: list[str] = []
        for name in self._listed():
            if self._file and _family(name) != _family(self._file):
                continue
            file = locate(name.removesuffix(INDEX_SUFFIX) + SUFFIX * name.endswith(INDEX_SUFFIX))
            if file is None:
                continue
            if file.step is None:
                without.append(self._folder + name)
            elif is_step(file.step):
                steps = epochs if file.is_epoch else by_step
                steps.setdefault(file.step, []).append(self._folder + name)
        if epochs and by_step:
            keys = next(iter(epochs.values()))
            record.problem("It counts epochs where others count steps; it is skipped.", keys[0])
        self._has_steps = bool(by_step or epochs)
        if without and not self._has_steps:
            return {self._own_step: sorted(without)}
        return {step: sorted(keys) for step, keys in (by_step or epochs).items()}

    def _listed(self) -> Iterator[str]:
        """Yield the files of the folder and its checkpoint folders."""
        after = ""
        while True:
            other, count = "", 0
            for key in self._store.list_keys(self._folder, start_after=after):
                name = key[len(self._folder) :]
                top, slash, _ = name.partition("/")
                if not slash or step_in(top, is_folder=True) is not None:
                    yield name
                    continue
                count = count + 1 if top == other else 1
                other = top
                if count >= FOREIGN_KEYS:
                    after = f"{self._folder}{top}/{_AFTER}"
                    break
            else:
                return

    def _lose_deleted(self, record: SourceRecord, listed: dict[int, list[str]]) -> None:
        """Forget the checkpoints of which a file was deleted."""
        for step, delivered in self._delivered.items():
            present = set(listed.get(step, ()))
            if not present.issuperset(delivered.files):
                self._lose(record, step, present)
            elif delivered.leftovers:
                self._delivered[step] = delivered._replace(leftovers=delivered.leftovers & present)

    def _lose(self, record: SourceRecord, step: int, leftovers: set[str]) -> None:
        """Forget the files of a checkpoint; others of its step may remain."""
        position = self._delivered[step].position
        if position is not None:
            record.lose_files(position)
        self._delivered[step] = _Delivered(None, {}, leftovers)

    def _is_new(self, record: SourceRecord, step: int, keys: Sequence[str]) -> bool:
        """Return whether a checkpoint must be read, because it is new or was replaced."""
        delivered = self._delivered.get(step)
        if delivered is None:
            return True
        if not delivered.files:  # deleted
            return not delivered.leftovers.issuperset(keys)
        for key in set(keys) - delivered.files.keys():
            if key.endswith(SUFFIX) and key not in delivered.leftovers:
                record.problem("It came after its checkpoint was read; it is skipped.", key)
        if not self._was_replaced(step, delivered):
            return False
        if not self._has_steps:
            record.problem(
                "It was replaced. Only its first content is judged, since its name has no step.",
                keys[0],
            )
        self._lose(record, step, set())
        return self._has_steps

    def _was_replaced(self, step: int, delivered: _Delivered) -> bool:
        """Return whether a file was written again; of remote checkpoints, only the last counts."""
        if self._store.costs.parallel > 1 and step != max(self._delivered):
            return False
        for key, file in delivered.files.items():
            with suppress(ObjectNotFoundError, StorageUnavailableError):  # reading it says why
                status = self._store.status(key)
                if status == file.status:
                    continue
                if self._samples(key, status.size) != file.samples:
                    return True
                delivered.files[key] = file._replace(status=status)
        return False

    def _read_checkpoint(self, record: SourceRecord, step: int, keys: Sequence[str]) -> bool:
        """Pass on a checkpoint if it is complete."""
        try:
            files = self._complete_files(keys)
        except (_IncompleteError, TruncatedFileError, ObjectNotFoundError) as err:
            self._incomplete[step] = str(err)
            return False
        except StorageUnavailableError as err:
            if err.transient:
                raise
            record.problem(f"{err} The checkpoint is skipped.", err.key)
            return False
        files = [*_with_unique_names(files)]
        for file in files:
            if file.problem:
                record.problem(file.problem, file.key)
            _report_damaged(record, file)
        modified = max((file.status.modified for file in files), default=0.0)
        self.written = max(self.written, modified)
        layouts = {file.key: file.layout for file in files if file.layout.names}
        position = record.files(step, layouts, modified) if layouts else None
        by_key = {file.key: file for file in files}
        self._delivered[step] = _Delivered(position, by_key, set(keys) - by_key.keys())
        return position is not None

    def _complete_files(self, keys: Sequence[str]) -> list[_ReadFile]:
        """Return the files of a checkpoint, with the entries that count.

        Raises
        ------
        _IncompleteError, TruncatedFileError, ObjectNotFoundError
            If it is not complete.
        StorageUnavailableError
            If a file cannot be read.
        """
        indexes = {_family(key): key for key in keys if key.endswith(INDEX_SUFFIX)}
        families: dict[str, set[str]] = {}
        for key in keys:
            if key.endswith(SUFFIX):
                families.setdefault(_family(key), set()).add(key)
        for family in indexes.keys() - families.keys():
            raise _IncompleteError(indexes[family], "its shards do not exist")
        files = []
        for family, members in sorted(families.items()):
            shards = self._shards(indexes[family]) if family in indexes else None
            expected = _expected(family, members, shards)
            for key in sorted(expected - members):
                raise _IncompleteError(key, "it does not exist")
            for file in self._files_at(sorted(expected)):
                name = file.key.rpartition("/")[2]
                files.append(file if shards is None else _as_assigned(file, shards[name]))
        return files

    def _shards(self, key: str) -> dict[str, set[str]]:
        """Return the names of the tensors of each shard, as the index says."""
        data = self._store.read(key, ByteRange(0, MAX_INDEX))
        try:
            index = msgspec.json.decode(data, type=_ShardIndex)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as err:
            raise TruncatedFileError(key, "an index of shards", str(err).rstrip(".")) from err
        shards: dict[str, set[str]] = {}
        for name, shard in index.weight_map.items():
            shards.setdefault(shard, set()).add(name)
        return shards

    def _files_at(self, keys: Sequence[str]) -> list[_ReadFile]:
        """Return some files, of a remote store in parallel; see `_file_at`."""
        if self._pool is None:
            return [self._file_at(key) for key in keys]
        pending = [self._pool.submit(partial(self._file_at, key)) for key in keys]
        return [future.result() for future in pending]

    def _file_at(self, key: str) -> _ReadFile:
        """Return a file, or one without tensors if it is damaged; see `_complete_files`."""
        status = self._store.status(key)
        cached = self._files.get(key)
        if cached is not None and cached.status == status:
            return cached
        location = locate(key[len(self._folder) :])
        prefix = "" if location is None else location.prefix
        samples = self._samples(key, status.size)
        try:
            layout = self._layout(key, status.size, prefix)
            file = _ReadFile(key, status, samples, prefix, layout)
        except CorruptFileError as err:
            file = _ReadFile(key, status, samples, prefix, NO_TENSORS, f"{err} It is skipped.")
        if len(self._files) >= FILES_KEPT:
            self._files.clear()
        self._files[key] = file
        return file

    def _samples(self, key: str, size: int) -> bytes:
        """Return a digest of bytes of a file: training changes some of them."""
        digest = hashlib.blake2b(str(size).encode())
        for start in (0, size // 2, max(size - SAMPLE_BYTES, 0)):
            digest.update(self._store.read(key, ByteRange(start, start + SAMPLE_BYTES)))
        return digest.digest()

    def _layout(self, key: str, size: int, prefix: str) -> Layout:
        """Read a header; files with the same header and prefix share their layout."""
        head = self._store.read(key, ByteRange(0, min(HEAD_BYTES, size)))
        end = header_end(head, size, key)
        text = head[LENGTH.size : end]
        if end > len(head):
            text = self._store.read(key, ByteRange(LENGTH.size, end))
        if len(text) < end - LENGTH.size:
            raise TruncatedFileError(key, f"a header of {end - LENGTH.size} bytes", f"{len(text)}")
        identity = hashlib.blake2b(text).digest() + prefix.encode()
        layout = self._layouts.get(identity)
        if layout is None or layout.end != size:
            layout = _with_prefix(parse_header(text, size, key), prefix)
            if len(self._layouts) >= FILES_KEPT:
                self._layouts.clear()
            self._layouts[identity] = layout
        return layout

    def _is_overdue(self, step: int, keys: Sequence[str]) -> bool:
        """Return whether an incomplete checkpoint should be reported."""
        if any(later > step for later in self._delivered):
            return True
        modified = 0.0
        for key in keys:
            with suppress(ObjectNotFoundError, StorageUnavailableError):
                modified = max(modified, self._store.status(key).modified)
        return modified < time.time() - OVERDUE_S


def _report_damaged(record: SourceRecord, file: _ReadFile) -> None:
    """Report the damaged tensors of a file, of many the first ones."""
    damaged = file.layout.damaged
    for name, text in islice(damaged.items(), REPORTED):
        record.problem(text, f"{file.key}: {name[:100]}")
    if len(damaged) > REPORTED:
        record.problem(f"{len(damaged) - REPORTED} more tensors are skipped.", file.key)


def _family(name: str) -> str:
    """Return the name of a file without shard number and suffix; shards share it."""
    stem = name.removesuffix(INDEX_SUFFIX).removesuffix(SUFFIX)
    shard = _SHARD.fullmatch(stem)
    return stem if shard is None else shard["stem"]


def _expected(family: str, members: set[str], shards: Mapping[str, set[str]] | None) -> set[str]:
    """Return the keys that a complete set has."""
    if shards is not None:
        return {family[: family.rfind("/") + 1] + name for name in shards}
    if family + SUFFIX in members:  # shards beside it are left over
        return {family + SUFFIX}
    numbers = (_SHARD.fullmatch(key.removesuffix(SUFFIX)) for key in members)
    counts = {number["count"] for number in numbers if number is not None}
    count = max(counts, key=int)
    if not 0 < int(count) <= MAX_SHARDS:
        return members
    width = len(count)
    return {f"{family}-{place:0{width}}-of-{count}{SUFFIX}" for place in range(1, int(count) + 1)}


def _as_assigned(file: _ReadFile, names: set[str]) -> _ReadFile:
    """Return a shard with the tensors that the index assigns to it."""
    layout = file.layout
    assigned = {file.prefix + name for name in names}
    stray = [name for name in layout.names if name not in assigned]
    absent = assigned.difference(layout.names, layout.damaged) if not file.problem else ()
    reasons = dict.fromkeys(stray, "The index does not assign it to this file; it is skipped.")
    reasons |= dict.fromkeys(sorted(absent), "The index assigns it to this file, which lacks it.")
    return _without(file, reasons)


def _with_unique_names(files: Iterable[_ReadFile]) -> Iterator[_ReadFile]:
    """Yield files in which no tensor occurs twice; the first one counts."""
    first_keys: dict[str, str] = {}
    for file in files:
        reasons = {
            name: f"It is in {first_keys[name]!r} too; this one is skipped."
            for name in file.layout.names
            if name in first_keys
        }
        yield _without(file, reasons)
        first_keys |= dict.fromkeys(file.layout.entries.keys() - first_keys.keys(), file.key)


def _without(file: _ReadFile, reasons: Mapping[str, str]) -> _ReadFile:
    """Return a file without some tensors, given the reason for each."""
    if not reasons:
        return file
    layout = file.layout
    entries = {name: entry for name, entry in layout.entries.items() if name not in reasons}
    damaged = {**layout.damaged, **reasons}
    layout = replace(layout, entries=entries, names=tuple(entries), damaged=damaged)
    return file._replace(layout=layout)


def _with_prefix(layout: Layout, prefix: str) -> Layout:
    if not prefix:
        return layout
    entries = {prefix + name: entry for name, entry in layout.entries.items()}
    damaged = {prefix + name: text for name, text in layout.damaged.items()}
    return replace(layout, entries=entries, names=tuple(entries), damaged=damaged)


def _files_below(folder: SourceFolder, name: str) -> Iterator[str]:
    """Yield the files of a checkpoint folder and of its components."""
    names = folder.list_folder(name)
    yield from (name + below for below in names if not below.endswith("/"))
    for component in names:
        if component.endswith("/"):
            yield from (name + component + below for below in folder.list_folder(name + component))


def _ends(names: Sequence[str]) -> Sequence[str]:
    """Return the first and the last of names: the others are like them."""
    return list(dict.fromkeys([*names[:1], *names[-1:]]))


FORMAT: Final = SafetensorsFormat()
