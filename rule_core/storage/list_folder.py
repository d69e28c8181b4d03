"""list_folder: the names in one folder of a store."""

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

from rule_core.storage.base import TrialStore


@runtime_checkable
class ListedStore(TrialStore, Protocol):
    """A store that lists one folder without the folders below it."""

    def list_folder(self, folder: str) -> Iterator[str]:
        """Yield the names in a folder; names of folders end with a slash, as does `folder`.

        Raises
        ------
        ObjectNotFoundError
            If the folder does not exist (not in stores without folders).
        StorageUnavailableError
            If the store fails.
        """
        ...


def list_folder(store: TrialStore, folder: str) -> Iterator[str]:
    """Yield the names in a folder of any store; see `ListedStore`.

    >>> from rule_core.storage.local import LocalStore
    >>> "etc/" in list_folder(LocalStore("/"), "")
    True
    """
    if isinstance(store, ListedStore):
        yield from store.list_folder(folder)
        return
    last = ""
    for key in store.list_keys(folder):
        name, slash, _ = key[len(folder) :].partition("/")
        if name + slash != last:
            last = name + slash
            yield last
