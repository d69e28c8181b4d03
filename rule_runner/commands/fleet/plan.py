"""fleet plan: writes an evaluation request for each trial below some paths."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

from msgspec.structs import replace

from rule_core.clock import SystemClock
from rule_core.exceptions import SMDebugError
from rule_core.sources.address import address_of
from rule_core.storage.publish import publish
from rule_core.storage.uri import is_s3, open_output
from rule_runner.batch.plan import plan_text
from rule_runner.config.defaults import FITTING_RULES
from rule_runner.config.output_names import OutputTemplate
from rule_runner.config.request import STDIN, EvaluationRequest, RuleRequest
from rule_runner.durations import seconds_of
from rule_runner.errors import EXIT_CLIENT, TrialError, UsageError, restated, translated, unwritable
from rule_runner.escape import is_text, print_lines
from rule_runner.loading.trial_age import changed_since
from rule_runner.loading.trial_lists import ListedTrial, list_trials

TRIALS: Final = 1_000_000  # planned at most for each path
FOLDERS: Final = 10_000_000  # listed at most for each path


_NO_TEXT: Final = "Trial {path!r} is not planned: its path is not UTF-8. Rename it."


class Choice(NamedTuple):
    """Which of the trials that were found are planned.

    Attributes
    ----------
    since
        The longest time since a trial was written, such as ``1d``; None: any.
    include, exclude
        Patterns of paths: of those planned, if there are any, and of those left out.
    """

    since: str | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def matches(self, path: str) -> bool:
        """Return whether the patterns admit a path."""
        if self.include and not any(fnmatchcase(path, pattern) for pattern in self.include):
            return False
        return not any(fnmatchcase(path, pattern) for pattern in self.exclude)


def plan(paths: Sequence[str], request: EvaluationRequest, choice: Choice, target: str) -> int:
    """Write a plan for the trials at and below `paths`, and return the exit code.

    Parameters
    ----------
    request
        How to judge each trial; its `output` is an `OutputTemplate`.
    target
        A file, an ``s3://`` address, or ``-`` for standard output.

    Raises
    ------
    TrialError
        If there is no trial.
    UsageError
        If the template or an option is malformed.
    OutputError
        If the plan cannot be written.
    """
    with translated(UsageError, ValueError, before="--output ", after="."):
        template = OutputTemplate(request.output or "")
    oldest = _oldest(choice.since)
    if not request.rules and request.job is None:
        request = replace(request, rules=(RuleRequest(name=FITTING_RULES),))
    with redirect_stdout(sys.stderr):
        listed, problems, _ = list_trials(paths, TRIALS, FOLDERS, request.source_options)
    if not listed and problems:
        raise TrialError(" ".join(problems))
    problems += [_NO_TEXT.format(path=trial.path) for trial in listed if not is_text(trial.path)]
    chosen = [
        trial
        for trial in sorted(listed, key=lambda trial: trial.path)
        if is_text(trial.path) and choice.matches(trial.path) and changed_since(trial.path, oldest)
    ]
    _write(target, plan_text(_requests(chosen, request, template)))
    print_lines(problems, sys.stderr)
    left_out = f" of {len(listed)}" if len(listed) > len(chosen) else ""
    print(f"Planned {len(chosen)}{left_out} trials.", file=sys.stderr)
    return EXIT_CLIENT if problems else 0


def _oldest(since: str | None) -> float:
    """Return from when on trials are planned, in seconds since the epoch.

    Raises
    ------
    UsageError
        If the text is not a time.
    """
    if since is None:
        return 0.0
    problem = f"Option --since must be a time, such as 12h, 1d or 2w, got {since!r}."
    with restated(UsageError, ValueError, sentence=problem):
        return SystemClock().time() - seconds_of(since, "hdw")


def _requests(
    trials: Sequence[ListedTrial], request: EvaluationRequest, template: OutputTemplate
) -> Iterator[EvaluationRequest]:
    """Yield the request for each trial."""
    for folder, path, _ in trials:
        yield replace(
            request,
            trial=path if folder.tensors else None,
            profiler_trial=path if folder.profiler else None,
            output=address_of(template.of(path)).canonical,
        )


def _write(target: str, text: str) -> None:
    """Write a plan to a file, to S3 or to standard output."""
    if target == STDIN:
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    folder, slash, name = target.strip().rpartition("/")
    if is_s3(target) and not (name and is_s3(folder)):
        raise UsageError(f"Plan {target!r} has no name. Give s3://bucket/prefix/NAME.jsonl.")
    with unwritable(f"Plan {target!r}"), translated(UsageError, SMDebugError):
        publish(open_output(folder or slash or "."), name, text.encode())
