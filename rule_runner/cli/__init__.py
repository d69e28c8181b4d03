"""The command line: parses, calls, and maps what happened to an exit code; no logic of its own."""

from typing import Final

import click

from rule_runner.cli.program.late_commands import LateGroup

# By name: the module, and the first sentence of the help.
_COMMANDS: Final = {
    "acknowledge": ("inspection.results", "Acknowledge or mute findings in the output folder DIR."),
    "baseline": ("checking", "Describe good runs, to compare others with them."),
    "check": ("checking", "Judge each trial at or below PATH by the rules that fit it."),
    "demo": ("inspection.trials", "Judge three real trainings while they run."),
    "docker": ("docker", "Evaluate in containers, and build the image for them."),
    "doctor": ("inspection.trials", "Diagnose the installation and the trial at PATH."),
    "evaluate": ("evaluation", "Evaluate rules over a trial, and follow it until it ends."),
    "events": ("inspection.results", "Show the events of an evaluation, or send them again."),
    "fleet": ("fleet", "Judge many trials on one machine or many."),
    "github": ("inspection.results", "Show the results in output folders in a GitHub workflow."),
    "images": ("images", "Show, register and push the rule image of each region."),
    "measure": ("fleet", "Measure a share of a trial for an evaluation elsewhere."),
    "profile": ("profiling", "Record, inspect and judge profiler data of training jobs."),
    "record": ("testing", "Record tensors of the trial at PATH for a rule test."),
    "report": ("inspection.results", "Write a page with charts of the results in output folders."),
    "rules": ("inspection.rules", "Show the built-in rules, and those of installed packages."),
    "serve": ("watching", "Judge trials as 'watch' does, and show them in a browser."),
    "serve-token": ("watching", "Add, list and revoke access tokens of 'serve'."),
    "test": ("testing", "Run the unit tests of rules at and below each PATH."),
    "train": ("training", "Run a training script and judge its tensors meanwhile."),
    "trial": ("inspection.trials", "Inspect a trial."),
    "watch": ("watching", "Judge the trials at and below each ROOT as they appear."),
}


@click.group(
    cls=LateGroup,
    late=_COMMANDS,
    invoke_without_command=True,
    context_settings={"help_option_names": ["--help", "-h"]},
    epilog="rule-runner train -- python train.py\nrule-runner check runs/",
)
@click.version_option(package_name="rule-runner")
@click.pass_context
def main(context: click.Context) -> None:
    """Evaluate rules over the tensors that a training job saved.

    Without a command, evaluate as a rule container if the environment or
    processingjobconfig.json describes a rule.
    """
    if context.invoked_subcommand is None:
        from rule_runner.cli.program.without_command import without_command

        without_command(context)
