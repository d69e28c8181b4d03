"""user_folder: our folder in one of the user's own, where desktops agreed that they are."""

import os
from pathlib import Path
from typing import Final

from rule_runner.errors import OutputError

STATE: Final = "XDG_STATE_HOME"
CONFIGURATION: Final = "XDG_CONFIG_HOME"
_DEFAULTS: Final = {STATE: ".local/state", CONFIGURATION: ".config"}


def user_folder(variable: str) -> Path:
    """Return our folder in the one that `STATE` or `CONFIGURATION` names, or in its default.

    A relative path in the variable does not count.

    Raises
    ------
    OutputError
        If neither the variable nor the user has a folder.
    """
    given = Path(os.environ.get(variable, ""))
    try:
        parent = given if given.is_absolute() else Path.home() / _DEFAULTS[variable]
    except RuntimeError as err:
        msg = f"This user has no home folder. Set {variable} to a folder to keep results in."
        raise OutputError(msg) from err
    return parent / "rule-runner"
