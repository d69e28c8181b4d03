"""train: runs an unchanged training script, saves its tensors, and judges them meanwhile."""

import asyncio
import tempfile
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from builtin_rules.profiler_table import PROFILER_RULES
from rule_core.saving.presets import SAVE_INTERVAL
from rule_runner.commands.evaluate import event_sinks
from rule_runner.commands.profile.command import RULE
from rule_runner.commands.profile.recording import ProfileRecording
from rule_runner.commands.profile.recording_options import RecordingOptions
from rule_runner.commands.train.evaluator import IDLE_S
from rule_runner.commands.train.hook_config import hook_document
from rule_runner.commands.train.judged_recording import RESULTS, JudgedRecording
from rule_runner.commands.train.script import say, script_name
from rule_runner.commands.train.supervisor import Supervisor, TrainConfig
from rule_runner.config.defaults import FITTING_RULES
from rule_runner.config.model import check_is_local, default_output
from rule_runner.config.request import EvaluationRequest, RuleRequest
from rule_runner.config.resolve import resolve
from rule_runner.errors import OutputError, UsageError
from rule_runner.notify.event import check_source
from rule_runner.notify.sinks.spec import writes_to_stdout
from rule_runner.results.durable_files import output_errors

_NAMES: Final = {name.casefold(): name for name in PROFILER_RULES}


def train(
    request: EvaluationRequest,
    command: tuple[str, ...],
    *,
    trial_folder: str | None = None,
    hook_config: Path | None = None,
    collections: str | None = None,
    save_interval: int | None = None,
    preset: str | None = None,
    stop_on_finding: bool = False,
    grace: float = 30.0,
    profile: RecordingOptions | None = None,
) -> int:
    """Run the script and judge its trainings; print the verdicts, and return the exit code.

    With `profile`, its profile is recorded and judged too.

    Raises
    ------
    ClientError, UsageError, OutputError
        If an option is wrong; then the script is not run.
    """
    _check_sinks(request)
    name = script_name(command)
    over_profile = request
    if profile is not None:
        request, over_profile = split_request(request)
    if not request.rules and request.job is None:
        request = replace(request, rules=(RuleRequest(name=FITTING_RULES),))
    output = Path(request.output or default_output(name))
    check_is_local(output, "--output of train")
    check_is_local(trial_folder or output, "--trial of train")
    request = replace(
        request,
        trial=trial_folder or str(output / "trial"),
        profiler_trial=None,
        output=str(output / "results"),
        follow_issues=True,
    )
    evaluation = resolve(replace(request, wait_for_trial=IDLE_S))
    interval = save_interval or (SAVE_INTERVAL if hook_config is None else None)
    document = hook_document(
        *(hook_config, evaluation.rules, collections, interval, preset),
        is_cheap=request.fits_rules,
    )
    chosen = trial_folder or document.get("LocalPath")
    trial_path = chosen or output / "trial"
    check_is_local(trial_path, "--trial of train")
    trial = Path(trial_path).absolute()
    _check_is_free(trial, "--trial" if chosen else "--output")
    _check_is_free(evaluation.output, "--output")
    config = TrainConfig(
        name=name,
        command=command,
        hook={**document, "LocalPath": str(trial)},
        trial=trial,
        request=request,
        evaluation=evaluation,
        stop_on_finding=stop_on_finding,
        grace=grace,
    )
    with tempfile.TemporaryDirectory(prefix="rule-runner-") as folder:
        control = Path(folder)
        judged = None
        if profile is not None:
            recording = ProfileRecording(profile, str(output / "profile"), control, say)
            judged = JudgedRecording(
                recording, replace(over_profile, trial_name=name), output / RESULTS
            )
        return asyncio.run(Supervisor(config, control, judged).run())


def _check_sinks(request: EvaluationRequest) -> None:
    """Check sinks and source of events before the script runs."""
    kind = writes_to_stdout(request.sinks)
    if kind:
        raise UsageError(
            f"--sink {kind} cannot be used with train: stdout is the script's. Use file:PATH."
        )
    event_sinks(request.sinks)
    check_source(request.event_source)


def _check_is_free(folder: Path, option: str) -> None:
    with output_errors(folder):
        try:
            is_used = any(folder.iterdir())
        except FileNotFoundError:
            return
    if is_used:
        raise OutputError(
            f"Folder {str(folder)!r} is not empty. Choose another one with {option}, or remove it."
        )


def split_request(request: EvaluationRequest) -> tuple[EvaluationRequest, EvaluationRequest]:
    """Return an evaluation without profiler rules, and one with only these and the report.

    Parameters, modes and actions follow the rule jobs that they name; a mode without a name is
    that of both.
    """
    own = [rule for rule in request.rules if _is_profiler_rule(rule)]
    ids = [rule.id or _NAMES[(rule.name or "").casefold()] for rule in own]
    if RULE not in ids:
        own.insert(0, RuleRequest(name=RULE))
        ids.append(RULE)

    def fields(*, profiler: bool) -> dict[str, tuple[str, ...]]:
        """Return the options that name one of the profiler rules, or the others."""
        ends = {"parameters": ".", "modes": "=", "actions": "="}
        return {
            field: tuple(
                text
                for text in getattr(request, field)
                if text.startswith(tuple(f"{rule_id}{end}" for rule_id in ids)) is profiler
            )
            for field, end in ends.items()
        }

    others = tuple(rule for rule in request.rules if not _is_profiler_rule(rule))
    profiler_fields = fields(profiler=True)
    profiler_fields["modes"] += tuple(mode for mode in request.modes if "=" not in mode)
    return (
        replace(request, rules=others, **fields(profiler=False)),
        replace(
            request, rules=tuple(own), job=None, start_step=None, end_step=None, **profiler_fields
        ),
    )


def _is_profiler_rule(rule: RuleRequest) -> bool:
    return rule.source is None and (rule.name or "").casefold() in _NAMES
