"""WebhookAction: posts what was found, as JSON, to an address that the operator gave."""

from dataclasses import dataclass
from typing import ClassVar, Final

from rule_runner.results import dump_json
from rule_runner.webhook import WebhookError, masked, post, secret_of_environment
from smdebug.rules.action.base import Action, ActionState, Fired, Limits, Outcome

JSON: Final = "application/json"


@dataclass(frozen=True, repr=False)
class WebhookAction(Action):
    """Post the finding once; it is not posted again, whatever the answer.

    Parameters
    ----------
    url
        Where to; it is shown without what may be secret.
    """

    url: str
    rule_name: str = ""
    name: ClassVar[str] = "webhook"

    @property
    def target(self) -> str:
        """The address, masked."""
        return masked(self.url)

    def plan(self, fired: Fired) -> str:
        """Return where the finding would be posted to."""
        return f"The finding of rule {fired.rule!r} would be posted to {self.target}."

    def carry_out(self, fired: Fired, limits: Limits) -> Outcome:
        """Post the finding."""
        try:
            post(
                self.url,
                dump_json(fired.facts).encode(),
                content_type=JSON,
                secret=secret_of_environment(),
                timeout_s=limits.left(),
            )
        except WebhookError as err:
            return Outcome(ActionState.FAILED, str(err))
        return Outcome(ActionState.DONE, f"Posted to {self.target}.")
