"""The analysis core, under the import paths that rules written for smdebug use."""

from smdebug.core.collection import Collection, CollectionKeys
from smdebug.core.modes import ModeKeys as modes  # noqa: N813 - the documented name

__all__ = ["Collection", "CollectionKeys", "modes"]
