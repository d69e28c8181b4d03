"""check: the command that needs only the paths of trials."""

from typing import Literal

import click

from rule_runner.cli.evaluation import BASELINE, FAIL_ON, FOLLOW, FORMATS, TAG_RUN
from rule_runner.cli.options import choice, endpoint_option, flag, heading, output, takes, without
from rule_runner.cli.program.help_pages import Heading, HelpedCommand, HelpedGroup
from rule_runner.cli.reading import Sources, takes_reading
from rule_runner.cli.reporting import reporting, results_alone


@click.command(
    cls=HelpedCommand,
    epilog="rule-runner check runs/\n"
    "rule-runner check runs/ --fail-on error --format junit > verdicts.xml",
)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@takes(BASELINE)
@heading(Heading.STEPS)
@FOLLOW
@flag("--again", "Judge trials that have not changed since the last check, too.")
@heading(Heading.RESULTS)
@output("Output folder; by default rule-output/check-TIME.")
@flag("--overwrite", "Replace results in the output folder.")
@without("report", "Write no report.html, and collect no measurements for it.")
@choice("--format", FORMATS, "Format of the results on standard output.", "form")
@click.option(
    "--severity",
    type=click.Choice(["error", "warning", "note"]),
    default="warning",
    show_default=True,
    help="The least serious findings that the table lists.",
)
@TAG_RUN
@takes(FAIL_ON)
@heading(Heading.GENERAL)
@flag("--quiet", "Print only trials that do not look healthy.", "-q")
@endpoint_option
@reporting
@results_alone()
@takes_reading
def check(
    paths: tuple[str, ...],
    follow: bool,
    baseline: str | None,
    trend: str | None,
    output: str | None,
    overwrite: bool,
    again: bool,
    report: bool,
    form: Literal["table", "json", "junit", "sarif"],
    severity: Literal["error", "warning", "note"],
    quiet: bool,
    fail_on: Literal["error", "warning"] | None,
    fail_on_issues: bool,
    tag_run: bool,
    sources: Sources,
) -> int:
    """Judge each trial at or below PATH by the rules that fit it.

    A PATH is a folder, a file, s3://bucket/prefix, or - for a log that is piped to standard input
    and judged as it grows. Trials hold tensors, profiler data or both. A built-in
    rule fits a trial that holds its inputs. A trial that has not ended is judged up to its last
    step. One table shows the verdicts of all trials, findings last; a report has the details.
    """
    from rule_core.severity import Severity
    from rule_runner.commands.check.command import check_trials
    from rule_runner.config.model import check_is_local
    from rule_runner.config.request import EvaluationRequest
    from rule_runner.loading.standard_input import STANDARD_INPUT

    if output is not None:
        check_is_local(output, "--output of check")
    request = EvaluationRequest(
        baseline=baseline,
        trend=trend,
        sources=sources,
        wait=follow or STANDARD_INPUT in paths,
        follow_issues=True,
        output=output,
        overwrite=overwrite,
        report=report,
        format=form,
        quiet=quiet,
        fail_on=fail_on,
        fail_on_issues=fail_on_issues,
        tag_run=tag_run,
    )
    return check_trials(paths, request, Severity(severity), again=again)


@click.group(cls=HelpedGroup)
def baseline() -> None:
    """Describe good runs, to compare others with them."""


@baseline.command("make", epilog="rule-runner baseline make runs/good-* -o good.json")
@click.argument("paths", nargs=-1, required=True, metavar="RUN...")
@output("The file to write, such as good.json.", "FILE", "target", required=True)
@endpoint_option
@reporting
@takes_reading
def baseline_make(paths: tuple[str, ...], target: str, sources: Sources) -> None:
    """Write the bands of the good runs at and below each RUN.

    'check RUNS --baseline FILE' compares further runs of the same recipe with them. Give five runs
    or more that differ in their seeds; the limits of a single run come from its noise, and are
    wide. The same runs give the same file. It is approved by committing it.
    """
    from rule_runner.commands.baseline import make

    make(paths, target, sources)
