"""Chooses the built-in rules for a trial: those whose required inputs it holds."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rule_core.exceptions import SMDebugError
from rule_core.reading.source_index import SourceIndex
from rule_core.reading.trial_index import TrialIndex
from rule_core.storage import StorageUnavailableError
from rule_core.trials import Trial
from rule_runner.config.profiler_windows import judges_windows, names_over
from rule_runner.config.resolve import lacking
from rule_runner.errors import TrialError
from rule_runner.loading.loader import LoadedRule, load_builtin
from rule_runner.loading.parameters import bind, missing_inputs
from rule_runner.loading.trial_search import TrialFolder
from rule_runner.loading.trials import open_profiler_trial, open_trial

if TYPE_CHECKING:
    from rule_runner.loading.trials import AnyTrial


@dataclass(frozen=True, slots=True)
class RuleChoice:
    """The rules to run on a trial.

    Attributes
    ----------
    rules
        Their names.
    left_out
        A sentence on why each of the other rules is not run, by name.
    """

    rules: tuple[str, ...]
    left_out: dict[str, str]


def choose_rules(folder: TrialFolder, *, follow: bool) -> RuleChoice:
    """Return the built-in rules to run on the trial in a folder.

    Parameters
    ----------
    follow
        Whether the trial is followed until it ends. The inputs of a rule may then still arrive:
        only rules that lack a parameter are left out.

    Raises
    ------
    TrialError
        If the trial cannot be read.
    """
    try:
        trials = _open(folder)
        running = {over for over, trial in trials.items() if follow and not _has_ended(trial)}
        names = names_over(tensors=folder.tensors, windows=folder.profiler)
        rules = {name: load_builtin(name) for name in names}
        reasons = {}
        for name, rule in rules.items():
            over = judges_windows(rule, otherwise=False)
            reasons[name] = _reason_against(rule, trials[over], is_running=over in running)
    except (StorageUnavailableError, SMDebugError) as err:
        msg = f"Trial {folder.path!r} cannot be read: {err}"
        raise TrialError(msg) from err
    left_out = {name: text for name, text in reasons.items() if text}
    return RuleChoice(tuple(name for name in names if name not in left_out), left_out)


def has_ended(folder: TrialFolder) -> bool:
    """Return whether the training job of a trial has ended, by its end marks alone.

    A trial that cannot be read counts as ended.
    """
    try:
        tensors = folder.tensors and not _index_has_ended(open_trial(folder.path).index)
        profiler = folder.profiler and not open_profiler_trial(folder.path, None).job_finished()
    except (StorageUnavailableError, SMDebugError, TrialError):
        return True
    return not (tensors or profiler)


def _index_has_ended(index: TrialIndex) -> bool:
    """Return whether a trial has ended; files in other formats tell it only once they are read."""
    if isinstance(index, SourceIndex):
        index.refresh()
    return index.has_ended()


def _open(folder: TrialFolder) -> "dict[bool, AnyTrial]":
    """Open the trial of tensors (False) and that of profiler data (True), and read their index."""
    trials: dict[bool, AnyTrial] = {}
    if folder.tensors:
        trials[False] = tensors = open_trial(folder.path)
        tensors.index.refresh(whole=True)
    if folder.profiler:
        trials[True] = profiler = open_profiler_trial(folder.path, None)
        profiler.refresh()
    return trials


def _has_ended(trial: "AnyTrial") -> bool:
    return trial.index.has_ended() if isinstance(trial, Trial) else trial.job_finished()


def _reason_against(rule: LoadedRule, trial: "AnyTrial", *, is_running: bool) -> str:
    """Return a sentence on why not to run a rule on a trial; "" if it can run."""
    reason = lacking(rule, ())
    if reason or is_running:
        return reason
    missing = missing_inputs(bind(rule, {}), trial)
    return f"It needs {', '.join(missing)}, which the trial does not hold." if missing else ""
