"""one_file: a path to one file, as its folder and the name in it."""

from collections.abc import Callable
from pathlib import Path

from rule_core.profiler.files.whole_text import is_json_name
from rule_core.storage.base import TrialStore
from rule_core.storage.retrying_store import RetryingStore
from rule_core.storage.uri import is_s3, open_store


def one_file(store: TrialStore, takes: Callable[[str], bool]) -> tuple[TrialStore, str]:
    """Return the folder of a file and its name; the store itself and "" for folders.

    A prefix in S3 is taken for a file if it ends like one.

    Parameters
    ----------
    store
        What `open_store` returns for a folder, or for the path of one file.
    takes
        Tells by its name whether a file is read.
    """
    folder, slash, name = store.uri.rstrip("/").rpartition("/")
    is_file = is_json_name(name) if is_s3(store.uri) else Path(store.uri).is_file()
    if not (is_file and takes(name)):
        return store, ""
    parent = open_store(folder or slash or ".")
    if isinstance(parent, RetryingStore) and isinstance(store, RetryingStore):
        parent.patience = store.patience
    return parent, name
