"""docs/events.md: its Python verifies what is posted, its JSON is JSON, its sinks are ours."""

import json
import re
import time
from pathlib import Path
from typing import Any

import http_places
import pytest
from told import told

from rule_runner.notify.sinks.spec import parse_sinks
from rule_runner.notify.sinks.webhook import WebhookSink

TEXT = (Path(__file__).parents[3] / "docs" / "events.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


@pytest.fixture
def is_genuine() -> Any:
    """Return the function that the document shows."""
    (code,) = blocks("python")
    names: dict[str, Any] = {}
    exec(code, names)
    return names["is_genuine"]


def test_a_receiver_that_does_as_told_trusts_what_is_posted(is_genuine: Any) -> None:
    with http_places.serving() as place:
        WebhookSink(place.url, "s3cret").send([told()])
    (request,) = place.requests
    header = request.headers["RuleRunner-Signature"]
    assert is_genuine(header, request.body, "s3cret")
    assert not is_genuine(header, request.body, "another")
    assert not is_genuine(header, request.body + b" ", "s3cret")
    assert not is_genuine(header.replace("t=", "t=1"), request.body, "s3cret")
    late = f"t={int(time.time()) - 1000},{header.partition(',')[2]}"
    assert not is_genuine(late, request.body, "s3cret")


def test_its_json_is_json_and_its_detail_is_what_is_sent() -> None:
    found = [json.loads(one) for one in blocks("json")]
    detail = found[0]
    assert list(detail) == list(told()["detail"])
    entry = told()["detail"]["DebugRuleEvaluationStatuses"][0]
    assert set(detail["DebugRuleEvaluationStatuses"][0]) == set(entry)


@pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")  # by Apprise
def test_its_sinks_are_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RULE_RUNNER_WEBHOOK_SECRET", "s")
    monkeypatch.setenv("ALERTS", "json://localhost")
    texts = re.findall(r"--sink '?([^\s']+)", "".join(blocks("bash")))
    assert len(texts) == 6
    assert [len(parse_sinks([one])) for one in texts] == [1] * 6
    kinds = re.findall(r"^\| `([a-z-]+)", TEXT, re.MULTILINE)
    with pytest.raises(Exception, match="Sinks are: " + ", ".join(f"'{one}'" for one in kinds)):
        parse_sinks(["unknown"])
