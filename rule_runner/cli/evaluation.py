"""evaluate, and the options that other commands share with it."""

from functools import wraps
from itertools import filterfalse
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from rule_runner.cli import completion
from rule_runner.cli.options import (
    POSITIVE,
    Command,
    Option,
    choice,
    endpoint_option,
    flag,
    heading,
    number,
    output,
    takes,
    text,
    texts,
    without,
)
from rule_runner.cli.program.help_pages import Heading, HelpedCommand
from rule_runner.cli.reading import MODE_HELP, STEPS_AND_NAMES, source_options
from rule_runner.cli.reporting import reporting, results_alone
from rule_runner.config import defaults
from rule_runner.errors import UsageError
from rule_runner.logs import configure

if TYPE_CHECKING:
    from rule_runner.config.job_file.definition import JobDefinition
    from rule_runner.config.request import EvaluationRequest

FORMATS: Final = ("table", "json", "junit", "sarif", "brief")
ISSUES: Final = ("error", "warning")
ISOLATIONS: Final = tuple(isolation.value for isolation in defaults.Isolation)


_TRIAL_HELP: Final = "Root of the trial, s3://bucket/prefix, or - for standard input."
_profiler_trial: Final = text(
    "--profiler-trial",
    "PATH",
    "Profiler data for profiler rules: the folder with 'system' and 'framework'.",
)
_RULES: Final = (
    heading(Heading.RULES),
    texts(
        "--rule",
        "[ID=]NAME",
        "A built-in rule, 'all' of them, or 'auto' for those that fit the trial; with --source, a "
        "class in that file.",
        shell_complete=completion.rule_names,
    ),
    texts("--source", "[ID=]FILE", "A file with a rule class: a path or s3:// address."),
    texts(
        "-p",
        "[ID.]KEY=VALUE",
        "A parameter of a rule.",
        "--param",
        "parameters",
        shell_complete=completion.rule_parameters,
    ),
    texts("--other-trial", "PATH", "Another trial, for rules that compare.", "other_trials"),
    number(
        "--min-coverage",
        "Minimum share of steps, such as 0.9, that a rule must judge; NotEvaluated below it.",
        allowed=click.FloatRange(0, 1),
        metavar="SHARE",
    ),
    heading(Heading.STEPS),
    click.option("--start-step", type=click.IntRange(0), help="First global step to judge."),
    click.option(
        "--end-step",
        type=click.IntRange(0),
        help="End of the range of global steps, not judged itself.",
    ),
    flag("--keep-going", "Continue after the first finding of a rule."),
)


def _modes(more_forms: str = "", more_help: str = "") -> Option:
    """Return the option for modes of rules, which may have a second meaning."""
    return texts(
        "--mode",
        f"[ID=]enforce|observe{more_forms}",
        "What a finding does: 'observe' only reports it, without actions or exit code 10."
        f"{more_help}",
        "modes",
        shell_complete=completion.modes,
    )


