"""MessageAction: an e-mail or a text message through the SNS topic of debugger rules."""

import json
import re
from dataclasses import dataclass, replace
from typing import Final

from smdebug.rules.action.aws_calls import AwsCalls, CallError
from smdebug.rules.action.base import Action, ActionState, Fired, Limits, Outcome
from smdebug.rules.action.endpoints import EMAIL, SMS, masked

TOPIC: Final = "SMDebugRules"
# Topics keep the subscriptions of older evaluations: these names must stay as they are.
ATTRIBUTES: Final = {EMAIL: "email", SMS: "phone_num"}
_SUBJECT: Final = 99  # characters, the limit of SNS
_MESSAGE: Final = 200_000  # bytes, below the limit of SNS with everything around it
_PENDING: Final = "PendingConfirmation"
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


@dataclass(frozen=True)
class MessageAction(Action):
    """Send a message to one subscriber of the topic.

    The topic is made, and the endpoint subscribed to it, if they are not yet; the owner of a new
    e-mail address has to confirm before anything reaches it. A message whose sending was not
    answered is not sent again.

    Parameters
    ----------
    rule_name
        Name of the rule, for messages.
    message_type
        ``email`` or ``sms``.
    endpoint
        E-mail address, or telephone number; its case is kept.
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
        """Return what may be logged."""
        return f"MessageAction({self.rule_name!r}, {self.message_type!r}, {self.target!r})"

    def plan(self, fired: Fired) -> str:
        """Return what would be sent to whom."""
        return f"{subject(fired.rule)!r} would be sent to {self.target} through topic {TOPIC!r}."

    def carry_out(self, fired: Fired, limits: Limits) -> Outcome:
        """Subscribe the endpoint if it is not, and publish."""
        try:
            calls = AwsCalls("sns", limits)
            topic = calls.call("CreateTopic", {"Name": TOPIC})["TopicArn"]
            waits = self._subscribed(calls, topic)
            calls.call("Publish", self._letter(topic, fired), once=True)
        except CallError as err:
            shown = err.outcome.detail.replace(self.endpoint, self.target)
            return replace(err.outcome, detail=shown)
        text = f"Sent to {self.target} through topic {TOPIC!r}."
        if waits:
            text += " Its owner has not confirmed the subscription: until then nothing arrives."
        return Outcome(ActionState.DONE, text)

    def _letter(self, topic: str, fired: Fired) -> dict[str, object]:
        """Return what is published; the attribute brings it past this endpoint's filter only."""
        whom = {"DataType": "String", "StringValue": self.endpoint}
        return {
            "TopicArn": topic,
            "Subject": subject(fired.rule),
            "Message": _cut(f"SMDebugRule:{fired.rule} fired. {fired.text}".rstrip()),
            "MessageAttributes": {ATTRIBUTES[self.message_type]: whom},
        }

    def _subscribed(self, calls: AwsCalls, topic: str) -> bool:
        """Subscribe the endpoint if it is not, and say whether its owner has still to confirm."""
        token: dict[str, str] = {}
        while True:
            page = calls.call("ListSubscriptionsByTopic", {"TopicArn": topic, **token})
            for one in page["Subscriptions"]:
                if (one["Protocol"], one["Endpoint"]) == (self.message_type, self.endpoint):
                    return bool(one["SubscriptionArn"] == _PENDING)
            if not page.get("NextToken"):
                break
            token = {"NextToken": page["NextToken"]}
        policy = json.dumps({ATTRIBUTES[self.message_type]: [self.endpoint]})
        asked = {
            "TopicArn": topic,
            "Protocol": self.message_type,
            "Endpoint": self.endpoint,
            "Attributes": {"FilterPolicy": policy},
            "ReturnSubscriptionArn": False,
        }
        made = calls.call("Subscribe", asked)
        return not str(made.get("SubscriptionArn", "")).startswith("arn:")


def subject(rule: str) -> str:
    """Return the subject of a message, as short and plain as SNS wants it.

    >>> subject("VanishingGradient")
    'SMDebugRule:VanishingGradient fired'
    """
    return _CONTROL.sub(" ", f"SMDebugRule:{rule} fired")[:_SUBJECT]


def _cut(text: str) -> str:
    """Return a text that fits into a message."""
    return text.encode("utf-8", "replace")[:_MESSAGE].decode("utf-8", "ignore")
