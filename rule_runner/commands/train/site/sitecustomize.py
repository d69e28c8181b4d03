"""Runs in every Python that `rule-runner train` starts; hooks frameworks when they are imported.

It may be any Python, with any packages: this module needs only the standard library, and imports
the hooks only after a framework that they support.
"""

from __future__ import annotations

import os
import sys
from typing import Any

FOLDER = "RULE_RUNNER_TRAIN"
WATCHED = ("torch", "xgboost", "keras", "rule_core.saving.hook", "rule_core.saving.trial_writer")


class Finder:
    """Delegates to the other finders, and calls `imported` after watched modules."""

    def __init__(self) -> None:
        self._busy: set[str] = set()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return what the other finders find; see `importlib.abc.MetaPathFinder`."""
        if name not in WATCHED or name in self._busy:
            return None
        self._busy.add(name)
        try:
            specs = (
                finder.find_spec(name, path, target)
                for finder in sys.meta_path
                if finder is not self and hasattr(finder, "find_spec")
            )
            spec = next((spec for spec in specs if spec is not None), None)
        finally:
            self._busy.discard(name)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            _call_imported_after(name, spec.loader)
        return spec


def _call_imported_after(name: str, loader: Any) -> None:
    """Make the module's own loader call `imported` when the module is complete."""
    execute = loader.exec_module

    def exec_module(module: Any) -> None:
        execute(module)
        if module.__name__ == name:
            imported(name)

    loader.exec_module = exec_module


def imported(name: str) -> None:
    """Attach a hook; an error is printed in one sentence, and the training goes on."""
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
        # Child processes need not repeat it.
        os.environ.pop(FOLDER, None)
        why = f"{type(err).__name__}: {err}"
        print(f"rule-runner: {text} ({why}). The training goes on without.", file=sys.stderr)


def _run_the_next() -> None:
    """Run the sitecustomize that this one hides, if there is one."""
    # Importing pathlib would slow down every start.
    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - see above
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != here]  # noqa: PTH100 - see above
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
