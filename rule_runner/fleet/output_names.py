"""OutputTemplate: the output folder of each trial of a plan."""

import hashlib
import re
from string import Formatter
from typing import Final

from rule_runner.errors import UsageError
from rule_runner.loading.trials import real_path, trial_name

FIELDS: Final = ("name", "id")
_UNSAFE: Final = re.compile("[^A-Za-z0-9_.]+")
_NAME_LENGTH: Final = 80
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
        name = _UNSAFE.sub("-", trial_name(trial)).strip("-.")[:_NAME_LENGTH] or "trial"
        digest = hashlib.sha256(trial.encode(errors="surrogateescape")).hexdigest()
        return self._text.format(name=name, id=digest[:_ID_LENGTH])


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
