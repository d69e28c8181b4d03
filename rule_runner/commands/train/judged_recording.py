"""JudgedRecording: a profile that is recorded and, meanwhile, judged in a separate process."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from rule_runner.commands.profile.command import PAGE, RULE
from rule_runner.commands.profile.recording import ProfileRecording, recorded
from rule_runner.commands.train.evaluator import Evaluator, EvaluatorResult, short
from rule_runner.commands.train.script import say
from rule_runner.config.request import EvaluationRequest
from rule_runner.config.resolve import resolve
from rule_runner.notify.event import RuleState

RESULTS: Final = "profile-results"


class JudgedRecording:
    """A recording, and the evaluation of profiler rules over it.

    Parameters
    ----------
    recording
        The recording, which has not begun.
    request
        The evaluation, with the rule `ProfilerReport`.
    output
        Output folder of the evaluation.

    Raises
    ------
    ClientError, UsageError
        If the request is wrong.
    """

    def __init__(
        self, recording: ProfileRecording, request: EvaluationRequest, output: Path
    ) -> None:
        self._recording = recording
        self._request = replace(
            request, trial=None, profiler_trial=recording.folder, output=str(output)
        )
        evaluation = resolve(self._request)
        folders = {rule.loaded.name: evaluation.folder_of(rule) for rule in evaluation.rules}
        self._page = folders[RULE] / PAGE
        self._evaluator: Evaluator | None = None
        self._tasks: list[asyncio.Task[Any]] = []

    def start(self, on_finding: Callable[[RuleState], None]) -> dict[str, str]:
        """Begin to record and to judge; each finding is reported.

        Return the variables by which the script's processes take part.
        """
        self._recording.start()
        self._evaluator = Evaluator(self._request, [], on_finding)
        self._tasks = [
            asyncio.create_task(self._evaluator.run()),
            asyncio.create_task(self._recording.follow()),
        ]
        return self._recording.environment()

    def stop(self) -> None:
        """Stop judging early."""
        if self._evaluator is not None:
            self._evaluator.stop()

    def end(self) -> None:
        """End the recording; the evaluation ends when it has judged the rest."""
        for task in self._tasks[1:]:
            task.cancel()
        self._recording.end()

    async def judged(self) -> EvaluatorResult:
        """Wait for the evaluation, and return its results."""
        result: EvaluatorResult = await self._tasks[0]
        return result

    def show(self, frameworks: Sequence[str]) -> None:
        """Print where the profile and its report are."""
        for sentence in recorded(self._recording, frameworks):
            say(sentence)
        if self._page.exists():
            say(f"Report of the profile: {short(self._page)}")
