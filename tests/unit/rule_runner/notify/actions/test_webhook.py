"""WebhookAction: what is posted, once, and what came of it."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from rule_core.rules.actions.base import ActionOutcome, ActionState, ActionTrigger, Deadline
from rule_runner.notify.actions.webhook import WebhookAction
from rule_runner.notify.webhook import SECRET, SIGNATURE, signature

FIRED = ActionTrigger("R", "", {"rule": "R", "step": 7})
Received = list[tuple[dict[str, str], bytes]]


@contextmanager
def serving(status: int | None = 204) -> Iterator[tuple[str, Received]]:
    """Run a server on this machine that gives one status, or no answer at all."""
    received: Received = []
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.append((dict(self.headers), body))
            if status is None:
                over.wait()
                return
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", received
    finally:
        over.set()
        server.shutdown()
        server.server_close()
        thread.join()


def test_the_finding_is_posted_and_signed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SECRET, "key")
    with serving() as (url, received):
        outcome = WebhookAction(f"{url}/secret").carry_out(FIRED, Deadline(20))
    assert outcome == ActionOutcome(ActionState.DONE, f"Posted to {url}/....")
    ((headers, body),) = received
    assert json.loads(body) == FIRED.facts
    at = int(headers[SIGNATURE].partition(",")[0].removeprefix("t="))
    assert (headers["Content-Type"], headers[SIGNATURE]) == (
        "application/json",
        signature("key", body, at),
    )


@pytest.mark.parametrize("status", [302, 400, 503])
def test_what_is_not_taken_is_not_posted_again(
    monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setenv(SECRET, "key")
    with serving(status) as (url, received):
        outcome = WebhookAction(url).carry_out(FIRED, Deadline(20))
    assert (outcome.state, len(received)) == (ActionState.FAILED, 1)
    assert str(status) in outcome.detail


def test_a_webhook_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SECRET, "key")
    with serving(None) as (url, received):
        outcome = WebhookAction(f"{url}/secret").carry_out(FIRED, Deadline(0.5))
        assert len(received) == 1
    assert outcome.state is ActionState.FAILED
    assert outcome.detail.startswith(f"Webhook {url}/... did not answer within 0.")


def test_plan_posts_nothing() -> None:
    plan = WebhookAction("https://example.com/secret").plan(FIRED)
    assert plan == "The finding of rule 'R' would be posted to https://example.com/...."
