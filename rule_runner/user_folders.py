"""The user's config and state directories."""

from pathlib import Path
from typing import Literal

from rule_runner.errors import OutputError, restated


def user_folder(kind: Literal["config", "state"]) -> Path:
    """Return the config or state directory of rule-runner, which may not exist yet.

    Raises
    ------
    OutputError
        If neither an XDG variable nor the user's home directory names an absolute path.
    """
    from platformdirs import PlatformDirs

    directories = PlatformDirs("rule-runner")
    variable = f"XDG_{kind.upper()}_HOME"
    problem = f"This user has no home directory. Set {variable} to a directory to keep results in."
    with restated(OutputError, RuntimeError, sentence=problem):
        return directories.user_config_path if kind == "config" else directories.user_state_path
