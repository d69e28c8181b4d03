"""Actions: the actions of a rule when its condition is met, parsed from JSON text."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rule_core.logger import get_logger
from rule_core.rules.actions.parsing import ENDPOINT, PREFIX, STOP, parse_actions
from rule_core.severity import Severity

if TYPE_CHECKING:
    from rule_core.rules.actions.base import Action


class Actions:
    """The actions of one rule, which `invoke` carries out in order.

    Differences from smdebug: names keep their case (smdebug lower-cased the whole text, so that
    names with capitals were never found); unknown names and missing keys are errors instead of log
    messages; the training job is looked up when the condition is met instead of when the rule is
    constructed; and errors while listing training jobs are retried instead of ending the search.

    Parameters
    ----------
    actions_str
        JSON text; see `parse_actions`.
    rule_name
        The name of the rule, for messages.

    Attributes
    ----------
    actions
        The actions, in order.
    stop_on
        The severity from which actions that stop a training are carried out: an error, unless it
        is set to a lower one.

    Raises
    ------
    SMDebugValueError
        If the text is not valid JSON, or contains an action that cannot be carried out.
    """

    def __init__(self, actions_str: str | None = "", rule_name: str = "") -> None:
        self.rule_name = rule_name
        self.stop_on = Severity.ERROR
        self.actions: list[Action] = [
            _action(rule_name, action) for action in parse_actions(actions_str)
        ]

    def invoke(self, message: str = "", severity: Severity = Severity.ERROR) -> None:
        """Carry out all actions; failures are logged with masked endpoints and never raised.

        Parameters
        ----------
        severity
            Of the finding; see `stop_on`.
        """
        for action in self.actions:
            if action.stops_training and severity.rank < self.stop_on.rank:
                get_logger().warning(
                    "Action %r (%s) of rule %r was not carried out: it needs an %s, and the "
                    "finding is a %s.",
                    *(action.name, action.target, self.rule_name, self.stop_on, severity),
                )
            else:
                action.invoke(message)


class DeferredActions(Actions):
    """Actions that the caller carries out: `invoke` only records the messages.

    Attributes
    ----------
    messages
        The messages recorded so far.
    """

    def __init__(self, actions_str: str | None = "", rule_name: str = "") -> None:
        super().__init__(actions_str, rule_name)
        self.messages: list[str] = []

    def invoke(self, message: str = "", severity: Severity = Severity.ERROR) -> None:
        """Record the message."""
        del severity
        self.messages.append(message)


def _action(rule_name: str, action: Mapping[str, str]) -> "Action":
    """Return an action; most rules have none, and need nothing of AWS."""
    if action["name"] == STOP:
        from rule_core.rules.actions.stop_training import StopTrainingAction

        return StopTrainingAction(rule_name, action.get(PREFIX, ""))
    from rule_core.rules.actions.message import MessageAction

    return MessageAction(rule_name, action["name"], action[ENDPOINT])
