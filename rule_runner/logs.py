"""Configures logging: text on stderr, or JSON lines for programs.

structlog imports asyncio and much of rich, which takes longer than a small evaluation. It is
therefore imported with the first event that somebody will see.
"""

import logging
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager, suppress
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Final

from rule_runner.escape import printable

# By the number of -v options; -1 is --quiet.
LEVELS: Final = {-1: logging.ERROR, 0: logging.WARNING, 1: logging.INFO, 2: logging.DEBUG}
# Libraries whose debug and info messages are dropped.
_NOISY_LIBRARIES: Final = ("boto3", "botocore", "docker", "s3transfer", "urllib3")
_STRUCTLOG: Final = "structlog"
_LEVELS: Final = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING}


class _WhenImported:
    """Configures structlog as soon as anything imports it; a finder of modules.

    Attributes
    ----------
    configure
        Configures structlog.
    """

    def __init__(self) -> None:
        self.configure: Callable[[], None] | None = None

    def set(self, configure: Callable[[], None]) -> None:
        """Configure structlog now if it is imported, or else with its import."""
        if _STRUCTLOG in sys.modules:
            configure()
            return
        self.configure = configure
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def forget(self) -> None:
        """Leave structlog as it is when it is imported."""
        self.configure = None
        with suppress(ValueError):
            sys.meta_path.remove(self)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the specification of structlog, which ends with its configuration."""
        del path, target
        configure = self.configure
        if name != _STRUCTLOG or configure is None:
            return None
        self.forget()
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_configure(module: ModuleType) -> None:
                execute(module)
                configure()

            spec.loader.exec_module = execute_and_configure  # type: ignore[method-assign]
        return spec


_when_imported: Final = _WhenImported()


class _Log:
    """A logger of structlog, which is imported for the first event that is not dropped."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._logger = logging.getLogger(name)

    def __getattr__(self, method: str) -> Callable[..., Any]:
        if _when_imported.configure is not None:
            level = _LEVELS.get(method, logging.ERROR)
            if not self._logger.isEnabledFor(level):
                return _drop
        import structlog

        return getattr(structlog.get_logger(self._name), method)  # type: ignore[no-any-return]


def _drop(event: str, **values: object) -> None:
    """Log nothing."""


def get_logger(name: str) -> Any:
    """Return the logger of a module, with the methods of a structlog logger."""
    return _Log(name)


def _harmless(logger: Any, method: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
    """Escape control characters, because names in texts come from untrusted files."""
    del logger, method
    return {
        key: printable(value) if isinstance(value, str) and key != "exception" else value
        for key, value in event.items()
    }


class _OpenBlocks:
    """The number of open `through_logging` blocks in all threads."""

    lock: Final = threading.Lock()
    count = 0


@contextmanager
def through_logging() -> Iterator[None]:
    """Send log events inside the block to the loggers of the standard library, as a library does.

    Sets no handler and no level. Has no effect if the program has configured structlog.
    """
    with _OpenBlocks.lock:
        ours = _OpenBlocks.count > 0 or not _is_configured()
        _OpenBlocks.count += ours
        if ours:
            _when_imported.set(_configure_for_library)
    try:
        yield
    finally:
        with _OpenBlocks.lock:
            _OpenBlocks.count -= ours
            if ours and not _OpenBlocks.count:
                _when_imported.forget()
                if _STRUCTLOG in sys.modules:
                    import structlog

                    structlog.reset_defaults()


def _is_configured() -> bool:
    """Return whether structlog is configured, or will be when it is imported."""
    if _STRUCTLOG not in sys.modules:
        return _when_imported.configure is not None
    import structlog

    return structlog.is_configured()


def _configure_for_library() -> None:
    import structlog

    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.contextvars.merge_contextvars,
            structlog.processors.format_exc_info,
            _harmless,
            structlog.processors.KeyValueRenderer(key_order=["event"]),
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )


class _Stderr(logging.StreamHandler[Any]):
    """Writes to the current `sys.stderr`, which a progress bar replaces to print above itself.

    Parameters
    ----------
    as_json
        Whether to write JSON lines instead of text.
    colours
        Whether text has colours.
    """

    def __init__(self, *, as_json: bool, colours: bool) -> None:
        super().__init__()
        self._as_json = as_json
        self._colours = colours

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        super().emit(record)

    def format(self, record: logging.LogRecord) -> str:
        if self.formatter is None:
            self.setFormatter(self._formatter())
        return super().format(record)

    def _formatter(self) -> logging.Formatter:
        import structlog

        renderer: list[Any] = (
            [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
            if self._as_json
            else [
                _harmless,
                structlog.dev.ConsoleRenderer(
                    colors=self._colours, exception_formatter=structlog.dev.plain_traceback
                ),
            ]
        )
        return structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*_added_values(), structlog.stdlib.add_logger_name],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderer],
        )


def _added_values() -> list[Any]:
    """Return the processors that add values to every event."""
    import structlog

    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]


class _Configured:
    as_json: bool = False


def is_json() -> bool:
    """Return whether `configure` selected JSON lines."""
    return _Configured.as_json


def configure(verbosity: int, *, as_json: bool = False) -> None:
    """Send the log of this program and of rules to stderr.

    Parameters
    ----------
    verbosity
        -1 (errors only) to 2 (every step).
    as_json
        Whether to write JSON lines, for programs; a terminal still gets text.
    """
    level = LEVELS[max(-1, min(verbosity, 2))]
    terminal = sys.stderr.isatty()
    _Configured.as_json = as_json
    _when_imported.set(lambda: _configure_for_program(level))
    root = logging.getLogger()
    root.handlers[:] = [_Stderr(as_json=as_json and not terminal, colours=terminal)]
    root.setLevel(level)
    for name in _NOISY_LIBRARIES:
        logging.getLogger(name).setLevel(max(level, logging.WARNING))


def _configure_for_program(level: int) -> None:
    import structlog

    structlog.configure(
        processors=[*_added_values(), structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.make_filtering_bound_logger(level),
        cache_logger_on_first_use=False,
    )
