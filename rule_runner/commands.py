"""What the commands do, once the command line is parsed."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import structlog

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
    RuleRequest,
    parse_modes,
    parse_parameters,
    parse_requests,
)
from rule_runner.delivery import DEADLINE_S
from rule_runner.errors import ParameterError, RuleFailedError, UsageError
from rule_runner.evaluated import Evaluated, exit_code
from rule_runner.events import check_source
from rule_runner.loader import LoadedRule, load_builtin, load_from
from rule_runner.outputs import safe_name
from rule_runner.results import dump_json
from rule_runner.runner import Runner
from rule_runner.show import print_results, printable, results_at
from rule_runner.sinks import EventSink
from rule_runner.terminal import LogObserver, observer
from rule_runner.windows import names_over, placed
from smdebug.storage.uri import is_s3

if TYPE_CHECKING:
    from rule_runner.mirror import Mirror

_log: Final = structlog.get_logger()
EVERY_RULE: Final = "all"


def evaluate_trial(**options: Any) -> int:
    """Evaluate what the command line asks for; print the results, and return the exit code."""
    lenient = EVERY_RULE in options["rule"]
    check_source(options["event_source"])
    sinks = event_sinks(options["sink"])
    mirror = _mirror(options["output"])
    output = mirror.folder if mirror else Path(options["output"])
    with redirect_stdout(sys.stderr):  # of the files of rules
        config = configuration({**options, "output": output})
    watching = observer(quiet=options["quiet"])
    try:
        evaluated = _run_mirrored(mirror, config, sinks, watching, options["sink_deadline"])
    finally:
        watching.close()
    code = exit_code(evaluated, fail_on_issues=options["fail_on_issues"], lenient=lenient)
    shown = str if mirror is None or mirror.problem else mirror.shown
    _print(evaluated, options["form"], config, code, shown)
    if options["form"] in {"junit", "sarif"}:  # which have no place for them
        for note in config.notes:
            _log.warning("evaluation_noted", reason=note)
    if evaluated.unwritten:
        print(printable(evaluated.unwritten), file=sys.stderr)  # noqa: T201 - after the results
    for one in evaluated.undelivered:  # they are sent again from the folder that is here
        print(printable(one.sentence(str(config.output))), file=sys.stderr)  # noqa: T201
    return code


def event_sinks(texts: Sequence[str]) -> list[EventSink]:
    """Return the sinks that are asked for."""
    if not texts:
        return []
    from rule_runner.sinks.parsing import parse_sinks  # noqa: PLC0415 - imports every sink

    return parse_sinks(texts, sys.stdout)


def _mirror(output: str) -> "Mirror | None":
    """Return what uploads an output folder; None if it is one of this machine."""
    if not is_s3(output):
        return None
    from rule_runner.mirror import Mirror  # noqa: PLC0415 - only for S3

    return Mirror(output)


def _run_mirrored(
    mirror: "Mirror | None",
    config: EvaluationConfig,
    sinks: Sequence[EventSink],
    watching: LogObserver,
    sink_deadline: float,
) -> Evaluated:
    """Evaluate; what is written for an address in S3 is uploaded meanwhile."""
    if mirror is None:
        return run(config, sinks, watching, sink_deadline)
    with mirror.of(config):
        evaluated = run(config, sinks, watching, sink_deadline)
        mirror.keep = bool(evaluated.undelivered)
    return replace(evaluated, unwritten=evaluated.unwritten or mirror.problem)


def run(
    config: EvaluationConfig,
    sinks: Sequence[EventSink],
    watching: LogObserver,
    sink_deadline: float = DEADLINE_S,
) -> Evaluated:
    """Evaluate, and write the report; what rules print goes to stderr, not among the results."""
    with redirect_stdout(sys.stderr):
        evaluated = Runner(
            config, sinks=sinks, sink_deadline=sink_deadline, observer=watching
        ).run()
    if evaluated.unwritten:
        return evaluated
    folders = [config.folder_of(rule) for rule in config.rules]
    return replace(
        evaluated, report=try_report(folders, config.output, evaluated.result.trial.name)
    )


def try_report(folders: Sequence[Path], output: Path, title: str) -> Path | None:
    """Write the page of evaluations that are over; that it cannot be written costs no verdict."""
    from rule_runner.report import write_report  # noqa: PLC0415 - only when there are results

    try:
        return write_report(folders, output, title)
    except Exception as err:  # noqa: BLE001 - results and verdicts are there
        _log.warning("report_not_written", path=str(output), reason=printable(err))
        return None


def _print(
    evaluated: Evaluated,
    form: str,
    config: EvaluationConfig,
    code: int,
    shown: Callable[[str], str],
) -> None:
    """Print the results: stdout carries nothing else; places are as they are `shown`."""
    result = evaluated.result
    match form:
        case "json":
            print(dump_json(result, indent=2))  # noqa: T201 - stdout carries results
        case "junit":
            from rule_runner.junit import junit  # noqa: PLC0415 - only when it is asked for

            print(junit(result))  # noqa: T201
        case "sarif":
            from rule_runner.sarif import sarif  # noqa: PLC0415 - likewise

            print(sarif(result, [rule.loaded for rule in config.rules], code))  # noqa: T201
        case _:
            places = [results_at(config.folder_of(rule) for rule in config.rules)]
            if evaluated.report is not None:
                places.append(f"Report: {printable(evaluated.report)}")
            print_results(result, [shown(place) for place in places])


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
