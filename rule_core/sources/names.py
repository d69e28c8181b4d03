"""NameTable: the modes and collections of tensor names that other writers chose."""

import re
from typing import Final

from rule_core.modes import ModeKeys
from rule_core.reading.source_record import TensorName
from rule_core.sources.options import DEFAULT, SourceOptions

_EVAL: Final = re.compile(r"(?i)(eval|val|valid|validation|test)[_/ .-]")
_COLLECTIONS: Final = {
    "losses": re.compile(r"(?i)(.*[_/ .-])?loss([_/ .-].*)?"),
    "gradient_norms": re.compile(r"(?i)(.*[_/ .-])?grad(ient)?[_ -]?norm([_/ .-].*)?"),
    "learning_rates": re.compile(r"(?i)(.*[_/ .-])?(lr|learning[_ -]?rate)([_/ .-].*)?"),
}


class NameTable:
    """Returns the mode and collection of a name."""

    def __init__(self, options: SourceOptions = DEFAULT) -> None:
        self._options = options

    def __call__(self, name: str) -> TensorName:
        """Return the mode and collection of a name."""
        mode = ModeKeys.EVAL if _EVAL.match(name) else ModeKeys.TRAIN
        for collection, pattern in _COLLECTIONS.items():
            if pattern.fullmatch(name):
                return TensorName(mode, collection)
        return TensorName(mode, "")
