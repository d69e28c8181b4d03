"""AwsCalls: calls of one service of AWS within an action's time, and what went wrong in words."""

import re
from collections.abc import Mapping
from typing import Any, Final

from smdebug.rules.action.base import ActionState, Limits, Outcome
from smdebug.storage import aws
from smdebug.storage.retry import retry

_DENIED: Final = re.compile("AccessDenied|AuthorizationError|UnauthorizedOperation")
_THROTTLED: Final = re.compile("Throttl|TooManyRequests|RequestLimitExceeded|SlowDown")
# What never left this machine.
_UNSENT: Final = frozenset({"ConnectTimeoutError", "EndpointConnectionError"})
_TRIES: Final = 3  # into which the time is divided, if each hangs


class CallError(Exception):
    """A call failed for good.

    Attributes
    ----------
    code
        The service's own.
    outcome
        What that means for the action.
    """

    def __init__(self, code: str, outcome: Outcome) -> None:
        super().__init__(outcome.detail)
        self.code = code
        self.outcome = outcome


class AwsCalls:
    """Calls one service, in the region that `aws.client` takes.

    Parameters
    ----------
    service
        As boto3 calls it, which is also how its permissions begin.
    limits
        The action's time.

    Raises
    ------
    CallError
        If the profile, the region or the endpoint is none.
    """

    def __init__(self, service: str, limits: Limits) -> None:
        self._service = service
        self._limits = limits
        one_try = max(limits.left() / _TRIES, 0.001)
        try:
            self._client = aws.client(
                service,
                connect_timeout=min(aws.CONNECT_TIMEOUT_S, one_try),
                read_timeout=min(aws.READ_TIMEOUT_S, one_try),
            )
        except aws.errors() as err:
            fault = aws.fault(err)
            text = f"AWS cannot be called: {fault.reason}."
            raise CallError(fault.code, Outcome(ActionState.FAILED, text)) from err

    def call(
        self, operation: str, arguments: Mapping[str, object], *, once: bool = False
    ) -> dict[str, Any]:
        """Return what an operation answers; try again while that may help.

        Parameters
        ----------
        operation
            As permissions call it, such as ``ListTrainingJobs``.
        once
            Whether it must not be done twice: then it is only tried again if it was surely not
            done.

        Raises
        ------
        CallError
            If it fails.
        """
        method = getattr(self._client, re.sub(r"(?<!^)(?=[A-Z])", "_", operation).lower())
        kinds = aws.errors()

        def passes(err: Exception) -> bool:
            if not isinstance(err, kinds):
                return False
            fault = aws.fault(err)
            return _surely_not_done(fault.code) if once else fault.transient

        try:
            answer: dict[str, Any] = retry(
                lambda: method(**arguments),
                passes=passes,
                deadline_s=self._limits.left(),
                clock=self._limits.clock,
            )
        except kinds as err:
            raise self._error(operation, aws.fault(err), once=once) from err
        return answer

    def _error(self, operation: str, fault: aws.AwsFault, *, once: bool) -> CallError:
        """Return what a fault means."""
        permission = f"{self._service}:{operation}"
        state = ActionState.FAILED
        if _DENIED.search(fault.code):
            remedy = f" The role needs {permission}."
        elif once and fault.transient and not _surely_not_done(fault.code):
            state, remedy = ActionState.UNKNOWN, " It may have been done all the same."
        else:
            remedy = ""
        return CallError(
            fault.code, Outcome(state, f"{permission} failed: {fault.reason}.{remedy}")
        )


def _surely_not_done(code: str) -> bool:
    return code in _UNSENT or _THROTTLED.search(code) is not None
