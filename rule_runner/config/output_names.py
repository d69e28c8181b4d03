"""Names of output folders: of each trial of a fleet (`OutputTemplate`), and their parts."""

import hashlib
import re
from string import Formatter
from typing import Final

from rule_core.sources.address import address_of
from rule_runner.errors import translated

FIELDS: Final = ("name", "id", "trial")
NAME_LENGTH: Final = 80  # characters of a trial's name in its output folder
_UNSAFE: Final = re.compile("[^A-Za-z0-9_.]+")
_ID_LENGTH: Final = 12  # hexadecimal digits
_OLD_ID_LENGTH: Final = 8


class OutputTemplate:
    """Names output folders; a trial always gets the same one, whatever else is judged.

    Parameters
    ----------
    text
        A folder or ``s3://`` address. ``{name}`` stands for the name of the trial, ``{id}`` for
        digits that only this trial has; without them, ``/{name}-{id}`` is added. ``{trial}``, an
        older spelling, is the end of the trial's path with digits.

    Attributes
    ----------
    base
        The folder of all output folders.
    is_flat
        Whether they are directly in it.

    Raises
    ------
    ValueError
        If it has other fields, or none that differs between trials.

    Examples
    --------
    >>> OutputTemplate("s3://bucket/rules").of("s3://bucket/runs/mnist")
    's3://bucket/rules/mnist-8109f4ef1c5a'
    """

    def __init__(self, text: str) -> None:
        place = text.strip().rstrip("/")
        fields = _fields(place)
        if not fields:
            place += "/{name}-{id}"
        elif fields == {"name"}:
            raise ValueError(f"{text!r} needs {{id}}: trials of one name would share a folder")
        self._text = place
        parts = place.split("/")
        first = next(number for number, part in enumerate(parts) if _fields(part))
        self.base = "/".join(parts[:first]).format() or "/"
        self.is_flat = first == len(parts) - 1

    def of(self, trial: str) -> str:
        """Return the output folder of the trial with the canonical path `trial`."""
        end = folder_name("/".join(trial.rstrip("/").split("/")[-2:]))
        return self._text.format(
            name=folder_name(address_of(trial).name),
            id=digest(trial, _ID_LENGTH),
            trial=f"{end}-{digest(trial, _OLD_ID_LENGTH)}",
        )


def folder_name(text: str, length: int = NAME_LENGTH) -> str:
    """Return the end of a text as the name of a folder.

    >>> folder_name("runs/mnist 1"), folder_name("..")
    ('runs-mnist-1', 'trial')
    """
    return _UNSAFE.sub("-", text).strip("-.")[-length:].lstrip("-.") or "trial"


def digest(text: str, length: int = 32) -> str:
    """Return a name that is unique to a text."""
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:length]


def _fields(text: str) -> set[str]:
    """Return the fields of a template."""
    problem, remedy = f"{text!r} is not a template: ", ". Write {{ for a brace"
    with translated(ValueError, ValueError, before=problem, after=remedy):
        fields = {field for _, field, *_ in Formatter().parse(text) if field is not None}
    if unknown := fields.difference(FIELDS):
        raise ValueError(
            f"{text!r} has the field {min(unknown)!r}. It may have {{name}} and {{id}}"
        )
    return fields
