"""AwsSink: a sink with an AWS client, which is created for the first event."""

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Final

from rule_core.storage import aws
from rule_runner.notify.sinks.base import EventSink, SinkError
from rule_runner.notify.webhook import masked

NO_OTHERS: Final[Mapping[str, type[Exception]]] = {}

_URL: Final = re.compile(r"https?://[^\s\"']+")


class RefusedError(Exception):
    """The receiver rejects an event for good; the text is the reason."""


class AwsSink(EventSink):
    """A sink with an AWS client.

    Parameters
    ----------
    service
        Name of the service in boto3.
    region
        Overrides the region of environment and profile.
    """

    def __init__(self, service: str, region: str | None, name: str, label: str) -> None:
        super().__init__(name, label)
        self._service = service
        self._region = region

    @cached_property
    def client(self) -> Any:
        """The AWS client."""
        return aws.client(self._service, region=self._region)

    @contextmanager
    def calls(
        self, codes: Collection[str] = (), others: Mapping[str, type[Exception]] = NO_OTHERS
    ) -> Iterator[None]:
        """Translate errors of the client inside the block.

        Parameters
        ----------
        codes
            Error codes of a rejection for good.
        others
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
            if fault.code in codes:
                raise RefusedError(reason) from err
            if fault.code in others:
                raise others[fault.code](reason) from err
            raise SinkError(reason, transient=fault.transient) from err