_READING: Final = (
    *STEPS_AND_NAMES,
    heading(Heading.RULES),
    _modes("|MODE=GLOB", f" Or: {MODE_HELP}"),
)
_WAITS: Final = (
    heading(Heading.STEPS),
    without("wait", "Judge the steps saved so far; do not wait for more."),
    number("--wait-for-trial", "Wait this long for the trial to appear.", 0),
    number("--timeout", "End the evaluation after this time.", None, POSITIVE),
    number(
        "--idle-timeout",
        "End after this time without a new file; 0 disables it.",
        defaults.DEFAULT_IDLE_TIMEOUT_S,
    ),
)
_LIMITS: Final = (
    heading(Heading.STEPS),
    number(
        "--end-grace",
        "Keep looking for files of slow workers after the end mark.",
        defaults.DEFAULT_END_GRACE_S,
    ),
    number(
        "--event-file-wait",
        "How long to wait for an event file that an index file names.",
        defaults.DEFAULT_EVENT_FILE_WAIT_S,
    ),
    number(
        "--poll-max",
        "Longest pause between looks at a trial in S3.",
        defaults.DEFAULT_POLL_MAX_S,
        click.FloatRange(0.1),
    ),
    heading(Heading.SYSTEM),
    number(
        "--rule-timeout",
        "Time limit for a step; runs each rule in its own process.",
        None,
        POSITIVE,
    ),
)
_OUTPUT: Final = (
    heading(Heading.RESULTS),
    output("Output folder, or s3://bucket/prefix."),
    flag("--overwrite", "Replace an evaluation in the output folder."),
)
FAIL_ON: Final = (
    heading(Heading.EXIT_CODE),
    click.option(
        "--fail-on",
        type=click.Choice(ISSUES),
        help="Exit with code 10 if a rule in mode enforce finds an issue that is at least so "
        "serious.",
    ),
    flag("--fail-on-issues", "The same as --fail-on warning."),
)
BASELINE: Final = (
    heading(Heading.RULES),
    text("--baseline", "FILE", "Compare with good runs, too: a file of 'baseline make'."),
    text("--trend", "DIR", "With --baseline: look for small steps over the runs in this folder."),
)
FOLLOW: Final = flag("--follow", "Follow trials that have not ended until they do.")
_REPORT: Final = without("report", "Write no report.html, and no measurements for it.")
_MESSAGES: Final = (
    heading(Heading.EVENTS),
    texts("--sink", "KIND[:TARGET][,region=R]", "Also send events there.", "sinks"),
    number(
        "--sink-deadline",
        "How long to wait at the end for sinks to accept the remaining events.",
        30.0,
    ),
    texts(
        "--action",
        "[ID=]KIND:TARGET",
        "Action on the first finding of a rule in mode enforce: stop-training:NAME, "
        "email:ADDRESS, sms:+NUMBER, webhook:URL or command:PROGRAM ARGUMENT...",
        "actions",
    ),
    number(
        "--action-timeout",
        "Time limit for each action.",
        defaults.DEFAULT_ACTION_TIMEOUT_S,
        POSITIVE,
    ),
    flag("--dry-run", "Print what actions would do, without doing it."),
    click.option("--event-source", default="rule-runner", help="Source field of events."),
)
_RESULTS: Final = (
    heading(Heading.RESULTS),
    _REPORT,
    choice("--format", FORMATS, "Format of the results on standard output."),
    *_MESSAGES,
    text("--training-job-name", "NAME", "Name of the training job in events."),
    click.option(
        "--stop-on",
        type=click.Choice(ISSUES),
        help="Severity of findings from which actions and --stop-on-finding stop a training; "
        "by default error.",
    ),
    *FAIL_ON,
)
_LOGS: Final = (
    heading(Heading.GENERAL),
    flag("--quiet", "Log errors only, and show no progress.", "-q"),
    click.option("-v", "--verbose", count=True, help="Log progress; twice: log every step."),
    endpoint_option,
)
_isolate: Final = click.option(  # docker run has its own
    "--isolate",
    type=click.Choice(ISOLATIONS),
    default=ISOLATIONS[0],
    show_default=True,
    callback=lambda _context, _option, value: defaults.Isolation(value),
    help="'process' runs each rule in its own process with a reduced environment. No sandbox.",
)
_MEASURING: Final = (  # a container measures by itself
    heading(Heading.SYSTEM),
    text(
        "--measure-on",
        "EXECUTOR",
        "Measure the trial in worker processes, such as local:4; the verdicts are the same.",
    ),
    text(
        "--measurements",
        "DIR",
        "Use what 'rule-runner measure' has measured: a folder, or s3://bucket/prefix.",
    ),
)
_retention: Final = text(  # a container sees only its own output folder
    "--retention",
    "N|TIME",
    "Keep only the newest evaluations beside the output folder, such as 50, or those "
    "that ended within a time, such as 30d.",
)
TAG_RUN: Final = flag(  # a container reads trials only
    "--tag-run",
    "Show the verdicts where the run is shown: as texts in TensorBoard, as tags in MLflow.",
)
_JOB: Final = (
    heading(Heading.RULES),
    text(
        "--job",
        "FILE",
        "Rules of a training job: a request in JSON or YAML, or a Python file that defines "
        "a list of rules.",
    ),
    texts("--only", "NAME", "With --job: evaluate only this rule."),
    texts("--except", "NAME", "With --job: leave out this rule.", "exclude"),
)
_EVALUATE: Final = (
    heading(Heading.TRIAL),
    text("--trial", "PATH", f"{_TRIAL_HELP} Optional if a job file names it."),
    _profiler_trial,
    text(
        "--trial-name",
        "NAME",
        "Name of the trial in results, reports and events; by default its folder's name.",
    ),
    text(
        "--request",
        "FILE|-",
        "Evaluation request in JSON: a file, '-' for standard input, or the object itself. "
        "Other options replace its fields.",
    ),
    *(*_RULES, *BASELINE),
    *(*_JOB, flag("--check", "With --job: only check the rules, and print what is wrong.")),
    flag("--allow-code", "With --check: allow Python files to be run."),
    *(*_READING, *_WAITS, *_LIMITS, *_OUTPUT, *_RESULTS, *_LOGS),
    *(heading(Heading.RESULTS), TAG_RUN, _retention),
    *(heading(Heading.SYSTEM), _isolate, *_MEASURING),
)
_TRIAL: Final = (heading(Heading.TRIAL), text("--trial", "PATH", _TRIAL_HELP))
MEASURE: Final = (*_TRIAL, *_JOB, *_RULES, heading(Heading.RULES), _modes(), endpoint_option)
DOCKER: Final = (
    *(*_TRIAL, _profiler_trial, *_RULES, *_READING),
    *(*_WAITS, *_LIMITS, *_OUTPUT, *_RESULTS, *_LOGS),
)
PLAN: Final = (
    *(*_JOB, *_RULES, *_READING, *_LIMITS, _isolate),
    *(heading(Heading.RESULTS), _REPORT, *_MESSAGES, endpoint_option),
)
TRAIN: Final = (
    *(*_JOB, *_RULES, *BASELINE, heading(Heading.RULES), _modes()),
    *(*_LIMITS, _isolate, *_RESULTS, endpoint_option),
)
_JOB_ONLY: Final = {
    "only": "--only",
    "exclude": "--except",
    "check": "--check",
    "allow_code": "--allow-code",
}
_NOT_WITH_JOB: Final = {"rule": "--rule", "source": "--source", "parameters": "--param"}
_SOURCES: Final = frozenset(
    {"request", "rule", "source", "job", "only", "exclude", "step_column", "maps"}
)


