"""The webhook sink: CloudEvents 1.0, signed; what is not taken stays."""

import json

import http_places
import pytest
from http_places import Answer
from told import JOB, many, told

from rule_runner.notify.event import EventSubject
from rule_runner.notify.sinks import Sent, SinkError
from rule_runner.notify.sinks.webhook import WebhookSink, cloud_event


def test_an_event_arrives_as_a_cloud_event() -> None:
    with http_places.serving() as place:
        assert WebhookSink(f"{place.url}/hook", "s").send([told()]) == Sent(1)
    (request,) = place.requests
    assert request.headers["Content-Type"] == "application/cloudevents+json"
    assert request.headers["RuleRunner-Signature"].startswith("t=")
    assert json.loads(request.body) == {
        "specversion": "1.0",
        "id": told()["id"],
        "source": "rule-runner",
        "type": "SageMaker Training Job State Change",
        "subject": JOB.arn,
        "time": "2026-03-01T12:01:30Z",
        "datacontenttype": "application/json",
        "data": told()["detail"],
    }


def test_a_source_is_made_a_uri_reference() -> None:
    job = EventSubject("m", JOB.started_at, "https://example.org/é x")
    assert cloud_event(told(job=job))["source"] == "https://example.org/%C3%A9%20x"


def test_what_was_taken_counts_up_to_the_first_failure() -> None:
    answers = iter([200, 200, 503])
    with http_places.serving(lambda _: Answer(next(answers))) as place:
        sent = WebhookSink(place.url, None).send(many(5))
    assert (sent.done, sent.refused) == (2, ())
    assert sent.failure.endswith("answered with status 503.")


@pytest.mark.parametrize(("status", "transient"), [(503, True), (401, False)])
def test_a_failure_of_the_first_is_raised(status: int, transient: bool) -> None:
    with (
        http_places.serving(lambda _: Answer(status)) as place,
        pytest.raises(SinkError, match=f"status {status}") as found,
    ):
        WebhookSink(place.url, None).send(many(2))
    assert found.value.transient == transient
