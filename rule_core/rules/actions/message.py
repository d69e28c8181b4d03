"""MessageAction: sends an e-mail or a text message through the SNS topic of debugger rules."""

import json
import re
from dataclasses import dataclass, replace
from typing import Final

from rule_core.rules.actions.aws_calls import AwsCalls, CallError
from rule_core.rules.actions.base import Action, ActionOutcome, ActionState, ActionTrigger, Deadline
from rule_core.rules.actions.parsing import EMAIL, SMS, masked

TOPIC: Final = "SMDebugRules"
# Topics keep the subscriptions of earlier evaluations: do not change these names.
ATTRIBUTES: Final = {EMAIL: "email", SMS: "phone_num"}
_SUBJECT: Final = 99  # characters, the limit of SNS
_MESSAGE: Final = 200_000  # bytes, below the limit of SNS including the envelope
_PENDING: Final = "PendingConfirmation"
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


@dataclass(frozen=True)
class MessageAction(Action):
    """Send a message to one subscriber of the topic.

    Creates the topic and subscribes the endpoint if necessary; the owner of a new e-mail address
    must confirm the subscription before messages are delivered. A message is not sent again if
    the response to its sending was lost.

    Parameters
    ----------
    rule_name
        The name of the rule, for messages.
    message_type
        ``email`` or ``sms``.
    endpoint
        The e-mail address or telephone number; its case is preserved.
    """

    rule_name: str
    message_type: str
    endpoint: str

    @property
    def name(self) -> str:  # type: ignore[override]  # two actions share the class
        """``email`` or ``sms``."""
        return self.message_type

    @property
    def target(self) -> str:
        """The endpoint, masked."""
        return masked(self.endpoint)

    def __repr__(self) -> str:
        """Return a representation without secrets."""
        return f"MessageAction({self.rule_name!r}, {self.message_type!r}, {self.target!r})"

    def plan(self, trigger: ActionTrigger) -> str:
        """Return a sentence that describes the message and its recipient."""
        return f"{subject(trigger.rule)!r} would be sent to {self.target} through topic {TOPIC!r}."

    def carry_out(self, trigger: ActionTrigger, deadline: Deadline) -> ActionOutcome:
        """Subscribe the endpoint if necessary, and publish the message."""
        try:
            calls = AwsCalls("sns", deadline)
            topic = calls.call("CreateTopic", {"Name": TOPIC})["TopicArn"]
            is_pending = self._subscribe(calls, topic)
            calls.call("Publish", self._publication(topic, trigger), once=True)
        except CallError as err:
            masked_detail = err.outcome.detail.replace(self.endpoint, self.target)
            return replace(err.outcome, detail=masked_detail)
        text = f"Sent to {self.target} through topic {TOPIC!r}."
        if is_pending:
            text += " Nothing is delivered until its owner confirms the subscription."
        return ActionOutcome(ActionState.DONE, text)

    def _publication(self, topic: str, trigger: ActionTrigger) -> dict[str, object]:
        """Return the arguments of Publish; the attribute selects this endpoint's filter policy."""
        recipient = {"DataType": "String", "StringValue": self.endpoint}
        return {
            "TopicArn": topic,
            "Subject": subject(trigger.rule),
            "Message": _truncated(f"SMDebugRule:{trigger.rule} fired. {trigger.text}".rstrip()),
            "MessageAttributes": {ATTRIBUTES[self.message_type]: recipient},
        }

    def _subscribe(self, calls: AwsCalls, topic: str) -> bool:
        """Subscribe the endpoint if necessary; return whether a confirmation is pending."""
        for page in calls.pages("ListSubscriptionsByTopic", {"TopicArn": topic}):
            for subscription in page["Subscriptions"]:
                if (subscription["Protocol"], subscription["Endpoint"]) == (
                    self.message_type,
                    self.endpoint,
                ):
                    return bool(subscription["SubscriptionArn"] == _PENDING)
        policy = json.dumps({ATTRIBUTES[self.message_type]: [self.endpoint]})
        arguments = {
            "TopicArn": topic,
            "Protocol": self.message_type,
            "Endpoint": self.endpoint,
            "Attributes": {"FilterPolicy": policy},
            "ReturnSubscriptionArn": False,
        }
        response = calls.call("Subscribe", arguments)
        return not str(response.get("SubscriptionArn", "")).startswith("arn:")


def subject(rule: str) -> str:
    """Return the subject of a message within the limits of SNS.

    >>> subject("VanishingGradient")
    'SMDebugRule:VanishingGradient fired'
    """
    return _CONTROL.sub(" ", f"SMDebugRule:{rule} fired")[:_SUBJECT]


def _truncated(text: str) -> str:
    """Truncate a text to the size limit of messages."""
    return text.encode("utf-8", "replace")[:_MESSAGE].decode("utf-8", "ignore")
