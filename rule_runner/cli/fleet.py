"""fleet and measure: work on many trials, or on a large one, that machines share."""

import os
from typing import TYPE_CHECKING, Literal

import click

from rule_runner.cli.evaluation import FAIL_ON, FOLLOW, MEASURE, PLAN, with_request
from rule_runner.cli.options import count, endpoint_option, heading, output, takes, text, texts
from rule_runner.cli.program.help_pages import Heading, HelpedCommand, HelpedGroup
from rule_runner.cli.reporting import reporting, results_alone

if TYPE_CHECKING:
    from rule_runner.config.request import EvaluationRequest


@click.group(cls=HelpedGroup)
def fleet() -> None:
    """Judge many trials on one machine or many.

    Write a plan, run it or its shards, and collect the results.
    """


@fleet.command(epilog="rule-runner fleet plan runs/ -o out --plan plan.jsonl")
@click.argument("roots", nargs=-1, required=True, metavar="ROOT...")
@heading(Heading.RESULTS)
@output(
    "Where each trial gets its output folder, or s3://bucket/prefix; a template may have {name} "
    "and {id}.",
    required=True,
)
@text("--plan", "FILE", "File of the plan; '-' is standard output.", "target", default="-")
@heading(Heading.TRIAL)
@text("--since", "TIME", "Only trials written within 12h, 1d or 2w.")
@texts("--include", "PATTERN", "Only trials with such a path.")
@texts("--exclude", "PATTERN", "Not such trials.", "left_out")
@heading(Heading.STEPS)
@FOLLOW
@takes(PLAN)
@reporting
@results_alone()
@with_request
def plan(
    request: "EvaluationRequest",
    roots: tuple[str, ...],
    target: str,
    since: str | None,
    include: tuple[str, ...],
    left_out: tuple[str, ...],
    follow: bool,
) -> int:
    """Write a plan for the trials at and below each ROOT.

    The plan has one request per trial, each on its own line. A ROOT is a folder or
    s3://bucket/prefix. Without rules, a trial is judged by the built-in rules whose inputs it
    holds. Each trial always gets the same output folder.
    """
    from msgspec.structs import replace

    from rule_runner.commands.fleet.plan import Choice
    from rule_runner.commands.fleet.plan import plan as write_plan

    choice = Choice(since, include, left_out)
    return write_plan(roots, replace(request, wait=follow), choice, target)


@fleet.command(
    epilog="rule-runner fleet run --plan plan.jsonl --executor local:4\n"
    "rule-runner fleet run --plan plan.jsonl --shard 0/8",
)
@click.option("--plan", "place", required=True, metavar="FILE|-", help="The plan; s3:// too.")
@text("--shard", "I/N", "Judge only shard I of N; I counts from 0.")
@count("--shards", "The number of shards, if an engine gives the index of this one.")
@text(
    "--executor",
    "SPEC",
    "Judge on worker processes: local[:N], ray[:N], ray://HOST:PORT, dask[:N] or tcp://HOST:PORT.",
)
@click.option("--format", "form", type=click.Choice(["text", "jsonl"]), default="text")
@endpoint_option
@reporting
@results_alone()
def run(place: str, shard: str | None, shards: int | None, executor: str | None, form: str) -> int:
    """Judge the trials of a plan, or of a shard of it.

    The index of the shard also comes from Kubernetes (JOB_COMPLETION_INDEX), AWS Batch
    (AWS_BATCH_JOB_ARRAY_INDEX) and Slurm (SLURM_ARRAY_TASK_ID). A complete output is skipped, and
    a half one resumed. Exit code 75 means that a retry may help.
    """
    from rule_runner.batch.shards import find_shard
    from rule_runner.commands.fleet.run import run as run_shard

    return run_shard(place, find_shard(shard, shards, os.environ), executor, form)


@fleet.command(
    epilog="rule-runner fleet collect plan.jsonl --report report.html --junit verdicts.xml"
)
@click.argument("places", nargs=-1, required=True, metavar="PLAN_OR_OUTPUT...")
@text("--report", "FILE", "Write one page with links to all reports.")
@text("--junit", "FILE", "Write a JUnit report.")
@text("--sarif", "FILE", "Write a SARIF log.")
@takes(FAIL_ON)
@endpoint_option
@reporting
def collect(
    places: tuple[str, ...],
    report: str | None,
    junit: str | None,
    sarif: str | None,
    fail_on: Literal["error", "warning"] | None,
    fail_on_issues: bool,
) -> int:
    """Collect the results of a plan or below an output folder.

    Files and folders may be addresses, s3://bucket/prefix; a plan there has the suffix .jsonl.
    Results that are missing, cut off or not final are listed, and set exit code 1.
    """
    from rule_runner.commands.fleet.collect import Targets
    from rule_runner.commands.fleet.collect import collect as collect_results
    from rule_runner.config.request import EvaluationRequest

    fails_on = EvaluationRequest(fail_on=fail_on, fail_on_issues=fail_on_issues).fails_on
    return collect_results(places, Targets(report, junit, sarif), fails_on)


@click.command(
    cls=HelpedCommand,
    epilog="rule-runner measure --trial runs/giant --rule all --shard 0/4 -o measured",
)
@heading(Heading.SYSTEM)
@text(
    "--shard",
    "I/N",
    "The share to measure; I counts from 0. By default what Kubernetes, Batch or Slurm say, else "
    "0/1.",
)
@count("--shards", "N, if the engine lacks it.")
@heading(Heading.RESULTS)
@output("Folder, or s3:// address.", "DIR", "folder", required=True)
@takes(MEASURE)
@reporting
@results_alone()
@with_request
def measure(
    request: "EvaluationRequest", shard: str | None, shards: int | None, folder: str
) -> None:
    """Measure a share of a trial for an evaluation elsewhere.

    Pass the folder to 'rule-runner evaluate --measurements DIR'. The N shards may run on different
    machines. Whatever they do not measure is measured by the evaluation, so that the verdicts are
    the same.
    """
    from rule_runner.batch.shards import find_shard
    from rule_runner.commands.measure import measure_trial

    measure_trial(request, find_shard(shard, shards, os.environ), folder)
