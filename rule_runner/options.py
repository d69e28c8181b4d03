"""configuration, rule_jobs: what is evaluated when options of evaluate ask for it."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from rule_runner.actions.options import parse_actions
from rule_runner.binding import bind, construct
from rule_runner.config import (
    ACTIONS,
    DEFAULT_WINDOW,
    STOP_FILE,
    WINDOW,
    EvaluationConfig,
    Isolation,
    RuleJobConfig,
)
from rule_runner.errors import ParameterError, RuleFailedError, UsageError
from rule_runner.loader import LoadedRule, load_builtin, load_from
from rule_runner.outputs import safe_name
from rule_runner.rule_requests import (
    RuleRequest,
    parse_modes,
    parse_parameters,
    parse_requests,
)
from rule_runner.windows import names_over, placed
from smdebug.storage.uri import is_s3

EVERY_RULE: Final = "all"


def _asked_for(options: Mapping[str, Any]) -> tuple[tuple[RuleJobConfig, ...], tuple[str, ...]]:
    """Return the rule jobs that the options ask for, and what is to be told besides."""
    if definition := options.get("definition"):
        from rule_runner.definitions.rule_jobs import asked_for  # noqa: PLC0415 - only for --job

        return asked_for(definition, options)
    jobs = rule_jobs(
        parse_requests(options["rule"], options["source"]),
        options["param"],
        options["start_step"],
        options["end_step"],
        modes=options["mode"],
        other_trials=options["other_trial"],
        actions=options["action"],
        tensors=options["trial"] is not None,
        windows=options["profiler_trial"] is not None,
        run=options["rule_timeout"] is None and options["isolate"] == Isolation.NONE,
    )
    return jobs, ()


def configuration(options: Mapping[str, Any]) -> EvaluationConfig:
    """Return the evaluation that the options of evaluate ask for.

    Raises
    ------
    ClientError
        If a rule cannot be loaded.
    UsageError
        If options do not go together.
    """
    asked, notes = _asked_for(options)
    jobs = placed(asked, options["trial"], options["profiler_trial"])
    trial = options["trial"] or options["profiler_trial"]
    stop_files = _stop_files(trial)
    windows_only = all(one.profiler for one in jobs)
    idle = options["idle_timeout"]
    return EvaluationConfig(
        trial=trial,
        profiler_trial=options["profiler_trial"],
        rules=jobs,
        output=options["output"],
        other_trials=options["other_trial"],
        trial_name=options.get("trial_name"),
        training_job_name=options["training_job_name"],
        keep_going=options["keep_going"],
        wait=not options["no_wait"],
        wait_for_trial=options["wait_for_trial"],
        timeout=options["timeout"],
        idle_timeout=idle or None,
        rule_timeout=options["rule_timeout"],
        isolate=Isolation(options["isolate"]),
        end_grace=options["end_grace"],
        event_file_wait=options["event_file_wait"],
        poll_max=options["poll_max"],
        action_timeout=options["action_timeout"],
        dry_run=options["dry_run"],
        overwrite=options["overwrite"],
        event_source=options["event_source"],
        window=_window(),
        stop_files=() if windows_only else stop_files,
        profiler_stop_files=stop_files,
        own_folders=bool(options.get("definition")),
        notes=notes,
    )


def _window() -> int:
    """Return the wait window that the environment sets, in steps."""
    text = os.environ.get(WINDOW) or str(DEFAULT_WINDOW)
    if not (text.isascii() and text.isdigit()):
        msg = f"Environment variable {WINDOW} must be a whole number >= 0, got {text!r}."
        raise UsageError(msg)
    return int(text)


def _stop_files(trial: str) -> tuple[Path, ...]:
    """Return the stop file that the environment names; a relative one lies in the trial."""
    given = os.environ.get(STOP_FILE)
    if given and is_s3(trial) and not Path(given).is_absolute():
        msg = (
            f"Environment variable {STOP_FILE} must be an absolute path on this machine, since "
            f"trial {trial!r} is in S3, got {given!r}."
        )
        raise UsageError(msg)
    return (Path(trial) / given,) if given else ()


def rule_jobs(
    requests: Sequence[RuleRequest],
    parameters: Sequence[str],
    start_step: int | None = None,
    end_step: int | None = None,
    *,
    modes: Sequence[str] = (),
    other_trials: Sequence[str] = (),
    actions: Sequence[str] = (),
    tensors: bool = True,
    windows: bool = False,
    run: bool = True,
) -> tuple[RuleJobConfig, ...]:
    """Load the rules that are asked for, and give each its name, its parameters and its mode.

    ``all`` are the built-in rules over `tensors`, over `windows` of profiler data, or both. Of
    these, a rule that cannot do without a parameter and was given none is there too, and
    says what it lacks. Without `run` the files of rules are only looked at: for rules that are
    made in processes of their own.

    Raises
    ------
    ClientError
        If a rule cannot be loaded.
    UsageError
        If two rule jobs have one name, parameters, modes or actions do not say whose they are, or
        an action is none.
    """
    over = {"tensors": tensors, "windows": windows}
    loaded = [(*one, request) for request in requests for one in _load(request, over, run=run)]
    ids = [safe_name(one) for one, *_ in loaded]
    for one in ids:
        if ids.count(one) > 1:
            msg = f"Two rule jobs are called {one!r}. Give IDs: --rule first={one}."
            raise UsageError(msg)
    given = parse_parameters(parameters, ids)
    texts = {one: given[one].pop(ACTIONS, "") for one in ids}
    operator = parse_actions(actions, ids)
    mode = parse_modes(modes, ids)
    lacking = {
        one: _lacking(rule, other_trials)
        for one, rule, request in loaded
        if request.name == EVERY_RULE and not given[one]
    }
    return tuple(
        RuleJobConfig(
            configuration_name=one,
            loaded=rule,
            parameters=given[one],
            actions=texts[one],
            start_step=start_step,
            end_step=end_step,
            mode=mode[one],
            lacking=lacking.get(one, ""),
            operator_actions=operator[one],
        )
        for one, rule, _ in loaded
    )


def _load(
    request: RuleRequest, over: Mapping[str, bool], *, run: bool
) -> list[tuple[str, LoadedRule]]:
    """Return ID and class of a requested rule; of ``all`` every built-in rule over `over`."""
    if request.source is not None:
        loaded = load_from(request.source, request.name, run=run)
        return [(request.id or loaded.name, loaded)]
    if request.name == EVERY_RULE:
        return [(name, load_builtin(name)) for name in names_over(**over)]
    loaded = load_builtin(request.name or "")
    return [(request.id or loaded.name, loaded)]


def _lacking(loaded: LoadedRule, other_trials: Sequence[str]) -> str:
    """Return a sentence on what a rule needs and was not given; "" if it can be constructed."""
    try:
        construct(bind(loaded, {}), None, [None for _ in other_trials])
    except ParameterError as err:
        return str(err)
    except RuleFailedError:  # of its trials, and there are none yet
        return ""
    return ""
