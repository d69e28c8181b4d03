"""WebhookAction: posts the finding as JSON to an address."""

from dataclasses import dataclass
from typing import ClassVar, Final

from rule_core.rules.actions.base import Action, ActionOutcome, ActionState, ActionTrigger, Deadline
from rule_runner.notify.webhook import WebhookError, masked, post, secret_of_environment
from rule_runner.results.json_text import dump_json

JSON: Final = "application/json"


@dataclass(frozen=True, repr=False)
class WebhookAction(Action):
    """Post the finding once, without retries.

    Parameters
    ----------
    url
        The address; shown without secrets.
    """

    url: str
    rule_name: str = ""
    name: ClassVar[str] = "webhook"

    @property
    def target(self) -> str:
        """The address, masked."""
        return masked(self.url)

    def plan(self, trigger: ActionTrigger) -> str:
        """Describe the post."""
        return f"The finding of rule {trigger.rule!r} would be posted to {self.target}."

    def carry_out(self, trigger: ActionTrigger, deadline: Deadline) -> ActionOutcome:
        """Post the finding."""
        try:
            post(
                self.url,
                dump_json(trigger.facts).encode(),
                content_type=JSON,
                secret=secret_of_environment(),
                timeout_s=deadline.remaining_s(),
            )
        except WebhookError as err:
            return ActionOutcome(ActionState.FAILED, str(err))
        return ActionOutcome(ActionState.DONE, f"Posted to {self.target}.")
