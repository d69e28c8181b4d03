"""Commands: what a controller is asked for, in order and once."""

from rule_runner.index.commands import Command, Commands, TrialAction


def test_commands_are_taken_in_order_and_once() -> None:
    commands = Commands()
    cancel, refresh = Command(TrialAction.CANCEL, 1), Command(TrialAction.REFRESH, 2)
    for command in (cancel, refresh, cancel):
        commands.send(command)
    assert [*commands.taken()] == [cancel, refresh]
    assert [*commands.taken()] == []
