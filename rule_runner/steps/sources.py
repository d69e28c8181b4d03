"""Step sources: the trials of one evaluation, and where each rule job gets its steps."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import UNSET
from msgspec.structs import replace

from rule_core.clock import Clock
from rule_core.model.segments import segments_of, step_in_segment
from rule_core.sources.address import TrialAddress
from rule_core.storage.wait_budget import WaitBudget
from rule_core.trials.refresh import no_refresh
from rule_core.trials.trial import Trial
from rule_runner.config.model import EvaluationConfig, RuleJobConfig
from rule_runner.errors import TrialError
from rule_runner.loading.trials import (
    absent,
    is_one_file,
    is_there,
    open_profiler_trial,
    open_trial,
    recognize_again,
    reject_parent,
    roots,
)
from rule_runner.results.schema import TrialSummary
from rule_runner.results.state import segment_steps
from rule_runner.steps.protocol import StepSource
from rule_runner.steps.tensor_steps import TensorSteps

if TYPE_CHECKING:
    from rule_core.trials.profiler_trial import ProfilerTrial
    from rule_runner.loading.trials import AnyTrial


RECOGNIZE_EVERY_S: Final = 0.5  # while nothing is known of a trial


class StepSources:
    """The trials of one evaluation: a source of tensor steps, and one for each window length.

    Attributes
    ----------
    trials
        The tensor trial, then the trials that rules compare with; empty if no rule reads tensors.
    profiler
        The profiler trial; None if no rule reads profiler data.
    all
        The sources, that of tensor steps first.
    recorded
        Real path -> whether an earlier process of this evaluation showed the other trial whole.

    Raises
    ------
    TrialError
        If a trial does not exist, and is not waited for.
    """

    def __init__(
        self, config: EvaluationConfig, clock: Clock, patience: WaitBudget | None = None
    ) -> None:
        self._config = config
        self._patience = patience
        self.recorded: Mapping[str, bool] = {}
        self._checked: list[AnyTrial] = []
        self._others = config.others_of(*config.rules)
        tensors = [rule for rule in config.rules if not rule.profiler]
        lengths = sorted({rule.window_us for rule in config.rules if rule.profiler})
        self.trials = self._open_trials() if tensors else []
        self.profiler = self._open_profiler_trial() if lengths else None
        self._opened: list[AnyTrial] = [*self.trials, *filter(None, [self.profiler])]
        for trial in self._opened:
            exists = is_there(trial)
            waits = bool(config.waits.wait_for_trial)
            if not (exists or waits):
                raise TrialError(absent(trial))
            if not waits or (exists and trial is self.profiler and is_one_file(trial)):
                reject_parent(trial)
                self._checked.append(trial)
        self._windows = self._over_windows(lengths, clock)
        self._steps = self._over_steps(clock)
        self._clock = clock
        self._recognition_due = clock.monotonic() + RECOGNIZE_EVERY_S
        self._set_begun()
        self.all: tuple[StepSource, ...] = (*self._steps, *self._windows.values())

    def _open_trials(self) -> list[Trial]:
        config = self._config
        named = [(config.trial, config.trial_name), *((other, None) for other in self._others)]
        return [
            open_trial(address, name, config.window, config.sources, patience=self._patience)
            for address, name in named
        ]

    def _open_profiler_trial(self) -> "ProfilerTrial":
        config = self._config
        return open_profiler_trial(
            str(config.profiler_trial or config.trial),
            config.trial_name,
            config.profiler_stop_files,
            config.waits.stop_grace,
            waits_for_unseen=config.waits.wait,
            patience=self._patience,
        )

    def _over_steps(self, clock: Clock) -> Sequence[TensorSteps]:
        if not self.trials:
            return ()
        waits = self._config.waits
        base, *others = (trial.index for trial in self.trials)
        times = (waits.end_grace, waits.event_file_wait, waits.poll_max)
        once = not waits.wait
        return (TensorSteps(base, others, clock, *times, once=once, as_it_is=waits.as_it_is),)

    def _over_windows(self, lengths: Sequence[int], clock: Clock) -> "dict[int, StepSource]":
        if self.profiler is None:
            return {}
        from rule_runner.steps.profiler_windows import ProfilerPoller, ProfilerWindows

        waits = self._config.waits
        poller = ProfilerPoller(self.profiler, clock, waits.end_grace, waits.poll_max)
        return {
            length: ProfilerWindows(poller, length, leads=length == lengths[0])
            for length in lengths
        }

    def of(self, rule: RuleJobConfig) -> StepSource:
        """Return the step source of a rule job."""
        return self._windows[rule.window_us] if rule.profiler else self._steps[0]

    def trials_of(self, rule: RuleJobConfig) -> "list[AnyTrial]":
        """Return the base trial of a rule job, and the other trials that it compares with."""
        if rule.profiler:
            return [] if self.profiler is None else [self.profiler]
        by_address = dict(zip(self._others, self.trials[1:], strict=True))
        return [self.trials[0], *(by_address[other] for other in self._config.others_of(rule))]

    @property
    def name(self) -> str:
        """The name of the training job, according to the first trial."""
        return self._opened[0].name

    @property
    def ended(self) -> bool:
        """Whether all trials have ended and their last files have been listed."""
        return all(source.ended for source in self.all)

    @property
    def ending(self) -> bool:
        """Whether a trial has ended and its last files may still arrive."""
        return any(source.ending for source in self.all)

    def look(self, *, at_once: bool = False, last: bool = False) -> bool:
        """Look once for new files of all trials; see `StepSource.look`.

        Raises
        ------
        StorageUnavailableError
            If a store does not answer, unless it has answered before and the error is transient.
        """
        self._recognize(at_once=at_once or last)
        changes = [source.look(at_once=at_once, last=last) for source in self.all]
        self._set_begun(has_looked=True)
        return any(changes)

    def settle(self) -> bool:
        """Let what is there be judged, and return whether that changes anything.

        See `StepSource.settle`.
        """
        changes = [source.settle() for source in self.all]
        return any(changes)

    def _recognize(self, *, at_once: bool) -> None:
        """Look at trials without known files again: they may be in any format."""
        now = self._clock.monotonic()
        unrecognized = [trial for trial in self.trials if trial.index.unrecognized]
        if not unrecognized or (now < self._recognition_due and not at_once):
            return
        remote = any(trial.index.is_remote for trial in unrecognized)
        pause = self._config.waits.poll_max if remote else RECOGNIZE_EVERY_S
        self._recognition_due = now + pause
        replaced = [
            recognize_again(trial, self._config.sources, patience=self._patience)
            for trial in unrecognized
        ]
        if any(replaced):
            self._steps[0].replace([trial.index for trial in self.trials])

    def _set_begun(self, *, has_looked: bool = False) -> None:
        """Let rules over tensors wait until the formats of their trials are known.

        By then it is decided, once, which other trials they see as a whole: those that have ended.
        """
        for steps in self._steps:
            others, ended = self.trials[1:], steps.others_ended()
            formats_known = not any(trial.index.unrecognized for trial in self.trials)
            if steps.begun or not formats_known or (others and not (has_looked and ended)):
                continue
            steps.begun = True
            for trial, address, has_ended in zip(others, self._others, ended, strict=True):
                trial.is_whole = self.recorded.get(address.canonical, has_ended)

    def check_that_trials_exist(self) -> None:
        """Raise an error if the folder of a trial does not exist, or only contains trials.

        Raises
        ------
        TrialError
            Names the first such trial.
        """
        for trial in self._opened:
            if isinstance(trial, Trial):
                has_begun = bool(trial.index.steps)
            else:
                has_begun = trial.first_timestamp > 0
            if not has_begun and not is_there(trial):
                raise TrialError(absent(trial))
            if not (has_begun or trial in self._checked):
                self._checked.append(trial)
                reject_parent(trial)

    def roots(self) -> list[Path]:
        """Return the folders of tensor trials that can be watched."""
        return roots(self.trials)

    def clear_cached_bytes(self) -> None:
        """Drop the bytes of tensors that have been read."""
        for trial in self.trials:
            trial.index.tensors.clear_cached_bytes()

    def summaries(self) -> tuple[TrialSummary, TrialSummary | None]:
        """Return the summary of the trial, and that of the profiler trial if both are read."""
        summaries = []
        if self.trials:
            base = self.trials[0]
            workers = list(base.index.workers)
            summary = _summary(base.name, self._config.trial, self._steps[0], workers)
            summaries.append(_with_inputs(summary, base))
        if self.profiler is not None:
            source = next(iter(self._windows.values()))
            address = self._config.profiler_trial or self._config.trial
            nodes = sorted(self.profiler.nodes)
            summaries.append(_summary(self.profiler.name, address, source, nodes))
        return summaries[0], summaries[1] if len(summaries) > 1 else None


def _with_inputs(summary: TrialSummary, trial: Trial) -> TrialSummary:
    """Return a summary with the general inputs that the trial holds, and those that it lacks."""
    from builtin_rules.general_inputs import general_inputs

    view = trial.share()
    with no_refresh(view):
        held = general_inputs(view)
    return replace(
        summary,
        saved=[label for label, is_held in held.items() if is_held],
        not_saved=[label for label, is_held in held.items() if not is_held],
    )


def _summary(
    name: str, address: TrialAddress, source: StepSource, workers: list[str]
) -> TrialSummary:
    steps = source.steps
    return TrialSummary(
        name=name,
        path=address.canonical,
        ended=source.ended,
        steps=len(steps),
        first_step=step_in_segment(steps[0]) if steps else None,
        last_step=step_in_segment(steps[-1]) if steps else None,
        segments=segment_steps(segments_of(steps)) if source.segments() else UNSET,
        workers=workers,
    )
