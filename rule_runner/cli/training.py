"""train: runs a training script with the options of its judging."""

from pathlib import Path
from typing import Any

import click

from rule_runner.cli.reporting import reporting


@click.command(context_settings={"allow_interspersed_args": False})
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

    return run_train(**options)
