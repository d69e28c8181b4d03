"""AwsSink: a sink behind a client of AWS, which is made when the first event is sent."""

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Final

from rule_runner.sinks.protocol import EventSink, SinkError
from rule_runner.webhook import masked
from smdebug.storage import aws

NO_OTHERS: Final[Mapping[str, type[Exception]]] = {}

_URL: Final = re.compile(r"https?://[^\s\"']+")


class RefusedError(Exception):
    """What was sent will never be taken; the text says why."""


class AwsSink(EventSink):
    """A sink behind a client of AWS.

    Parameters
    ----------
    service
        As boto3 calls it.
    region
        Instead of that of environment and profile.
    """

    def __init__(self, service: str, region: str | None, name: str, label: str) -> None:
        super().__init__(name, label)
        self._service = service
        self._region = region

    @cached_property
    def client(self) -> Any:
        """The client."""
        return aws.client(self._service, region=self._region)

    @contextmanager
    def calls(
        self, codes: Collection[str] = (), others: Mapping[str, type[Exception]] = NO_OTHERS
    ) -> Iterator[None]:
        """Turn what the client raises inside the block into words.

        Parameters
        ----------
        codes
            Those that say that it will never be taken.
        others
            What is raised for other codes.

        Raises
        ------
        RefusedError
            For one of `codes`.
        SinkError
            For a code that is not named.
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
