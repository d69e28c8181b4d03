"""RuleSource: which file a rule was loaded from, and which version of it."""

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from rule_runner.loader import LoadedRule


class RuleSource(msgspec.Struct, frozen=True, kw_only=True):
    """The file that a rule was loaded from.

    Attributes
    ----------
    location
        Absolute path, or address.
    sha256
        Of its bytes, in hexadecimal digits.
    version_id, etag
        What the store said of the object; None for a file of this machine.
    """

    location: str
    sha256: str
    version_id: str | None = None
    etag: str | None = None


def rule_source(loaded: "LoadedRule") -> RuleSource | None:
    """Return what is known of a rule's file; None for a built-in rule."""
    if loaded.source is None:
        return None
    sha256, fetched = loaded.source_sha256, loaded.fetched
    if fetched is None:
        return RuleSource(location=str(loaded.source), sha256=sha256)
    version_id, etag = fetched.version_id, fetched.etag
    return RuleSource(location=fetched.uri, sha256=sha256, version_id=version_id, etag=etag)
