"""measure: the command that measures a part of a trial for an evaluation elsewhere."""

import os
from typing import TYPE_CHECKING

import click

from rule_runner.cli.evaluation import MEASURE, takes, with_request
from rule_runner.cli.reporting import reporting
from rule_runner.cli.standard_output import results_alone

if TYPE_CHECKING:
    from rule_runner.config.request import EvaluationRequest


@click.command()
@click.option(
    "--shard",
    metavar="I/N",
    help="The share to measure; I counts from 0. By default what Kubernetes, Batch or Slurm say, "
    "else 0/1.",
)
@click.option("--shards", type=click.IntRange(1), metavar="N", help="N, if the engine lacks it.")
@click.option("--output", "folder", required=True, metavar="DIR", help="Folder, or s3:// address.")
@takes(MEASURE)
@reporting
@results_alone()
@with_request
def measure(
    request: "EvaluationRequest", shard: str | None, shards: int | None, folder: str
) -> int:
    """Measure a share of a trial for an evaluation elsewhere.

    Pass the folder to 'rule-runner evaluate --measurements DIR'. The N shards may run on different
    machines. Whatever they do not measure is measured by the evaluation, so that the verdicts are
    the same.
    """
    from rule_runner.batch.shards import find_shard
    from rule_runner.commands.measure import measure_trial

    return measure_trial(request, find_shard(shard, shards, os.environ), folder)
