"""imported: attaches the hook of a training script that makes none to what it has just imported.

`rule-runner train` has it called in every Python that its script starts.
"""

import os
from typing import Any

from smdebug.auto import AUTO, after, tell


def imported(name: str) -> None:
    """Attach to what has just been imported."""
    if name == "smdebug.core.hook":
        _notice_hooks()
    elif name == "smdebug.core.writer":
        _notice_trials()
    else:
        _hook(name)
        tell("framework", name)


def _hook(framework: str) -> None:
    if framework == "torch":
        from smdebug.pytorch.auto import watch  # noqa: PLC0415 - imports the framework
    elif framework == "xgboost":
        from smdebug.xgboost.auto import watch  # noqa: PLC0415
    else:
        from smdebug.keras.auto import watch  # noqa: PLC0415
    watch()


def _notice_hooks() -> None:
    from smdebug.core.hook import Hook  # noqa: PLC0415 - is being imported

    after(Hook, "__init__", lambda *_, **__: AUTO.hook_made())


def _notice_trials() -> None:
    from smdebug.core.writer import TrialWriter  # noqa: PLC0415 - is being imported

    after(TrialWriter, "__init__", lambda writer, *_, **__: tell("trial", _place(writer.output)))


def _place(output: Any) -> str:
    root = getattr(output, "root", None)  # what lies in no folder has an address
    return str(output.uri) if root is None else os.path.abspath(str(root))  # noqa: PTH100 - a text
