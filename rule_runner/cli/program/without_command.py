"""without_command: what the program does if no command is named."""

import click

from rule_runner.cli.reporting import reporting, results_alone
from rule_runner.logs import configure


@reporting
def without_command(context: click.Context) -> int:
    """Run as a rule container, or print the help."""
    from rule_runner.config.sagemaker_contract import is_asked_for, is_expected

    if is_asked_for():
        from rule_runner.commands.sagemaker import run

        configure(1, as_json=True)
        with results_alone():
            return run()
    if is_expected():
        from rule_runner.commands.sagemaker import reject

        reject()
    click.echo(context.get_help())
    return 0