def with_request(command: Command) -> Command:
    """Pass a command the options of an evaluation as one request, and its other options."""

    @wraps(command)
    def run(*arguments: object, **values: object) -> int:
        request = request_of(click.get_current_context())
        names = _SOURCES.union(request.__struct_fields__)
        own = {name: value for name, value in values.items() if name not in names}
        code: int = command(request, *arguments, **own)
        return code

    return run


def request_of(context: click.Context) -> "EvaluationRequest":
    """Return the evaluation that the options of a command request.

    Raises
    ------
    JobError
        If the job file cannot be read, or holds no rules.
    UsageError
        If options contradict each other, or the request of --request is not valid.
    """
    from msgspec.structs import replace

    from rule_runner.config.request import EvaluationRequest, read_request
    from rule_runner.config.rule_options import is_of_series, parse_requests

    values = context.params
    path = values.get("request")
    request = EvaluationRequest() if path is None else read_request(path)
    fields = {
        name: values[name]
        for name in request.__struct_fields__
        if name in values and context.get_parameter_source(name) is not ParameterSource.DEFAULT
    }
    if "step_column" in values:
        of_series = [*filter(is_of_series, values["modes"])]
        sources = source_options(values["step_column"], values["maps"], of_series)
        fields["sources"] = sources.over(request.sources)
        fields["modes"] = tuple(filterfalse(is_of_series, values["modes"])) or request.modes
    request = replace(request, **fields)
    configure(-1 if request.quiet else request.verbose, as_json=request.format != "table")
    _check_stdout(request)
    definition = _definition(values, request.format)
    if definition is not None:
        from rule_runner.commands.evaluate_job_file import with_job

        return with_job(replace(request, rules=()), definition)
    if not (values["rule"] or values["source"]):
        return request
    rules = parse_requests(values["rule"], values["source"])
    return replace(request, rules=tuple(rules), job=None)


def _check_stdout(request: "EvaluationRequest") -> None:
    """Check that programs read only results or only events from standard output."""
    if request.format == "table" or not request.sinks:
        return
    from rule_runner.notify.sinks.spec import writes_to_stdout

    kind = writes_to_stdout(request.sinks)
    if kind:
        raise UsageError(
            f"--sink {kind} and --format {request.format} both write to stdout. Choose one."
        )


def _definition(values: dict[str, Any], form: str) -> "JobDefinition | None":
    """Return the rules of the job file; None without one."""
    if values.get("job") is None:
        for name, option in _JOB_ONLY.items():
            if values.get(name):
                raise UsageError(f"Option {option} requires --job.")
        return None
    for name, option in _NOT_WITH_JOB.items():
        if values[name]:
            raise UsageError(
                f"Options --job and {option} cannot be combined: give the rules by one of them."
            )
    from rule_runner.commands.evaluate_job_file import read_job

    return read_job(
        values["job"],
        values["only"],
        values["exclude"],
        check=values.get("check", False),
        allow_code=values.get("allow_code", False),
        form=form,
    )


@click.command(
    cls=HelpedCommand,
    epilog="rule-runner evaluate --trial runs/mine --rule VanishingGradient\n"
    "rule-runner evaluate --trial train.log --rule auto --no-wait --fail-on-issues",
)
@takes(_EVALUATE)
@reporting
@results_alone()
@with_request
def evaluate(request: "EvaluationRequest", check: bool, allow_code: bool) -> int:
    """Evaluate rules over a trial, and follow it until it ends."""
    from rule_runner.commands import evaluate_job_file
    from rule_runner.commands.evaluate import evaluate_trial

    if check and request.job is not None:
        return evaluate_job_file.check(request, request.job, allow_code=allow_code)
    return evaluate_trial(request)
