"""The command line: parses, calls, and maps what happened to an exit code; no logic of its own."""

import sys
from collections.abc import Callable
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import Any, Final

import click
import structlog

from rule_runner import config as configuration
from rule_runner.errors import (
    EXIT_CLIENT,
    EXIT_INTERNAL,
    EXIT_OUTPUT,
    EXIT_USAGE,
    ClientError,
    OutputError,
    RuleRunnerError,
    UsageError,
)
from rule_runner.logs import configure
from rule_runner.status import CLIENT_ERROR, INTERNAL_ERROR

_log: Final = structlog.get_logger()


FORMATS: Final = ("table", "json", "junit", "sarif")
SHADOWED: Final = (
    "ClientError: Another package named 'smdebug' stands before that of rule-runner. "
    "Run 'rule-runner doctor'."
)


def reporting(command: Callable[..., int | None]) -> Callable[..., None]:
    """End a command with the exit code of what it returns or raises."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            code = command(*args, **kwargs) or 0
        except RuleRunnerError as err:
            from rule_runner.show import printable  # noqa: PLC0415 - only when it is needed

            code, prefix = _fault(err)
            click.echo(prefix + printable(err), err=True)
        except (click.exceptions.Exit, click.ClickException, click.Abort, BrokenPipeError):
            raise
        except Exception as err:  # noqa: BLE001 - our own bug, and the last place to say so
            if isinstance(err, ImportError) and (err.name or "").startswith("smdebug"):
                click.echo(SHADOWED, err=True)
                sys.exit(EXIT_CLIENT)
            _log.exception("internal_error")
            click.echo(INTERNAL_ERROR, err=True)
            code = EXIT_INTERNAL
        sys.exit(code)

    return run


def _fault(err: RuleRunnerError) -> tuple[int, str]:
    """Return the exit code of an error, and what its sentence begins with."""
    if isinstance(err, ClientError):
        return EXIT_CLIENT, CLIENT_ERROR
    return (EXIT_OUTPUT, "") if isinstance(err, OutputError) else (EXIT_USAGE, "Error: ")


@click.group(invoke_without_command=True)
@click.version_option(package_name="rule-runner")
@click.pass_context
def main(context: click.Context) -> None:
    """Evaluate rules over the tensors that a training job saved.

    Without a command, the job of a rule container is done if the environment or
    processingjobconfig.json describes one.
    """
    configure(0)
    if context.invoked_subcommand is None:
        _without_command(context)


@reporting
def _without_command(context: click.Context) -> int:
    """Run as a rule container, or print the help."""
    from rule_runner.contract import is_asked_for  # noqa: PLC0415 - only when it is needed

    if not is_asked_for():
        click.echo(context.get_help())
        return 0
    from rule_runner.container_mode import run  # noqa: PLC0415 - only when it is needed

    configure(1)
    return run()


@main.command()
@click.option("--trial", required=True, metavar="PATH", help="Root folder of the trial.")
@click.option("--other-trial", multiple=True, metavar="PATH", help="A trial to compare with.")
@click.option("--rule", multiple=True, metavar="[ID=]NAME", help="A rule; 'all' is every one.")
@click.option("--source", multiple=True, metavar="[ID=]FILE", help="A file with a rule class.")
@click.option(
    "-p", "--param", multiple=True, metavar="[ID.]KEY=VALUE", help="A parameter of a rule."
)
@click.option(
    "--mode",
    multiple=True,
    metavar="[ID=]enforce|observe",
    help="What comes of a finding; 'observe' only tells it.",
)
@click.option("--start-step", type=click.IntRange(0), help="First global step to judge.")
@click.option("--end-step", type=click.IntRange(0), help="Global step to judge no more.")
@click.option("--keep-going", is_flag=True, help="Find all hits, not the first one only.")
@click.option("--no-wait", is_flag=True, help="Judge what is there; do not wait for more.")
@click.option(
    "--wait-for-trial", type=click.FloatRange(0), default=0, metavar="S", help="Wait for PATH."
)
@click.option("--timeout", type=click.FloatRange(0, min_open=True), metavar="S", help="End then.")
@click.option(
    "--idle-timeout",
    type=click.FloatRange(0),
    default=configuration.DEFAULT_IDLE_TIMEOUT_S,
    show_default=True,
    metavar="S",
    help="End after so long without a new file; 0 is never.",
)
@click.option(
    "--rule-timeout",
    type=click.FloatRange(0, min_open=True),
    metavar="S",
    help="Longest time for one step; each rule gets a process of its own.",
)
@click.option(
    "--end-grace",
    type=click.FloatRange(0),
    default=configuration.DEFAULT_END_GRACE_S,
    show_default=True,
    metavar="S",
    help="Look for files of slow workers so long after the end mark.",
)
@click.option(
    "--event-file-wait",
    type=click.FloatRange(0),
    default=configuration.DEFAULT_EVENT_FILE_WAIT_S,
    show_default=True,
    metavar="S",
    help="Wait for an event file that an index file names.",
)
@click.option("--output", type=click.Path(path_type=Path), metavar="DIR", help="Output folder.")
@click.option("--overwrite", is_flag=True, help="Replace an evaluation in the output folder.")
@click.option("--format", "form", type=click.Choice(FORMATS), default="table")
@click.option("--sink", multiple=True, type=click.Choice(["stdout"]), help="Where events go too.")
@click.option("--event-source", default="rule-runner", help="Source that events name.")
@click.option("--training-job-name", metavar="NAME", help="Name that events give the job.")
@click.option(
    "--fail-on-issues", is_flag=True, help="Exit with 10 if a rule in mode enforce found issues."
)
@click.option("--quiet", is_flag=True, help="Log errors only, and show no progress.")
@click.option("-v", "--verbose", count=True, help="Log what happens; twice: every step.")
@reporting
def evaluate(**options: Any) -> int:
    """Evaluate rules over a trial, and follow it until it ends."""
    from rule_runner.commands import evaluate_trial  # noqa: PLC0415 - only when it is needed

    configure(-1 if options["quiet"] else options["verbose"])
    if options["form"] != "table" and options["sink"]:
        msg = f"--sink stdout and --format {options['form']} both write to stdout. Choose one."
        raise UsageError(msg)
    options["output"] = options["output"] or configuration.default_output(
        options["trial"], datetime.now().astimezone()
    )
    return evaluate_trial(**options)


@main.group()
def rules() -> None:
    """Show the built-in rules."""


@rules.command("list")
@reporting
def rules_list() -> None:
    """List the built-in rules."""
    from rule_runner.catalogue import listing  # noqa: PLC0415 - only when it is needed

    click.echo("\n".join(listing()))


@rules.command("show")
@click.argument("name")
@reporting
def rules_show(name: str) -> None:
    """Show the page of a built-in rule: what it finds, reads and takes, and what to do then."""
    from rule_runner.catalogue import show  # noqa: PLC0415 - only when it is needed

    show(name)


@main.command()
@click.option("--output", type=click.Path(path_type=Path), metavar="DIR", help="Output folder.")
@reporting
def demo(output: Path | None) -> int:
    """Judge three real trainings while they run: healthy, vanishing, diverging."""
    from rule_runner.demo import run_demo  # noqa: PLC0415 - only when it is needed

    configure(0)
    now = datetime.now().astimezone()
    return run_demo(output or configuration.default_output("demo", now))


@main.command()
@click.argument(
    "folders",
    nargs=-1,
    required=True,
    metavar="DIR...",
    type=click.Path(path_type=Path),
)
@click.option(
    "--output", type=click.Path(path_type=Path), metavar="FILE", help="The page, or its folder."
)
@click.option("--title", help="What stands at the top; by default the trials' names.")
@reporting
def report(folders: tuple[Path, ...], output: Path | None, title: str | None) -> int:
    """Make a page with charts from the results in output folders: one page for all of them."""
    from rule_runner.report import command  # noqa: PLC0415 - only when it is needed

    configure(0)
    return command.report(folders, output, title)


@main.group()
def trial() -> None:
    """Look into a trial."""


@trial.command("show")
@click.argument("path")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table")
@click.option("--all", "everything", is_flag=True, help="Cut no table.")
@reporting
def trial_show(path: str, form: str, everything: bool) -> int:
    """Show steps, workers, collections, tensors and sizes of the trial at PATH."""
    from rule_runner.trial_show import show_trial  # noqa: PLC0415 - only when it is needed

    configure(-1)
    return show_trial(path, form, everything=everything)


@main.command()
@click.argument("path", required=False)
@reporting
def doctor(path: str | None) -> int:
    """Say what is wrong with the installation, and with the trial at PATH, and the remedy."""
    from rule_runner.doctor import run_doctor  # noqa: PLC0415 - only when it is needed

    configure(-1)
    return run_doctor(path)


@main.command(context_settings={"allow_interspersed_args": False})
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("--rule", multiple=True, metavar="[ID=]NAME", help="A rule, as for evaluate.")
@click.option("--source", multiple=True, metavar="[ID=]FILE", help="A file with a rule class.")
@click.option(
    "-p", "--param", multiple=True, metavar="[ID.]KEY=VALUE", help="A parameter of a rule."
)
@click.option("--mode", multiple=True, metavar="[ID=]MODE", help="enforce or observe.")
@click.option("--other-trial", multiple=True, metavar="PATH", help="A trial to compare with.")
@click.option("--keep-going", is_flag=True, help="Find all hits, not the first one only.")
@click.option("--output", type=click.Path(path_type=Path), metavar="DIR", help="Output folder.")
@click.option("--trial", metavar="DIR", help="Where to save to; by default DIR/trial of --output.")
@click.option(
    "--hook-config",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="JSON of the hook: what is saved when.",
)
@click.option("--collections", metavar="A,B", help="What is saved; by default what the rules read.")
@click.option(
    "--save-interval",
    type=click.IntRange(1),
    metavar="N",
    help="Save every Nth step; by default every 10th, or as FILE says.",
)
@click.option(
    "--stop-on-finding", is_flag=True, help="End the training when a rule finds something."
)
@click.option(
    "--grace",
    type=click.FloatRange(0),
    default=30.0,
    show_default=True,
    metavar="S",
    help="Between SIGTERM and SIGKILL.",
)
@reporting
def train(**options: Any) -> int:
    """Run COMMAND, a training script, unchanged, save what it trains, and judge it meanwhile.

    PyTorch, XGBoost and Keras 3 are hooked when the script imports them. The exit code is the
    script's, or 10 if a rule has stopped it.
    """
    from rule_runner.train import train as run_train  # noqa: PLC0415 - only when it is needed

    configure(0)
    return run_train(**options)
