"""fleet: the commands for many trials."""

import os
from typing import TYPE_CHECKING

import click

from rule_runner.cli.endpoint import endpoint_option
from rule_runner.cli.evaluation import FAIL_ON, PLAN, takes, with_request
from rule_runner.cli.reporting import reporting
from rule_runner.cli.standard_output import results_alone

if TYPE_CHECKING:
    from rule_runner.config.request import EvaluationRequest


@click.group()
def fleet() -> None:
    """Judge many trials on one machine or many.

    Write a plan, run it or its shards, and collect the results.
    """


@fleet.command()
@click.argument("roots", nargs=-1, required=True, metavar="ROOT...")
@click.option(
    "--output",
    required=True,
    metavar="DIR",
    help="Where each trial gets its output folder, or s3://bucket/prefix; a template may have "
    "{name} and {id}.",
)
@click.option("-o", "--plan", "target", default="-", metavar="FILE", help="File of the plan.")
@click.option("--since", metavar="TIME", help="Only trials written within 12h, 1d or 2w.")
@click.option("--include", multiple=True, metavar="PATTERN", help="Only trials with such a path.")
@click.option("--exclude", "left_out", multiple=True, metavar="PATTERN", help="Not such trials.")
@click.option("--follow", is_flag=True, help="Follow trials that have not ended until they do.")
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


@fleet.command()
@click.option("--plan", "place", required=True, metavar="FILE|-", help="The plan; s3:// too.")
@click.option("--shard", metavar="I/N", help="Judge only shard I of N; I counts from 0.")
@click.option(
    "--shards",
    type=click.IntRange(1),
    metavar="N",
    help="The number of shards, if an engine gives the index of this one.",
)
@click.option(
    "--executor",
    metavar="SPEC",
    help="Judge on worker processes: local[:N], ray[:N], ray://HOST:PORT, dask[:N] or "
    "tcp://HOST:PORT.",
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


@fleet.command()
@click.argument("places", nargs=-1, required=True, metavar="PLAN_OR_OUTPUT...")
@click.option("--report", metavar="FILE", help="Write one page with links to all reports.")
@click.option("--junit", metavar="FILE", help="Write a JUnit report.")
@click.option("--sarif", metavar="FILE", help="Write a SARIF log.")
@takes(FAIL_ON)
@endpoint_option
@reporting
def collect(
    places: tuple[str, ...],
    report: str | None,
    junit: str | None,
    sarif: str | None,
    fail_on: str | None,
    fail_on_issues: bool,
) -> int:
    """Collect the results of a plan or below an output folder.

    Files and folders may be addresses, s3://bucket/prefix; a plan there has the suffix .jsonl.
    Results that are missing, cut off or not final are listed, and set exit code 1.
    """
    from rule_core.severity import Severity
    from rule_runner.commands.fleet.collect import Targets
    from rule_runner.commands.fleet.collect import collect as collect_results

    least = Severity.WARNING if fail_on_issues else Severity(fail_on) if fail_on else None
    return collect_results(places, Targets(report, junit, sarif), least)
