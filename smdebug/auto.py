"""Auto: the hook of a training script that makes none itself, once its framework is imported.

The first training of a process that `rule-runner train` has started is saved, as the hook's
configuration in a folder says. `smdebug.auto_imports` attaches it to what the script imports.
"""

import functools
import json
import logging
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

if TYPE_CHECKING:
    from smdebug.core.hook import Hook

P = ParamSpec("P")
H = TypeVar("H", bound="Hook")

FOLDER: Final = "RULE_RUNNER_TRAIN"  # the variable that names the folder
HOOK: Final = "hook.json"
PIPE: Final = "said"


class Auto:
    """The one hook of this process, unless its script makes one.

    Attributes
    ----------
    hook
        The hook, once a training has begun.
    is_off
        Whether nothing is hooked any more: the script has a hook of its own, or ours failed.
    """

    def __init__(self) -> None:
        self.hook: Hook | None = None
        self.is_off = False
        self._is_making = False
        self._said: set[str] = set()

    def make(self, cls: type[H], **options: Any) -> H | None:
        """Return the hook, made if there is none yet; None if it is of another class.

        Parameters
        ----------
        cls
            Class of the hook.
        options
            Arguments besides those in the configuration.
        """
        if self.hook is None and not self.is_off:
            self._is_making = True
            try:
                _log_apart()
                self.hook = cls.create_from_json_file(_configuration(cls), **options)
            finally:
                self._is_making = False
        return self.hook if isinstance(self.hook, cls) and not self.is_off else None

    def hook_made(self) -> None:
        """Leave everything to a hook of the script."""
        if self._is_making or self.is_off:
            return
        self.is_off = True
        if self.hook is not None:
            self.say("The script makes a hook of its own: what was saved until now is all.")
            self.hook.close()

    def say(self, text: str) -> None:
        """Write a sentence to stderr, once."""
        if text not in self._said:
            self._said.add(text)
            print(f"rule-runner: {text}", file=sys.stderr, flush=True)  # noqa: T201 - not a log: the script's own logging must not take it

    def harmless(self, call: Callable[P, None]) -> Callable[P, None]:
        """Return a function whose errors turn everything off, and never reach the training."""

        @functools.wraps(call)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
            if self.is_off:
                return
            try:
                call(*args, **kwargs)
            except Exception as err:  # noqa: BLE001 - of any kind
                self.is_off = True
                self.say(f"Nothing more is saved: {type(err).__name__}: {err}")

        return guarded


AUTO: Final = Auto()


def _configuration(cls: type["Hook"]) -> Path:
    """Return a file with the configuration, but for collections that only other frameworks have."""
    folder = Path(os.environ[FOLDER])
    document = json.loads((folder / HOOK).read_text("utf-8"))
    known = {*cls.DEFAULT_COLLECTIONS, *cls.FILLED_COLLECTIONS}
    document["CollectionConfigurations"] = [
        one
        for one in document["CollectionConfigurations"]
        if one["CollectionName"] in known
        or (one.get("CollectionParameters") or {}).get("include_regex")
    ]
    file = folder / f"{cls.__name__}-{os.getpid()}.json"
    file.write_text(json.dumps(document), "utf-8")
    return file


def after(cls: Any, method: str, call: Callable[..., None]) -> None:
    """Have `call` called with what a method was called with, once the method has returned."""
    original = getattr(cls, method)

    @functools.wraps(original)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        call(*args, **kwargs)
        return result

    setattr(cls, method, wrapped)


def tell(kind: str, value: str) -> None:
    """Tell `rule-runner train` something, if it is still there."""
    line = json.dumps({kind: value}) + "\n"
    with suppress(OSError, KeyError):
        path = os.path.join(os.environ[FOLDER], PIPE)  # noqa: PTH118 - a text
        pipe = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        try:
            os.write(pipe, line.encode())
        finally:
            os.close(pipe)


def _log_apart() -> None:
    """Have warnings of the hook on stderr, wherever the script sends its own log."""
    logger = logging.getLogger("smdebug")
    if not logger.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("rule-runner: %(message)s"))
        handler.setLevel(logging.WARNING)
        logger.addHandler(handler)
        logger.propagate = False
