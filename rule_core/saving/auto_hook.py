"""AutoHook: automatic hooks for training scripts that create none.

Each training of a process started by `rule-runner train` is saved as a separate trial, with the
configuration in `HOOK`. `rule_core.frameworks.auto_imports` attaches to the frameworks that the
script imports.
"""

import fcntl
import functools
import json
import logging
import os
import sys
import threading
import uuid
import weakref
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import util
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from rule_core.failures import Contained

if TYPE_CHECKING:
    from rule_core.saving.hook import Hook

P = ParamSpec("P")
H = TypeVar("H", bound="Hook")

FOLDER: Final = "RULE_RUNNER_TRAIN"  # variable with the folder of the files below
HOOK: Final = "hook.json"
PIPE: Final = "said"
CLAIMS: Final = "trainings"
MOST_TRAININGS: Final = 100  # a hyperparameter search may train thousands of small models
# Variables with the same value in all ranks of a launch: torchrun, Open MPI.
LAUNCH: Final = (
    *("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"),
    "PMIX_NAMESPACE",
)


class Auto:
    """Creates the hooks of this process, one per training, unless the script creates one.

    Attributes
    ----------
    hook
        The hook of the latest training.
    is_off
        Whether hooking has ended because the script created a hook or an automatic one failed.
    """

    def __init__(self) -> None:
        self.hook: Hook | None = None
        self.is_off = False
        self._is_creating = False
        self._running: set[Hook] = set()
        self._printed: set[str] = set()
        self._lock = threading.RLock()

    def begin(self, cls: type[H], *, runs: bool = False, **options: Any) -> H | None:
        """Return a hook for a new training; None if the training cannot be saved.

        Parameters
        ----------
        cls
            Class of the hook.
        runs
            Whether `end` will be called for it; until then a new training does not close it.
        options
            Arguments of the hook in addition to the configuration.
        """
        with self._lock:
            if self.is_off:
                return None
            if self.hook is not None and self.hook not in self._running:
                self.hook.close()
            self.hook, hook = None, self._create(cls, options)
            self.hook = hook
            if runs and hook is not None:
                self._running.add(hook)
            return hook

    def end(self, hook: "Hook") -> None:
        """Record that a training has ended; the latest one may be continued."""
        with self._lock:
            self._running.discard(hook)
            if hook is not self.hook:
                hook.close()

    @property
    def saves(self) -> bool:
        """Whether the latest hook saves tensors, and does not only record a profile."""
        return self.hook is None or not self.hook.saves_nothing

    def current(self, cls: type[H]) -> H | None:
        """Return the latest training's hook if it is a `cls` that this process created."""
        hook = self.hook
        is_ours = isinstance(hook, cls) and hook.is_of_this_process and not self.is_off
        return hook if is_ours else None  # type: ignore[return-value]  # `is_ours` checks the class

    def _create(self, cls: type[H], options: dict[str, Any]) -> H | None:
        number = _claim(*cls.rank_and_size())
        if number > MOST_TRAININGS:
            self.is_off = True
            self.report_unsaved(
                f"The script trains more than {MOST_TRAININGS} times: the rest is not saved."
            )
            return None
        self._is_creating = True
        try:
            _log_to_stderr()
            hook = cls.create_from_json_file(_configuration(cls, number), **options)
        finally:
            self._is_creating = False
        # Processes forked by `multiprocessing` do not run `atexit` functions.
        util.Finalize(hook, _close, (weakref.ref(hook),), exitpriority=0)
        return hook

    def disable_for_script_hook(self) -> None:
        """Stop creating hooks: the script created its own."""
        if self._is_creating or self.is_off:
            return
        self.is_off = True
        if self.hook is not None:
            if self.saves:
                self.print_once("The script creates its own hook: rule-runner saves nothing more.")
            self.hook.close()

    def report_unsaved(self, text: str) -> None:
        """Print why a training is not saved; `rule-runner train` repeats it at the end."""
        if self.print_once(text):
            send_to_parent("missed", text)

    def print_once(self, text: str) -> bool:
        """Print a sentence to stderr once; return whether it is new."""
        is_new = text not in self._printed
        if is_new:
            self._printed.add(text)
            print_line(f"rule-runner: {text}")
        return is_new

    def fail_safe(self, call: Callable[P, None]) -> Callable[P, None]:
        """Wrap a function so that its errors end hooking instead of the training."""

        @functools.wraps(call)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
            if self.is_off:
                return
            with Contained(self._fail):
                call(*args, **kwargs)

        return guarded

    def _fail(self, err: Exception) -> None:
        self.is_off = True
        self.report_unsaved(f"Nothing more is saved: {type(err).__name__}: {err}")


