"""imported: attaches automatic hooks to the frameworks that a training script imports.

`rule-runner train` calls it in every Python process of the script.
"""

import os
from typing import Any

from rule_core.saving.auto_hook import AUTO, call_after, send_to_parent


def imported(name: str) -> None:
    """Attach to a module that was just imported."""
    if name == "rule_core.saving.hook":
        _detect_hooks()
    elif name == "rule_core.saving.trial_writer":
        _detect_trials()
    else:
        _hook(name)
        send_to_parent("framework", name)


def _hook(framework: str) -> None:
    if framework == "torch":
        from rule_core.frameworks.pytorch.auto import watch
    elif framework == "xgboost":
        from rule_core.frameworks.xgboost.auto import watch
    else:
        from rule_core.frameworks.keras.auto import watch
    watch()


def _detect_hooks() -> None:
    from rule_core.saving.hook import Hook

    call_after(Hook, "__init__", lambda *_, **__: AUTO.disable_for_script_hook())


def _detect_trials() -> None:
    from rule_core.saving.trial_writer import TrialWriter

    call_after(
        TrialWriter,
        "__init__",
        lambda writer, *_, **__: send_to_parent("trial", _location(writer.output)),
    )


def _location(output: Any) -> str:
    root = getattr(output, "root", None)  # None if the output is not a folder
    return str(output.uri) if root is None else os.path.abspath(str(root))  # noqa: PTH100 - a string is needed
