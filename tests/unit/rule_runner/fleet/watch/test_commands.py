"""Commands: what a controller is asked for, in order and once."""

from rule_runner.fleet.watch.commands import Action, Command, Commands


def test_commands_are_taken_in_order_and_once() -> None:
    commands = Commands()
    cancel, refresh = Command(Action.CANCEL, 1), Command(Action.REFRESH, 2)
    for command in (cancel, refresh, cancel):
        commands.send(command)
    assert [*commands.taken()] == [cancel, refresh]
    assert [*commands.taken()] == []
