"""AddressStore: an address without files, such as that of a server."""

from collections.abc import Iterator

from rule_core.storage.base import ByteRange, FileStatus, ObjectNotFoundError, ReadCosts


class AddressStore:
    """A store without files, whose `uri` a source reads in its own way."""

    costs = ReadCosts()

    def __init__(self, uri: str) -> None:
        self.uri = uri

    def list_keys(self, prefix: str, *, start_after: str = "") -> Iterator[str]:
        """Yield no keys; see `TrialStore`."""
        del prefix, start_after
        yield from ()

    def read(self, key: str, byte_range: ByteRange | None = None) -> memoryview:
        """Raise an error: there are no files; see `TrialStore`."""
        del byte_range
        raise ObjectNotFoundError(key)

    def status(self, key: str) -> FileStatus:
        """Raise an error: there are no files; see `TrialStore`."""
        raise ObjectNotFoundError(key)
