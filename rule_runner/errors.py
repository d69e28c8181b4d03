"""The errors of the service; the cause of each decides the exit code.

::

    RuleRunnerError
    |-- ClientError            the user's rule, parameters, source or trial     exit 1
    |   |-- UnknownRuleError
    |   |-- RuleSourceError    a rule file: missing, does not parse, lacks the class, fails to load
    |   |-- ParameterError     misspelt, missing, ill-typed, out of range
    |   |-- TrialError         missing, unreadable, without data
    |   |-- JobError           a job definition: missing, does not parse, holds no rules
    |   `-- RuleFailedError    the rule itself raised
    |-- UsageError             options that cannot be combined                   exit 2
    |-- OutputError            the output folder: locked, of another job, full  exit 73
    `-- TemporaryError         something that may work later                   exit 75

Any other exception that escapes is a bug of rule-runner: exit 70.
"""

import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, ClassVar, Final

from rule_core.failures import words_of
from rule_runner.escape import printable

ENDS_ITSELF: Final = "Do that only if __name__ == '__main__'."
_SHOWN: Final = 5  # items of a list in a sentence

EXIT_CLIENT: Final = 1
EXIT_USAGE: Final = 2
EXIT_ISSUES: Final = 10
EXIT_INTERNAL: Final = 70
EXIT_OUTPUT: Final = 73
EXIT_TEMPORARY: Final = 75  # the same command may succeed later
EXIT_TIMEOUT: Final = 124
EXIT_SIGNAL: Final = 128  # plus the number of the signal

# Packages that only the image variant `full` contains.
FULL_ONLY: Final = frozenset({"bokeh", "matplotlib", "pandas"})


class RuleRunnerError(Exception):
    """Base class of the errors that are reported as one sentence and an exit code."""

    exit_code: ClassVar[int] = EXIT_CLIENT


class ClientError(RuleRunnerError):
    """The user's rule, its parameters, its source or the trial is at fault."""


class UnknownRuleError(ClientError):
    """No built-in rule has this name."""


class RuleSourceError(ClientError):
    """A rule file is missing, does not parse, lacks the class or fails while it loads."""


class ParameterError(ClientError):
    """A rule parameter is misspelt, missing, ill-typed or out of range."""


class ImageError(ClientError):
    """An image or a registry cannot be used."""


class UnknownRegionError(ImageError, ValueError):
    """A region has no image; a ValueError as in the old SDK."""


class TrialError(ClientError):
    """The trial is missing, unreadable or without data."""


class JobError(ClientError):
    """A job definition cannot be read, or holds nothing to evaluate."""


class RuleFailedError(ClientError):
    """The rule's own code raised."""


class UsageError(RuleRunnerError):
    """Options of the command line that cannot be combined."""

    exit_code = EXIT_USAGE


class OutputError(RuleRunnerError):
    """The output folder cannot be used: locked, of another evaluation, not writable, full."""

    exit_code = EXIT_OUTPUT


class TemporaryError(RuleRunnerError):
    """Something outside of this machine does not answer now: the same command may succeed later."""

    exit_code = EXIT_TEMPORARY


def raised(subject: str, err: BaseException, where: str) -> str:
    """Return a sentence such as ``Rule 'MyRule' raised KeyError at step 40: 'conv1'.``.

    Parameters
    ----------
    subject
        The beginning of the sentence.
    where
        The place or time, such as ``at step 40``.
    """
    text = words_of(err)
    return f"{subject} raised {type(err).__name__} {where}{text and f': {text}'}.{_remedy(err)}"


def line_of(err: BaseException, path: Path) -> str:
    """Return the line of a file that was running when an exception was raised."""
    frames = traceback.extract_tb(err.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(path)]
    return f"at line {lines[-1]}" if lines else "while it was run"


@contextmanager
def user_code(
    error: type[ClientError],
    subject: str,
    where: Callable[[BaseException], str],
    hint: Callable[[BaseException], str] = lambda _: "",
) -> Iterator[None]:
    """Turn what the code of a user raises into an error of one sentence; see `raised`.

    Parameters
    ----------
    where
        Returns the place or time of an exception.
    hint
        Returns what to add to the sentence.

    Raises
    ------
    ClientError
        An `error`, or the one that the block raises itself.
    """
    try:
        yield
    except ClientError:
        raise
    except (Exception, SystemExit) as err:
        raise error(raised(subject, err, where(err)) + hint(err)) from err


@contextmanager
def translated(
    error: type[Exception],
    *causes: type[BaseException],
    before: str = "",
    after: str = "",
    words: Callable[[Any], object] = str,
) -> Iterator[None]:
    """Turn each of the `causes` inside the block into an `error` with its words.

    Parameters
    ----------
    before, after
        What to put around these words.
    words
        Returns the words of a cause.
    """
    try:
        yield
    except causes as err:
        raise error(f"{before}{words(err)}{after}") from err


def restated(
    error: type[Exception], *causes: type[Exception], sentence: str
) -> AbstractContextManager[None]:
    """Turn each of the `causes` inside the block into an `error` that says the sentence instead."""
    return translated(error, *causes, before=sentence, words=lambda _: "")


def reason_of(err: BaseException) -> str:
    """Return why the system or a store refused: the end of a sentence without its full stop."""
    reason = getattr(err, "strerror", None) or getattr(err, "reason", err)
    return printable(reason).rstrip(".")


def unreadable(
    subject: str, error: type[Exception], *causes: type[Exception]
) -> AbstractContextManager[None]:
    """Turn each of the `causes` inside the block into an `error` about the `subject` to read."""
    before = f"{subject} cannot be read: "
    return translated(error, *causes, before=before, after=".", words=reason_of)


def unwritable(subject: str) -> AbstractContextManager[None]:
    """Turn an `OSError` inside the block into an `OutputError` about the `subject` to write."""
    before = f"{subject} cannot be written: "
    return translated(OutputError, OSError, before=before, after=".", words=reason_of)


def _remedy(err: BaseException) -> str:
    """Return the remedy for an error that the image variant `full` avoids, or ""."""
    if isinstance(err, ModuleNotFoundError) and str(err.name).partition(".")[0] in FULL_ONLY:
        return " Install it, or use the variant 'full' of the image."
    if (
        type(err).__name__ == "UnknownServiceError"
    ):  # of boto3, which is imported only where it is used
        return " In the image, its variant 'full' knows every service of AWS."
    return ""


def listed(items: Sequence[object]) -> str:
    """Return the first items, quoted, and the number of the others."""
    return shortened(list(map(repr, items)))


def shortened(texts: Sequence[str]) -> str:
    """Return the first texts, and the number of the others.

    >>> shortened("ab"), shortened("abcdefg")
    ('a, b', 'a, b, c, d, e and 2 more')
    """
    more = len(texts) - _SHOWN
    return ", ".join(texts[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def counted(count: int, noun: str) -> str:
    """Return a number and its noun, in singular or plural.

    >>> counted(1, "trial"), counted(2000, "trial")
    ('1 trial', '2,000 trials')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def worst_exit_code(codes: Iterable[int]) -> int:
    """Return the most severe of exit codes.

    >>> worst_exit_code([0, 1, 10]), worst_exit_code([])
    (1, 0)
    """
    present = {*codes}
    signals = sorted(code for code in present if code > EXIT_SIGNAL)
    order = (EXIT_INTERNAL, EXIT_OUTPUT, *signals, EXIT_TIMEOUT, EXIT_CLIENT, EXIT_ISSUES)
    return next((code for code in order if code in present), 0)
