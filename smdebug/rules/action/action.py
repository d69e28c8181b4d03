"""Actions: what a rule was told to do when its condition is met, read from its JSON text."""

import json
from typing import Any

from smdebug.core.logger import get_logger
from smdebug.exceptions import SMDebugValueError


class Actions:
    """The actions of one rule.

    This version reads and checks them, and carries none out: `invoke` says so.

    Parameters
    ----------
    actions_str
        A JSON object ``{"name": ...}``, a list of them, or an empty string. The form with escaped
        quotation marks, in which platforms hand it over, is understood too.
    rule_name
        Name of the rule, for messages.

    Raises
    ------
    SMDebugValueError
        If the text is no such JSON.
    """

    def __init__(self, actions_str: str = "", rule_name: str = "") -> None:
        self.rule_name = rule_name
        self.actions = parse_actions(actions_str)

    def invoke(self, message: str = "") -> None:
        """Say that the actions were asked for and that none was carried out."""
        del message
        for action in self.actions:
            get_logger().warning(
                "Action %r of rule %r was not carried out: this version has no actions.",
                action.get("name"),
                self.rule_name,
            )


def parse_actions(text: str | None) -> list[dict[str, Any]]:
    r"""Return the actions of a JSON text.

    >>> parse_actions('{\\"name\\": \\"stoptraining\\"}')
    [{'name': 'stoptraining'}]
    """
    if not text or not text.strip():
        return []
    try:
        found = json.loads(text)
    except ValueError:
        try:
            found = json.loads(text.replace('\\"', '"'))
        except ValueError as err:
            msg = f"Actions must be JSON, got {text[:200]!r}: {err}."
            raise SMDebugValueError(msg) from None
    actions = found if isinstance(found, list) else [found]
    for action in actions:
        if not isinstance(action, dict) or not isinstance(action.get("name"), str):
            msg = f"An action must be a JSON object with a name, got {action!r}."
            raise SMDebugValueError(msg)
    return actions
