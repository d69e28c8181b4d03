"""Names of output folders: of each trial of a plan (`OutputTemplate`), and their parts."""

import hashlib
import re
from string import Formatter
from typing import Final

from rule_runner.errors import UsageError
from rule_runner.loading.trials import real_path, trial_name

FIELDS: Final = ("name", "id")
NAME_LENGTH: Final = 80  # characters of a trial's name in its output folder
_UNSAFE: Final = re.compile("[^A-Za-z0-9_.]+")
_ID_LENGTH: Final = 12  # hexadecimal digits


class OutputTemplate:
    """Names output folders; a trial always gets the same one, whatever else is planned.

    Parameters
    ----------
    text
        A folder or ``s3://`` address. ``{name}`` stands for the name of the trial, ``{id}`` for
        digits that only this trial has; without them, ``/{name}-{id}`` is added.

    Raises
    ------
    UsageError
        If it has other fields, or no ``{id}``.

    Examples
    --------
    >>> OutputTemplate("s3://bucket/rules").of("s3://bucket/runs/mnist")
    's3://bucket/rules/mnist-8109f4ef1c5a'
    """

    def __init__(self, text: str) -> None:
        place = text.strip().rstrip("/") or text
        fields = _fields(place)
        if not fields:
            place += "/{name}-{id}"
        elif "id" not in fields:
            msg = f"--output {text!r} needs {{id}}: trials of one name would share a folder."
            raise UsageError(msg)
        self._text = real_path(place)

    def of(self, trial: str) -> str:
        """Return the output folder of the trial with the canonical path `trial`."""
        name = folder_name(trial_name(trial))
        return self._text.format(name=name, id=digest(trial, _ID_LENGTH))


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
    try:
        fields = {field for _, field, *_ in Formatter().parse(text) if field is not None}
    except ValueError as err:
        msg = f"--output {text!r} is not a template: {err}. Write {{{{ for a brace."
        raise UsageError(msg) from err
    if unknown := fields.difference(FIELDS):
        msg = f"--output {text!r} has the field {min(unknown)!r}. It may have {{name}} and {{id}}."
        raise UsageError(msg)
    return fields
