"""The command line: parses, calls, and maps what happened to an exit code; no logic of its own."""

from typing import Final

import click

from rule_runner.cli.program.late_commands import LateCommand, LateGroup

# By name: the module, and the first sentence of the help.
_COMMANDS: Final = {
    "acknowledge": LateCommand(
        "inspection.results",
        "Record that somebody has seen or muted findings in the output folder DIR.",
    ),
    "check": LateCommand(
        "checking",
        "Judge every trial at and below each PATH by the built-in rules whose inputs it holds.",
    ),
    "demo": LateCommand(
        "inspection.trials",
        "Judge three real trainings while they run: healthy, vanishing, diverging.",
    ),
    "docker": LateCommand("docker", "Evaluate in containers, and build the image for them."),
    "doctor": LateCommand(
        "inspection.trials",
        "Diagnose problems of the installation and of the trial at PATH, and suggest remedies.",
    ),
    "evaluate": LateCommand(
        "evaluation", "Evaluate rules over a trial, and follow it until it ends."
    ),
    "events": LateCommand("events", "Show the events of an evaluation, or send them again."),
    "fleet": LateCommand(
        "fleet", "Judge many trials: plan, run on one machine or many, and collect the results."
    ),
    "github": LateCommand(
        "inspection.results",
        "Show the results in one or more output folders in a workflow of GitHub.",
    ),
    "images": LateCommand(
        "images", "Show and register the rule image of each region, and push yours."
    ),
    "measure": LateCommand(
        "measuring",
        "Measure a share of a trial for rules, for 'rule-runner evaluate --measurements DIR'.",
    ),
    "profile": LateCommand(
        "profiling", "Inspect the profiler data of a training job, and report on them."
    ),
    "record": LateCommand(
        "testing", "Cut a case for a rule test out of the trial at PATH, or s3://."
    ),
    "report": LateCommand(
        "inspection.results",
        "Write one page with charts from the results in one or more output folders.",
    ),
    "rules": LateCommand(
        "inspection.rules", "Show the built-in rules, and those of installed packages."
    ),
    "serve": LateCommand("watching", "Judge trials as 'watch' does, and show them in a browser."),
    "serve-token": LateCommand(
        "watching", "Make, list and revoke the tokens that let people into 'serve'."
    ),
    "test": LateCommand("testing", "Run the unit tests of rules at and below each PATH."),
    "train": LateCommand(
        "training",
        "Run COMMAND, an unchanged training script, and judge its tensors while it trains.",
    ),
    "trial": LateCommand("inspection.trials", "Inspect a trial."),
    "watch": LateCommand(
        "watching",
        "Judge the trials at and below each ROOT as they appear, until a signal arrives.",
    ),
}


@click.group(
    cls=LateGroup,
    late=_COMMANDS,
    invoke_without_command=True,
    context_settings={"help_option_names": ["--help", "-h"]},
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
