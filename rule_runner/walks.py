"""Walks: the trials of one evaluation, and the walk over one of them that each rule job follows."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rule_runner.config import EvaluationConfig, RuleJobConfig
from rule_runner.errors import TrialError
from rule_runner.openings import (
    absent,
    is_there,
    open_profiler_trial,
    open_trial,
    real_path,
    roots,
)
from rule_runner.results import TrialSummary
from rule_runner.step_walk import StepWalk
from rule_runner.walk import Walk
from smdebug.core.clock import Clock
from smdebug.trials import Trial

if TYPE_CHECKING:
    from rule_runner.openings import AnyTrial
    from smdebug.trials.profiler_trial import ProfilerTrial


class Walks:
    """What an evaluation reads: one walk over tensors, and one for each length of time windows.

    Attributes
    ----------
    trials
        The trial of tensors, then those that rules compare with; empty if no rule reads tensors.
    profiler
        The trial of profiler data; None if no rule reads any.
    all
        The walks, that over tensors first.

    Raises
    ------
    TrialError
        If a trial is not there, and is not waited for.
    """

    def __init__(self, config: EvaluationConfig, clock: Clock) -> None:
        self._config = config
        self._others = config.others_of(*config.rules)
        tensors = [one for one in config.rules if not one.profiler]
        lengths = sorted({one.window_us for one in config.rules if one.profiler})
        self.trials = self._open_trials() if tensors else []
        self.profiler = self._open_profiler_trial() if lengths else None
        for trial in self._opened():
            if not is_there(trial) and not config.wait_for_trial:
                raise TrialError(absent(trial))
        self._windows = self._over_windows(lengths, clock)
        self._steps = self._over_steps(clock)
        self.all: tuple[Walk, ...] = (*self._steps, *self._windows.values())

    def _opened(self) -> "Iterator[AnyTrial]":
        yield from self.trials
        if self.profiler is not None:
            yield self.profiler

    def _open_trials(self) -> list[Trial]:
        config = self._config
        paths = [(config.trial, config.trial_name), *((one, None) for one in self._others)]
        return [open_trial(path, name, config.window) for path, name in paths]

    def _open_profiler_trial(self) -> "ProfilerTrial":
        config = self._config
        return open_profiler_trial(
            config.profiler_trial or config.trial,
            config.trial_name,
            config.profiler_stop_files,
            config.stop_grace,
            waits_for_unseen=config.wait,
        )

    def _over_steps(self, clock: Clock) -> Sequence[Walk]:
        if not self.trials:
            return ()
        config = self._config
        base, *others = (trial.index for trial in self.trials)
        waits = (config.end_grace, config.event_file_wait, config.poll_max)
        return (StepWalk(base, others, clock, *waits, once=not config.wait),)

    def _over_windows(self, lengths: Sequence[int], clock: Clock) -> "dict[int, Walk]":
        if self.profiler is None:
            return {}
        from rule_runner.window_walk import Following, WindowWalk  # noqa: PLC0415 - rarely needed

        config = self._config
        following = Following(self.profiler, clock, config.end_grace, config.poll_max)
        return {
            length: WindowWalk(following, length, leads=length == lengths[0]) for length in lengths
        }

    def of(self, rule: RuleJobConfig) -> Walk:
        """Return the walk of a rule job."""
        return self._windows[rule.window_us] if rule.profiler else self._steps[0]

    def trials_of(self, rule: RuleJobConfig) -> "list[AnyTrial]":
        """Return the trials of a rule job: the base trial, and the other ones that it gets."""
        if rule.profiler:
            return [] if self.profiler is None else [self.profiler]
        others = dict(zip(self._others, self.trials[1:], strict=True))
        return [self.trials[0], *(others[one] for one in self._config.others_of(rule))]

    @property
    def name(self) -> str:
        """The name of the training job, as far as trials tell."""
        return next(self._opened()).name

    @property
    def ended(self) -> bool:
        """Whether all trials have ended and all their files were looked for."""
        return all(walk.ended for walk in self.all)

    @property
    def ending(self) -> bool:
        """Whether a trial has ended, and its last files are looked for."""
        return any(walk.ending for walk in self.all)

    def look(self) -> bool:
        """Look once for files of all trials; say if anything is new.

        Raises
        ------
        StorageUnavailableError
            If a store cannot be asked, unless it has answered before and may do so again.
        """
        news = [walk.look() for walk in self.all]
        return any(news)

    def absent(self) -> Iterator[str]:
        """Yield a sentence for each trial whose folder is not there."""
        for trial, begun in self._begun():
            if not begun and not is_there(trial):
                yield absent(trial)

    def _begun(self) -> "Iterator[tuple[AnyTrial, bool]]":
        for trial in self.trials:
            yield trial, bool(trial.index.steps)
        if self.profiler is not None:
            yield self.profiler, self.profiler.first_timestamp > 0

    def roots(self) -> list[Path]:
        """Return the folders of tensors that can be watched."""
        return roots(self.trials)

    def summaries(self) -> tuple[TrialSummary, TrialSummary | None]:
        """Return what is told of the trial; of tensors and of profiler data if both are read."""
        found = []
        if self.trials:
            base = self.trials[0]
            found.append(_summary(base, self._steps[0], list(base.index.workers)))
        if self.profiler is not None:
            walk = next(iter(self._windows.values()))
            found.append(_summary(self.profiler, walk, sorted(self.profiler.nodes)))
        return found[0], found[1] if len(found) > 1 else None


def _summary(trial: "AnyTrial", walk: Walk, workers: list[str]) -> TrialSummary:
    steps = walk.steps
    return TrialSummary(
        name=trial.name,
        path=real_path(trial.path),
        ended=walk.ended,
        steps=len(steps),
        first_step=steps[0] if steps else None,
        last_step=steps[-1] if steps else None,
        workers=workers,
    )
