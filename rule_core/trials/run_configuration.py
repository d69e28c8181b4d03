"""run_configuration: the settings of a run, as the files beside its log give them."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any, Final

from rule_core.model.secret_names import is_secret
from rule_core.reading.source_index import SourceIndex
from rule_core.sources.documents.document_source import DocumentError
from rule_core.sources.documents.yaml_document import decode as decode_yaml
from rule_core.sources.rows.json_lines import SETTINGS, decoded, flattened
from rule_core.storage.base import (
    ByteRange,
    ObjectNotFoundError,
    StorageUnavailableError,
    TrialStore,
    list_folder,
)
from rule_core.trials.trial import Trial

MAX_BYTES: Final = 1 << 20  # of a file with settings
MAX_SETTINGS: Final = 1000
MAX_TEXT: Final = 200  # characters of a value; longer ones are left out
_HEAD_BYTES: Final = 1 << 16  # of a log that may begin with its settings
_NAMES: Final = ("config", "hparams", "hyperparameters", "args", "params", "training_args")
_FOLDERS: Final = ("", "files/", ".hydra/")  # the second of W&B
_PARAMETERS: Final = "params/"  # of MLflow: a file for each
# What differs from run to run of one recipe.
_OF_RUN: Final = re.compile(
    r"(?i)(^|[/_.-])(seeds?|random_state|id|uuid|names?|notes?|tags|group|entity|user(name)?|host"
    r"(name)?|time(stamp)?|date|created|dir|dirs|directory|folder|root|path|file|url|uri|port|output"
    r"|resume\w*|device\w*|gpus?|local_rank|num_workers|git\w*|commit|version|log\w*|_wandb)($|/)"
)


def run_configuration(trial: Trial) -> dict[str, str]:
    """Return the settings of a run by name: numbers, truths and short texts.

    They are read from files such as ``config.yaml`` (also of W&B), ``hparams.yaml`` and
    ``args.json`` beside the log, from the parameters of MLflow, and from the settings in the first
    rows of JSON lines. Left out are secrets, and names that differ from run to run, such as seeds,
    folders, hosts and times.
    """
    store, index = trial.index.store, trial.index
    keys = index.source_keys if isinstance(index, SourceIndex) else [""]
    settings: dict[str, str] = {}
    for key in dict.fromkeys(keys):
        for folder in dict.fromkeys((key.rpartition("/")[0], key.rstrip("/"))):
            for name, setting in _settings_in(store, f"{folder}/" if folder else ""):
                settings.setdefault(name, setting)
        head = _read(store, key, _HEAD_BYTES).split(b"\n")[:-1] if key[-1:] != "/" else []
        for row in (decoded(str(line, "utf-8", "replace")) for line in head):
            for name in SETTINGS & row.keys() if isinstance(row, dict) else ():
                settings = dict(_texts(row[name])) | settings
    kept = (name for name in sorted(settings) if not (_OF_RUN.search(name) or is_secret(name)))
    return {name: settings[name] for name in islice(kept, MAX_SETTINGS)}


def _settings_in(store: TrialStore, folder: str) -> Iterator[tuple[str, str]]:
    for below in _FOLDERS:
        names = _names(store, folder + below)
        for stem in _NAMES:
            for name in (f"{stem}.yaml", f"{stem}.yml", f"{stem}.json"):
                if name in names:
                    content = _read(store, folder + below + name, MAX_BYTES)
                    yield from _texts(_document(name, content))
    for name in sorted(_names(store, folder + _PARAMETERS))[:MAX_SETTINGS]:
        content = _read(store, folder + _PARAMETERS + name, MAX_TEXT + 1)
        yield from _texts({name: str(content, "utf-8", "replace").strip()})


def _names(store: TrialStore, folder: str) -> set[str]:
    with suppress(ObjectNotFoundError, StorageUnavailableError):
        return set(list_folder(store, folder))
    return set()


def _read(store: TrialStore, key: str, size: int) -> bytes:
    with suppress(ObjectNotFoundError, StorageUnavailableError):
        return bytes(store.read(key, ByteRange(0, size)))
    return b""


def _document(name: str, content: bytes) -> object:
    if name.endswith(".json"):
        return decoded(str(content, "utf-8", "replace"))
    with suppress(DocumentError):
        return decode_yaml(content + b"\n", is_cut=True)
    return None


def _texts(document: object) -> Iterator[tuple[str, str]]:
    """Yield the settings in a document, in one form whatever its format."""
    if not isinstance(document, Mapping):
        return
    for name, setting in flattened({str(key): document[key] for key in document}):
        if name.endswith("/desc"):  # W&B describes each setting, and wraps its value
            continue
        text = _text(setting)
        if len(text) <= MAX_TEXT:
            yield name.removesuffix("/value"), text


def _text(setting: Any) -> str:
    if isinstance(setting, str):
        with suppress(ValueError):
            return f"{float(setting):.12g}"
        return setting
    if isinstance(setting, bool) or not isinstance(setting, int | float):
        return json.dumps(setting, default=str)
    return f"{setting:.12g}"
