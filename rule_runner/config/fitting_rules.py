"""The rules of ``auto``: those that fit what a trial holds and the kind of its training."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from rule_core.exceptions import SMDebugError
from rule_core.reading.source_index import SourceIndex
from rule_core.sources.options import DEFAULT, SourceOptions
from rule_core.storage.base import StorageUnavailableError
from rule_core.trials.trial import Trial
from rule_runner.config.profiler_windows import judges_windows, names_over
from rule_runner.errors import TrialError, translated
from rule_runner.loading.loader import LoadedRule, load_builtin
from rule_runner.loading.parameters import bind, lacking, missing_inputs
from rule_runner.loading.trial_search import TrialFolder
from rule_runner.loading.trials import is_there, open_profiler_trial, open_trial

if TYPE_CHECKING:
    from rule_runner.loading.trials import AnyTrial


INPUTS: Final = "whose inputs the trial does not hold"
PARAMETER: Final = "that need a parameter"
KIND: Final = "that cannot judge this kind of training"


class Unfit(NamedTuple):
    """Why a rule is left out: the cause, which many rules share, and a sentence."""

    cause: str
    reason: str


@dataclass(frozen=True, slots=True)
class RuleChoice:
    """The rules that fit a trial.

    Attributes
    ----------
    rules
        Their names.
    unfit
        Why each of the other rules is left out, by name.
    """

    rules: tuple[str, ...]
    unfit: Mapping[str, Unfit]

    @property
    def left_out(self) -> dict[str, str]:
        """A sentence on why each of the other rules is left out, by name."""
        return {name: unfit.reason for name, unfit in self.unfit.items()}

    def note(self) -> str:
        """Return one sentence on all rules that are left out; "" if there are none."""
        if not self.unfit:
            return ""
        counts = Counter(unfit.cause for unfit in self.unfit.values())
        parts = ", ".join(f"{number} {cause}" for cause, number in counts.most_common())
        rules = "1 rule was" if len(self.unfit) == 1 else f"{len(self.unfit)} rules were"
        return f"{rules} left out: {parts}. The report names each with the reason."


def choose_rules(
    trial: str | None,
    profiler_trial: str | None,
    sources: SourceOptions = DEFAULT,
    *,
    follow: bool,
) -> RuleChoice:
    """Return the built-in rules that fit a tensor trial, a profiler trial or both, by their paths.

    Parameters
    ----------
    follow
        Whether a trial is followed until it ends. The inputs of a rule may then still arrive, if
        the trial is running or does not exist yet: only rules that lack a parameter are left out.

    Raises
    ------
    TrialError
        If a trial cannot be read.
    """
    names = names_over(tensors=trial is not None, windows=profiler_trial is not None)
    rules = {name: load_builtin(name) for name in names}
    reasons = {}
    problem = f"Trial {trial or profiler_trial!r} cannot be read: "
    with translated(TrialError, SMDebugError, before=problem):
        trials = _open(trial, profiler_trial, sources)
        for name, rule in rules.items():
            opened = trials.get(judges_windows(rule, otherwise=False))
            if opened is not None and follow and not _has_ended(opened):
                opened = None
            reasons[name] = _reason_against(rule, opened)
    unfit = {name: reason for name, reason in reasons.items() if reason is not None}
    return RuleChoice(tuple(name for name in names if name not in unfit), unfit)


def has_ended(folder: TrialFolder, sources: SourceOptions = DEFAULT) -> bool:
    """Return whether the training job of a trial has ended, by its end marks alone.

    A trial that cannot be read counts as ended.
    """
    try:
        tensors = folder.tensors and not _tensors_have_ended(folder.path, sources)
        profiler = folder.profiler and not open_profiler_trial(folder.path, None).job_finished()
    except (StorageUnavailableError, SMDebugError, TrialError):
        return True
    return not (tensors or profiler)


def _tensors_have_ended(path: str, sources: SourceOptions) -> bool:
    """Return whether a trial has ended; files in other formats tell it only once they are read."""
    index = open_trial(path, sources=sources).index
    if isinstance(index, SourceIndex):
        index.refresh()
    return index.has_ended()


def _open(
    trial: str | None, profiler_trial: str | None, sources: SourceOptions
) -> "dict[bool, AnyTrial]":
    """Open the trial of tensors (False) and that of profiler data (True), and read their index.

    A trial that does not exist yet is left out.
    """
    trials: dict[bool, AnyTrial] = {}
    if trial is not None:
        tensors = open_trial(trial, sources=sources)
        if is_there(tensors):
            tensors.index.refresh(whole=True)
            trials[False] = tensors
    if profiler_trial is not None:
        profiler = open_profiler_trial(profiler_trial, None)
        if is_there(profiler):
            profiler.refresh()
            trials[True] = profiler
    return trials


def _has_ended(trial: "AnyTrial") -> bool:
    return trial.index.has_ended() if isinstance(trial, Trial) else trial.job_finished()


def _reason_against(rule: LoadedRule, trial: "AnyTrial | None") -> Unfit | None:
    """Return why not to run a rule on a trial; a trial that is None may still hold anything."""
    reason = lacking(rule, ())
    if reason:
        return Unfit(PARAMETER, reason)
    if trial is None:
        return None
    missing = missing_inputs(bind(rule, {}), trial)
    if missing:
        return Unfit(INPUTS, f"It needs {', '.join(missing)}, which the trial does not hold.")
    reason = rule.rule_class.unsuited(trial) if isinstance(trial, Trial) else ""
    return Unfit(KIND, reason) if reason else None
