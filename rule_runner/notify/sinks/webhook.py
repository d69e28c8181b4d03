"""WebhookSink: each event as a signed CloudEvent 1.0 in structured JSON over HTTPS."""

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote

from rule_runner.notify import webhook
from rule_runner.notify.event import Event
from rule_runner.notify.sinks.base import EventSink, RefusedError, Sent, SinkError, one_by_one
from rule_runner.results.json_text import dump_json

CONTENT_TYPE: Final = "application/cloudevents+json"
_IN_URIS: Final = "/:?#[]@!$&'()*+,;=%~"


class WebhookSink(EventSink):
    """Posts each event.

    Parameters
    ----------
    url
        The address.
    secret
        Key of the signature; None sends no signature.
    """

    def __init__(self, url: str, secret: str | None) -> None:
        self._url = url
        self._secret = secret

    def send(self, events: Sequence[Event]) -> Sent:
        """Post `events` one after another; see `EventSink`."""
        return one_by_one(self._send, events)

    def _send(self, event: Event) -> None:
        body = dump_json(cloud_event(event)).encode()
        try:
            webhook.post(self._url, body, content_type=CONTENT_TYPE, secret=self._secret)
        except webhook.WebhookError as err:
            if err.refused:
                raise RefusedError(str(err)) from err
            raise SinkError(str(err), transient=err.transient) from err


def cloud_event(event: Event) -> dict[str, Any]:
    """Return `event` in the envelope of CloudEvents 1.0."""
    resources: Any = event["resources"]
    return {
        "specversion": "1.0",
        "id": event["id"],
        "source": quote(str(event["source"]), safe=_IN_URIS),
        "type": event["detail-type"],
        "subject": resources[0],
        "time": event["time"],
        "datacontenttype": "application/json",
        "data": event["detail"],
    }
