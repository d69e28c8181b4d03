"""PlaceholderRule: stands for a rule class that this process does not load."""

from typing import Any, NoReturn

from rule_core.rules.rule import Rule


class PlaceholderRule(Rule):
    """A rule that a worker process loads, or that was rejected; takes any parameter."""

    def __init__(
        self, base_trial: Any, other_trials: Any = None, action_str: str = "", **parameters: str
    ) -> None:
        super().__init__(base_trial, action_str, other_trials)
        self.parameters = parameters

    def invoke_at_step(self, step: int) -> NoReturn:
        """Raise: this process does not judge steps with the rule."""
        raise NotImplementedError(f"Step {step} is judged by the rule's own process.")