AUTO: Final = Auto()


def numbered_path(path: str | os.PathLike[str], number: int) -> str:
    """Append the number of a training to its path or name, from the second one on.

    >>> numbered_path("runs/mine", 1), numbered_path("runs/mine", 3)
    ('runs/mine', 'runs/mine-3')
    """
    return os.fspath(path) if number == 1 else f"{os.fspath(path)}-{number}"


def print_line(text: str) -> None:
    """Print a line to stderr, below an unfinished line of another program.

    Progress bars leave the cursor after their text. Printing as many spaces as the terminal is wide
    moves it to the next line, or to the end of an empty line.
    """
    start = ""
    with suppress(OSError, ValueError):  # not a terminal
        start = " " * os.get_terminal_size(sys.stderr.fileno()).columns + "\r"
    sys.stderr.write(f"{start}{text}\n")
    sys.stderr.flush()


def _close(hook: "weakref.ref[Hook]") -> None:
    if (target := hook()) is not None:
        target.close()


def _claim(rank: int, size: int) -> int:
    """Return the number of a training, which is the same for all ranks of a launch."""
    folder = Path(os.environ[FOLDER])
    trial = json.loads((folder / HOOK).read_text("utf-8"))["LocalPath"]
    launch = "|".join(os.environ.get(name, "") for name in LAUNCH) if size > 1 else uuid.uuid4().hex
    with (folder / CLAIMS).open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # until the file is closed
        file.seek(0)
        claims = [json.loads(line) for line in file]
        numbers = list(dict.fromkeys(claim[2] for claim in claims if claim[0] == launch))
        claimed = sum(claim[:2] == [launch, rank] for claim in claims)
        if claimed < len(numbers):
            number: int = numbers[claimed]
        else:
            number = 1 + max((claim[2] for claim in claims), default=0)
            while number > 1 and Path(numbered_path(trial, number)).exists():
                number += 1
        file.write(json.dumps([launch, rank, number]) + "\n")
    return number


def _configuration(cls: type["Hook"], number: int) -> Path:
    """Write a configuration without collections of other frameworks, and return its path."""
    folder = Path(os.environ[FOLDER])
    document = json.loads((folder / HOOK).read_text("utf-8"))
    document["LocalPath"] = numbered_path(document["LocalPath"], number)
    supported = {*cls.DEFAULT_COLLECTIONS, *cls.FILLED_COLLECTIONS}
    document["CollectionConfigurations"] = [
        collection
        for collection in document["CollectionConfigurations"]
        if collection["CollectionName"] in supported
        or (collection.get("CollectionParameters") or {}).get("include_regex")
    ]
    file = folder / f"{cls.__name__}-{os.getpid()}-{number}.json"
    file.write_text(json.dumps(document), "utf-8")
    return file


def call_after(cls: Any, method: str, call: Callable[..., None]) -> None:
    """Patch a method to run `call` with the same arguments after it returns."""
    original = getattr(cls, method)

    @functools.wraps(original)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        call(*args, **kwargs)
        return result

    setattr(cls, method, wrapped)


def send_to_parent(kind: str, value: str) -> None:
    """Send a value to `rule-runner train` if it is still running."""
    line = json.dumps({kind: value}) + "\n"
    with suppress(OSError, KeyError):
        path = os.path.join(os.environ[FOLDER], PIPE)  # noqa: PTH118 - a string is enough
        pipe = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        try:
            os.write(pipe, line.encode())
        finally:
            os.close(pipe)


class _LineHandler(logging.Handler):
    """Prints log records with `print_line`."""

    def emit(self, record: logging.LogRecord) -> None:
        print_line(self.format(record))


def _log_to_stderr() -> None:
    """Print warnings of the hook to stderr, even if the script redirects its own log."""
    logger = logging.getLogger("smdebug")
    if not logger.handlers:
        handler = _LineHandler()
        handler.setFormatter(logging.Formatter("rule-runner: %(message)s"))
        handler.setLevel(logging.WARNING)
        logger.addHandler(handler)
        logger.propagate = False
