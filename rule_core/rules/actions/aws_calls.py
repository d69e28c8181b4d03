"""AwsCalls: calls of one AWS service within the deadline of an action."""

import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final

from rule_core.rules.actions.base import ActionOutcome, ActionState, Deadline
from rule_core.storage import aws

_DENIED: Final = re.compile("AccessDenied|AuthorizationError|UnauthorizedOperation")
_THROTTLED: Final = re.compile("Throttl|TooManyRequests|RequestLimitExceeded|SlowDown")
# The request never left this machine.
_UNSENT: Final = frozenset({"ConnectTimeoutError", "EndpointConnectionError"})
_ATTEMPTS: Final = 3  # that fit into the deadline even if each times out


class CallError(Exception):
    """A call that failed for good.

    Attributes
    ----------
    code
        The service's error code.
    outcome
        The outcome of the action.
    """

    def __init__(self, code: str, outcome: ActionOutcome) -> None:
        super().__init__(outcome.detail)
        self.code = code
        self.outcome = outcome


class AwsCalls:
    """Calls of one service, in the default region of `aws.client`.

    Parameters
    ----------
    service
        The boto3 name of the service, which is also the prefix of its permissions.
    deadline
        The deadline of the action.

    Raises
    ------
    CallError
        If the profile, the region or the endpoint is invalid.
    """

    def __init__(self, service: str, deadline: Deadline) -> None:
        self._service = service
        self._deadline = deadline
        timeout_s = max(deadline.remaining_s() / _ATTEMPTS, 0.001)
        try:
            self._client = aws.client(
                service,
                connect_timeout=min(aws.CONNECT_TIMEOUT_S, timeout_s),
                read_timeout=min(aws.READ_TIMEOUT_S, timeout_s),
            )
        except aws.errors() as err:
            fault = aws.fault(err)
            text = f"AWS cannot be called: {fault.reason}."
            raise CallError(fault.code, ActionOutcome(ActionState.FAILED, text)) from err

    def call(
        self, operation: str, arguments: Mapping[str, object], *, once: bool = False
    ) -> dict[str, Any]:
        """Return the response to an operation, which is retried until the deadline.

        Parameters
        ----------
        operation
            Its name in permissions, such as ``ListTrainingJobs``.
        once
            Whether the operation must not be carried out twice. It is then retried only after
            errors that prove that it was not carried out.

        Raises
        ------
        CallError
            If it fails.
        """
        method = getattr(self._client, re.sub(r"(?<!^)(?=[A-Z])", "_", operation).lower())
        try:
            response: dict[str, Any] = aws.call(
                lambda: method(**arguments),
                deadline_s=self._deadline.remaining_s(),
                clock=self._deadline.clock,
                is_retryable=lambda fault: _is_not_done(fault) if once else fault.transient,
            )
        except aws.AwsCallError as err:
            raise self._error(operation, err.fault, once=once) from err
        return response

    def pages(
        self, operation: str, arguments: Mapping[str, object], most: int = sys.maxsize
    ) -> Iterator[dict[str, Any]]:
        """Yield at most so many pages of the response to an operation; see `call`."""
        token: dict[str, object] = {}
        for _ in range(most):
            page = self.call(operation, {**arguments, **token})
            yield page
            if not page.get("NextToken"):
                return
            token = {"NextToken": page["NextToken"]}

    def _error(self, operation: str, fault: aws.AwsFault, *, once: bool) -> CallError:
        """Translate a fault into the outcome of the action."""
        permission = f"{self._service}:{operation}"
        state = ActionState.FAILED
        if _DENIED.search(fault.code):
            remedy = f" The role needs {permission}."
        elif once and fault.transient and not _is_not_done(fault):
            state, remedy = ActionState.UNKNOWN, " It may have been done all the same."
        else:
            remedy = ""
        return CallError(
            fault.code, ActionOutcome(state, f"{permission} failed: {fault.reason}.{remedy}")
        )


def _is_not_done(fault: aws.AwsFault) -> bool:
    """Return whether the service certainly did not carry out the operation."""
    return fault.code in _UNSENT or _THROTTLED.search(fault.code) is not None
