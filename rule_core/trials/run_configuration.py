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
from rule_core.sources.log_settings import is_log, log_settings
from rule_core.sources.rows.json_lines import SETTINGS, decoded, flattened
from rule_core.storage import base
from rule_core.trials.trial import Trial

MAX_BYTES: Final = 1 << 20  # of a file with settings, and of the head of a log
MAX_SETTINGS: Final = 1000
MAX_TEXT: Final = 200  # characters of a value; longer ones are left out
_FILE: Final = re.compile(r"(config|hparams|hyperparameters|(training_)?args|params)\.(ya?ml|json)")
_BELOW: Final = ("", "files/", ".hydra/")  # the second is that of W&B
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
    ``args.json`` beside the log, from the parameters of MLflow, from the settings in the first
    rows of JSON lines, and from the logs of W&B and TensorBoard: its hyperparameters, and texts of
    JSON such as ``args/text_summary``. Left out are secrets, and names that differ from run to
    run, such as seeds, folders, hosts and times.
    """
    index, settings = trial.index, dict[str, str]()
    for key in index.source_keys if isinstance(index, SourceIndex) else [""]:
        for document in _documents(index.store, key):
            for name, setting in flattened(document):
                written = _text(setting)
                if len(written) <= MAX_TEXT and not name.endswith("/desc"):  # W&B describes each
                    settings.setdefault(name.removesuffix("/value"), written)
    kept = (name for name in sorted(settings) if not (_OF_RUN.search(name) or is_secret(name)))
    return {name: settings[name] for name in islice(kept, MAX_SETTINGS)}


def _documents(store: base.TrialStore, key: str) -> Iterator[Mapping[str, Any]]:
    """Yield the objects with settings beside a log or in its folder, and in its first rows."""
    for root in dict.fromkeys((key.rpartition("/")[0], key.rstrip("/"))):
        folder = f"{root}/" if root else ""
        for below in _BELOW:
            for name in filter(_FILE.fullmatch, _names(store, folder + below)):
                content = _read(store, folder + below + name, MAX_BYTES)
                document = decoded(content) if name.endswith(".json") else _yaml(content)
                if isinstance(document, dict):
                    yield {str(name): document[name] for name in document}
        names = _names(store, folder + _PARAMETERS)[:MAX_SETTINGS]
        yield {name: _read(store, folder + _PARAMETERS + name, MAX_TEXT + 1) for name in names}
    beside = f"{key}/".lstrip("/")  # if the key is that of a folder
    for log in filter(is_log, (key, *(beside + name for name in _names(store, beside)))):
        yield from log_settings(log, _content(store, log, MAX_BYTES))
    for line in _read(store, key, MAX_BYTES if key else 0).split("\n")[:-1]:
        row = (decoded(line) if line[:1] == "{" else None) or {}
        yield from (row[name] for name in SETTINGS & row.keys() if type(row[name]) is dict)


def _names(store: base.TrialStore, folder: str) -> list[str]:
    with suppress(base.ObjectNotFoundError, base.StorageUnavailableError):
        return sorted(base.list_folder(store, folder))
    return []


def _read(store: base.TrialStore, key: str, size: int) -> str:
    return str(_content(store, key, size), "utf-8", "replace")


def _content(store: base.TrialStore, key: str, size: int) -> bytes:
    with suppress(base.ObjectNotFoundError, base.StorageUnavailableError):
        return bytes(store.read(key, base.ByteRange(0, size)))
    return b""


def _yaml(content: str) -> object:
    from rule_core.sources.documents.yaml_document import decode

    with suppress(DocumentError):
        return decode(f"{content}\n".encode(), is_cut=True)
    return None


def _text(setting: Any) -> str:
    """Return a setting in one form, whatever its format."""
    with suppress(ValueError, TypeError):
        return json.dumps(setting) if isinstance(setting, bool) else f"{float(setting):.12g}"
    return setting.strip() if isinstance(setting, str) else json.dumps(setting, default=str)
