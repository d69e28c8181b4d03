"""Runs when a Python starts below `rule-runner train`: has frameworks hooked when imported.

That Python may be any, with any packages: nothing but the standard library is needed here, and the
package with the hooks is imported only behind a framework that it can hook.
"""

from __future__ import annotations

import os
import sys
from typing import Any

FOLDER = "RULE_RUNNER_TRAIN"
WATCHED = ("torch", "xgboost", "keras", "rule_core.saving.hook", "rule_core.saving.trial_writer")


class Finder:
    """Leaves finding modules to others, and calls `imported` behind those that are watched."""

    def __init__(self) -> None:
        self._busy: set[str] = set()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return what the other finders find; see `importlib.abc.MetaPathFinder`."""
        if name not in WATCHED or name in self._busy:
            return None
        self._busy.add(name)
        try:
            specs = (
                one.find_spec(name, path, target)
                for one in sys.meta_path
                if one is not self and hasattr(one, "find_spec")
            )
            spec = next((one for one in specs if one is not None), None)
        finally:
            self._busy.discard(name)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            _tell_after(name, spec.loader)
        return spec


def _tell_after(name: str, loader: Any) -> None:
    """Have the module's own loader tell when the module is complete."""
    execute = loader.exec_module

    def exec_module(module: Any) -> None:
        execute(module)
        if module.__name__ == name:
            imported(name)

    loader.exec_module = exec_module


def imported(name: str) -> None:
    """Attach a hook; whatever goes wrong is said in one sentence, and the training goes on."""
    if FOLDER not in os.environ:
        return
    package = name.partition(".")[0]
    text = (
        f"{sys.executable!r} has {package!r} but not rule-runner, so nothing can be saved. "
        "Install rule-runner there"
    )
    try:
        from rule_core.frameworks import auto_imports

        text = f"{package!r} cannot be hooked"
        auto_imports.imported(name)
    except Exception as err:  # noqa: BLE001 - of any kind: never in the training's way
        # Processes that this one starts need not say it again.
        os.environ.pop(FOLDER, None)
        why = f"{type(err).__name__}: {err}"
        print(f"rule-runner: {text} ({why}). The training goes on without.", file=sys.stderr)


def _run_the_next() -> None:
    """Run the sitecustomize that this one stands before, if there is one."""
    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - at every start
    sys.path[:] = [one for one in sys.path if os.path.abspath(one) != here]  # noqa: PTH100
    own = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # type: ignore[import-not-found]  # noqa: F401 - the user's
    except ImportError as err:
        if err.name != "sitecustomize":
            raise
    finally:
        if own is not None:
            sys.modules.setdefault("sitecustomize", own)


if FOLDER in os.environ and __name__ == "sitecustomize":
    try:
        _run_the_next()
    finally:
        sys.meta_path.insert(0, Finder())
