"""Unopened: stands for a rule class whose file only the rule's own process runs."""

from typing import Any, NoReturn

from smdebug.rules import Rule


class Unopened(Rule):
    """A custom rule with a process of its own; here it takes any parameter."""

    def __init__(
        self, base_trial: Any, other_trials: Any = None, action_str: str = "", **parameters: str
    ) -> None:
        super().__init__(base_trial, action_str, other_trials)
        self.parameters = parameters

    def invoke_at_step(self, step: int) -> NoReturn:
        """Raise: the rule is elsewhere."""
        msg = f"Step {step} is judged by the rule's own process."
        raise NotImplementedError(msg)
