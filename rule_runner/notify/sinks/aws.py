"""AwsSink: a sink with an AWS client, which is created for the first event."""

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Final

from rule_core.storage import aws
from rule_runner.notify.sinks.base import EventSink, RefusedError, SinkError
from rule_runner.notify.webhook import masked

_URL: Final = re.compile(r"https?://[^\s\"']+")


class AwsSink(EventSink):
    """A sink with an AWS client.

    Parameters
    ----------
    service
        Name of the service in boto3.
    region
        Overrides the region of environment and profile.
    """

    def __init__(self, service: str, region: str | None) -> None:
        self._service = service
        self._region = region

    @cached_property
    def client(self) -> Any:
        """The AWS client."""
        return aws.client(self._service, region=self._region)

    @contextmanager
    def calls(
        self, codes: Collection[str], exceptions: Mapping[str, type[Exception]] | None = None
    ) -> Iterator[None]:
        """Translate errors of the client inside the block.

        Parameters
        ----------
        codes
            Error codes of a rejection for good.
        exceptions
            Exceptions for other error codes.

        Raises
        ------
        RefusedError
            For one of `codes`.
        SinkError
            For any other code.
        """
        try:
            yield
        except aws.errors() as err:
            fault = aws.fault(err)
            reason = _URL.sub(lambda url: masked(url[0]), fault.reason)
            exceptions = dict.fromkeys(codes, RefusedError) | dict(exceptions or {})
            if fault.code in exceptions:
                raise exceptions[fault.code](reason) from err
            raise SinkError(reason, transient=fault.transient) from err
