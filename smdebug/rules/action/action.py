"""Actions: what a rule was told to do when its condition is met, read from its JSON text."""

from smdebug.rules.action.base import Action
from smdebug.rules.action.message_action import MessageAction
from smdebug.rules.action.parsing import ENDPOINT, PREFIX, STOP, parse_actions
from smdebug.rules.action.stop_training_action import StopTrainingAction

__all__ = ["Action", "Actions", "MessageAction", "StopTrainingAction", "parse_actions"]


class Actions:
    """The actions of one rule, which `invoke` carries out in order.

    What smdebug did otherwise: it lower-cased the whole text, so that a capital in a name was
    never found; it logged and skipped unknown names and missing keys, which are errors here; it
    looked for the training job when the rule was constructed, and here it is looked for when the
    condition is met; an error in the list of training jobs ended the search, and is retried here.

    Parameters
    ----------
    actions_str
        JSON text; see `parse_actions`.
    rule_name
        Name of the rule, for messages.

    Attributes
    ----------
    actions
        The actions, in order.

    Raises
    ------
    SMDebugValueError
        If the text cannot be read, or holds an action that could never be carried out.
    """

    def __init__(self, actions_str: str | None = "", rule_name: str = "") -> None:
        self.rule_name = rule_name
        self.actions: list[Action] = [
            StopTrainingAction(rule_name, one.get(PREFIX, ""))
            if one["name"] == STOP
            else MessageAction(rule_name, one["name"], one[ENDPOINT])
            for one in parse_actions(actions_str)
        ]

    def invoke(self, message: str = "") -> None:
        """Carry all actions out; each failure is logged, with endpoints masked, and none raised."""
        for action in self.actions:
            action.invoke(message)


class NoActions(Actions):
    """Actions that are left to whoever runs the rule: `invoke` only remembers what it was told.

    Attributes
    ----------
    said
        The messages.
    """

    def __init__(self, actions_str: str | None = "", rule_name: str = "") -> None:
        super().__init__(actions_str, rule_name)
        self.said: list[str] = []

    def invoke(self, message: str = "") -> None:
        """Remember that the actions were asked for."""
        self.said.append(message)
