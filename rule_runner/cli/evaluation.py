"""evaluate, and the options of whatever else evaluates rules over a trial."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final

import click

from rule_runner import config as configuration
from rule_runner.cli.endpoint import endpoint_option
from rule_runner.cli.reporting import reporting
from rule_runner.errors import UsageError
from rule_runner.logs import configure

FORMATS: Final = ("table", "json", "junit", "sarif")

_TRIAL_HELP: Final = "Root of the trial, or s3://bucket/prefix."
_trial: Final = click.option("--trial", metavar="PATH", help=_TRIAL_HELP)
_profiler_trial: Final = click.option(
    "--profiler-trial",
    metavar="PATH",
    help="Profiler data for profiler rules: the folder that holds 'system' and 'framework'.",
)

_OPTIONS: Final = (
    click.option("--other-trial", multiple=True, metavar="PATH", help="A trial to compare with."),
    click.option("--rule", multiple=True, metavar="[ID=]NAME", help="A rule; 'all' is every one."),
    click.option(
        "--source", multiple=True, metavar="[ID=]FILE", help="A file with a rule class, or s3://."
    ),
    click.option(
        "-p", "--param", multiple=True, metavar="[ID.]KEY=VALUE", help="A parameter of a rule."
    ),
    click.option(
        "--mode",
        multiple=True,
        metavar="[ID=]enforce|observe",
        help="What comes of a finding; 'observe' only tells it.",
    ),
    click.option("--start-step", type=click.IntRange(0), help="First global step to judge."),
    click.option("--end-step", type=click.IntRange(0), help="Global step to judge no more."),
    click.option("--keep-going", is_flag=True, help="Find all hits, not the first one only."),
    click.option("--no-wait", is_flag=True, help="Judge what is there; do not wait for more."),
    click.option(
        "--wait-for-trial", type=click.FloatRange(0), default=0, metavar="S", help="Wait for PATH."
    ),
    click.option(
        "--timeout", type=click.FloatRange(0, min_open=True), metavar="S", help="End then."
    ),
    click.option(
        "--idle-timeout",
        type=click.FloatRange(0),
        default=configuration.DEFAULT_IDLE_TIMEOUT_S,
        show_default=True,
        metavar="S",
        help="End after so long without a new file; 0 is never.",
    ),
    click.option(
        "--rule-timeout",
        type=click.FloatRange(0, min_open=True),
        metavar="S",
        help="Longest time for one step; each rule gets a process of its own.",
    ),
    click.option(
        "--end-grace",
        type=click.FloatRange(0),
        default=configuration.DEFAULT_END_GRACE_S,
        show_default=True,
        metavar="S",
        help="Look for files of slow workers so long after the end mark.",
    ),
    click.option(
        "--event-file-wait",
        type=click.FloatRange(0),
        default=configuration.DEFAULT_EVENT_FILE_WAIT_S,
        show_default=True,
        metavar="S",
        help="Wait for an event file that an index file names.",
    ),
    click.option(
        "--poll-max",
        type=click.FloatRange(0.1),
        default=configuration.DEFAULT_POLL_MAX_S,
        show_default=True,
        metavar="S",
        help="Longest pause between looks at a trial in S3 that brings nothing new.",
    ),
    click.option("--output", metavar="DIR", help="Output folder, or s3://bucket/prefix."),
    click.option("--overwrite", is_flag=True, help="Replace an evaluation in the output folder."),
    click.option("--format", "form", type=click.Choice(FORMATS), default="table"),
    click.option(
        "--sink", multiple=True, metavar="KIND[:TARGET][,region=R]", help="Where events go too."
    ),
    click.option(
        "--sink-deadline",
        type=click.FloatRange(0),
        default=30.0,
        show_default=True,
        metavar="S",
        help="Wait at the end so long for sinks to take what is left.",
    ),
    click.option(
        "--action",
        multiple=True,
        metavar="[ID=]KIND:TARGET",
        help="What is done when a rule in mode enforce finds something: stop-training:NAME, "
        "email:ADDRESS, sms:+NUMBER, webhook:URL or command:PROGRAM ARGUMENT...",
    ),
    click.option(
        "--action-timeout",
        type=click.FloatRange(0, min_open=True),
        default=configuration.DEFAULT_ACTION_TIMEOUT_S,
        show_default=True,
        metavar="S",
        help="Longest time for one action.",
    ),
    click.option("--dry-run", is_flag=True, help="Only say what actions would do."),
    click.option("--event-source", default="rule-runner", help="Source that events name."),
    click.option("--training-job-name", metavar="NAME", help="Name that events give the job."),
    click.option(
        "--fail-on-issues",
        is_flag=True,
        help="Exit with 10 if a rule in mode enforce found issues.",
    ),
    click.option("--quiet", is_flag=True, help="Log errors only, and show no progress."),
    endpoint_option,
    click.option("-v", "--verbose", count=True, help="Log what happens; twice: every step."),
)


ISOLATIONS: Final = tuple(one.value for one in configuration.Isolation)
_isolate: Final = click.option(  # docker run has one of its own
    "--isolate",
    type=click.Choice(ISOLATIONS),
    default=ISOLATIONS[0],
    show_default=True,
    help="'process': a process for each rule, with little of the environment. No sandbox.",
)


_JOB: Final = (
    click.option("--trial", metavar="PATH", help=f"{_TRIAL_HELP} A job file may say it."),
    _profiler_trial,
    click.option(
        "--job",
        metavar="FILE",
        help="The rules of a training job: its request as JSON or YAML, or a Python file that "
        "makes a list of rules.",
    ),
    click.option("--only", multiple=True, metavar="NAME", help="With --job: this rule only."),
    click.option(
        "--except", "exclude", multiple=True, metavar="NAME", help="With --job: not this rule."
    ),
    click.option(
        "--check", is_flag=True, help="With --job: only say what is wrong with each rule."
    ),
    click.option(
        "--allow-code", is_flag=True, help="With --check: Python files may be run to check them."
    ),
)


def evaluation_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of an evaluation, in their order."""
    return _with((_trial, _profiler_trial, *_OPTIONS), command)


def _with(
    options: Sequence[Callable[[Callable[..., Any]], Callable[..., Any]]],
    command: Callable[..., Any],
) -> Callable[..., Any]:
    for option in reversed(options):
        command = option(command)
    return command


def check_stdout(form: str, sinks: Sequence[str]) -> None:
    """Check that only results or only events are read by programs from standard output."""
    from rule_runner.sinks.parsing import writes_to_stdout  # noqa: PLC0415 - only when needed

    kind = writes_to_stdout(sinks)
    if form != "table" and kind:
        msg = f"--sink {kind} and --format {form} both write to stdout. Choose one."
        raise UsageError(msg)


def _all_options(command: Callable[..., Any]) -> Callable[..., Any]:
    return _with((*_JOB, *_OPTIONS), command)


@click.command()
@_all_options
@_isolate
@reporting
def evaluate(**options: Any) -> int:
    """Evaluate rules over a trial, and follow it until it ends."""
    from rule_runner.commands import evaluate_trial  # noqa: PLC0415 - only when it is needed
    from rule_runner.definitions import command  # noqa: PLC0415 - likewise

    configure(-1 if options["quiet"] else options["verbose"])
    check_stdout(options["form"], options["sink"])
    options = command.completed(options)
    if options["check"]:
        return command.check(options)
    options["output"] = options["output"] or configuration.default_output(
        options.get("trial_name") or options["trial"] or options["profiler_trial"],
        datetime.now().astimezone(),
    )
    return evaluate_trial(**options)
