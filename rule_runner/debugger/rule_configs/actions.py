"""Actions of a debugging rule: stop the training, write an e-mail, send a text message."""

import json
import re
from typing import Final

# As strict as the SDK: an address has no dots before the @ and no capitals.
_PREFIX: Final = re.compile(r"[A-Za-z0-9\-]+")
_EMAIL: Final = re.compile(r"[a-z0-9]+@\w+\.\w{2,3}")
_PHONE: Final = re.compile(r"\+\d{1,15}")


class Action:
    """An action of the evaluator when the condition of a rule is met.

    Attributes
    ----------
    action_parameters
        The parameters in the request, in this order.
    """

    def __init__(self, action_parameters: dict[str, str]) -> None:
        self.action_parameters = action_parameters

    def serialize(self) -> str:
        r"""Return JSON with a backslash before every quotation mark.

        Examples
        --------
        >>> print(StopTraining().serialize())
        {\"name\": \"stoptraining\"}
        """
        return json.dumps(self.action_parameters, ensure_ascii=False).replace('"', r"\"")

    def update_training_job_prefix_if_not_specified(self, training_job_name: str) -> None:
        """Use the name of the training job if needed; here it is not."""


class StopTraining(Action):
    """Stop the training job.

    Parameters
    ----------
    training_job_prefix
        Letters, digits and hyphens, with which the names of the jobs to stop begin; by default
        the name of the job that the rule watches.

    Raises
    ------
    ValueError
        If the prefix is anything else.
    """

    def __init__(self, training_job_prefix: str | None = None) -> None:
        parameters = {}
        if training_job_prefix is not None:
            what = "letters, numbers and hyphens"
            _require("training job prefix", training_job_prefix, _PREFIX, what)
            parameters["training_job_prefix"] = training_job_prefix
        super().__init__(parameters | {"name": "stoptraining"})
        self.use_default_training_job_prefix = training_job_prefix is None

    def update_training_job_prefix_if_not_specified(self, training_job_name: str) -> None:
        """Use the name of the training job as the prefix if none was given."""
        if self.use_default_training_job_prefix:
            self.action_parameters["training_job_prefix"] = str(training_job_name)


class Email(Action):
    """Write an e-mail.

    Parameters
    ----------
    email_address
        Small letters and digits, ``@``, one name, a dot and two or three characters.

    Raises
    ------
    ValueError
        If it is anything else.
    """

    def __init__(self, email_address: str) -> None:
        _require("email address", email_address, _EMAIL, "username@domain")
        super().__init__({"endpoint": email_address, "name": "email"})


class SMS(Action):
    """Send a text message.

    Parameters
    ----------
    phone_number
        In the E.164 format: ``+`` and at most 15 digits.

    Raises
    ------
    ValueError
        If it is anything else.
    """

    def __init__(self, phone_number: str) -> None:
        _require("phone number", phone_number, _PHONE, "a + and digits, the E.164 format")
        super().__init__({"endpoint": phone_number, "name": "sms"})


class ActionList:
    """Several actions.

    Raises
    ------
    TypeError
        If an argument is not an action.
    """

    def __init__(self, *actions: Action) -> None:
        for action in actions:
            _require_action(action)
        self.actions = actions

    def serialize(self) -> str:
        """Return a JSON list with a backslash before every quotation mark."""
        return f"[{', '.join(action.serialize() for action in self.actions)}]"

    def update_training_job_prefix_if_not_specified(self, training_job_name: str) -> None:
        """Pass the name of the training job to every action."""
        for action in self.actions:
            action.update_training_job_prefix_if_not_specified(training_job_name)


def is_valid_action_object(actions: object) -> bool:
    """Return whether `actions` is an action or an `ActionList`."""
    return isinstance(actions, Action | ActionList)


def _require_action(action: object) -> None:
    if not isinstance(action, Action):
        raise TypeError(
            f"Actions of an ActionList must be Action objects, given one by one, got {action!r}."
        )


def _require(subject: str, value: object, pattern: re.Pattern[str], what: str) -> None:
    if not isinstance(value, str):
        raise ValueError(f"Argument {subject.replace(' ', '_')} must be a string, got {value!r}.")  # noqa: TRY004 - as the SDK does
    if not pattern.fullmatch(value):
        raise ValueError(f"Invalid {subject}: it must be {what}, got {value!r}.")
