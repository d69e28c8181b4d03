"""The command `serve` in a real browser: the login, the live table, and an action."""

import json
import os
import signal
from pathlib import Path
from typing import Any, Final

import chromium
import pytest
from served import add, rule
from serving import Serving, write

from rule_runner.index.database import WatchDatabase
from rule_runner.service.access.tokens import Role, TokenFile

WAIT_MS: Final = 30_000
TABS: Final = 10
HOSTILE: Final = "<img src=x onerror=alert(1)>"


@pytest.fixture
def page() -> Any:
    with chromium.started() as browser:
        page = browser.new_context().new_page()
        page.set_default_timeout(WAIT_MS)
        yield page


@pytest.mark.parametrize("kind", ["rule", "incident"])
def test_a_person_acknowledges_an_issue_and_withdraws_that(
    page: Any, tmp_path: Path, kind: str
) -> None:
    write(tmp_path / "runs" / HOSTILE, rows=200)
    os.utime(tmp_path / "runs" / HOSTILE / "log.csv", (1e9, 1e9))  # it has ended, and gets a report
    (tmp_path / "fleet.yaml").write_text(
        "roots: [runs]\njudge: [{trials: '*', rules: [LossNotDecreasing]}]\n"
    )
    secret = TokenFile(tmp_path / "tokens.json").add("ann", Role.ACT)
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text))
    page.on("pageerror", lambda error: errors.append(str(error)))
    with Serving(tmp_path, "--config", "fleet.yaml", "--tokens", "tokens.json") as serving:
        page.goto(f"{serving.url}/trials?sort=-changed")
        page.fill("input[name=token]", secret)
        page.click("main button.primary")
        page.wait_for_url(f"{serving.url}/trials?sort=-changed")
        page.wait_for_selector("#live[data-state=live]")
        page.click("#rows a[data-rule=LossNotDecreasing]")
        page.wait_for_selector("#live[data-state=live]")
        page.wait_for_timeout(1000)  # the page is looked at again when the stream is open
        page.click(f"[data-acknowledge={kind}] >> visible=true")
        page.fill("dialog[open] [name=reason]", "known")
        page.click("dialog[open] button.primary")
        page.wait_for_selector("text=acknowledged by ann (known)")
        assert page.is_visible("#incidents h2:has-text('acknowledged')")
        page.focus(f"[data-withdraw={kind}]")
        page.keyboard.press("Enter")
        page.wait_for_selector("dialog[open] h2:has-text('Withdraw')")
        assert not page.is_visible("dialog[open] [name=mute]")
        page.keyboard.type("a mistake")
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.wait_for_selector("text=acknowledged by ann", state="detached")
        page.click("summary:has-text('Files and versions')")
        page.click("#files a:has-text('acknowledgements.jsonl')")
        lines = map(json.loads, page.inner_text("body").splitlines())
        said = [(line["who"], line["kind"], line["reason"]) for line in lines]
        assert said == [("ann", "acknowledged", "known"), ("ann", "withdrawn", "a mistake")]
        page.go_back()
        page.click("summary:has-text('Files and versions')")
        page.click("#files a:has-text('report.html')")
        page.wait_for_selector("h1")
        assert errors.pop(0).startswith("Blocked script execution")
        page.go_back()
        assert errors == []
        page.click("header button:has-text('Log out')")  # requests under way may be refused now
        page.wait_for_selector("input[name=token]")


def test_ten_tabs_share_a_stream_and_lead_to_the_login_after_a_restart(
    page: Any, tmp_path: Path
) -> None:
    with WatchDatabase(tmp_path / "index.sqlite") as index:
        add(index, "/runs/a", [rule()])
    secret = TokenFile(tmp_path / "tokens.json").add("ann", Role.READ)
    arguments = ("--no-watch", "--database", "index.sqlite", "--tokens", "tokens.json")
    bearer = {"Authorization": f"Bearer {secret}"}
    with Serving(tmp_path, *arguments) as serving:
        page.goto(f"{serving.url}/trials")
        page.fill("input[name=token]", secret)
        page.click("main button.primary")
        tabs = [page, *(page.context.new_page() for _ in range(TABS - 1))]
        for tab in tabs:
            tab.goto(f"{serving.url}/trials")
            tab.wait_for_selector("#live[data-state=live]")
        with serving.open("/metrics", **bearer) as answer:
            assert b"rule_runner_event_streams 1.0\n" in answer.read()
        assert serving.stop() == 128 + signal.SIGTERM
    page.wait_for_selector("#live[data-state=lost]")
    port = serving.url.rpartition(":")[2]
    with Serving(tmp_path, *arguments, "--port", port):
        for tab in tabs:
            tab.wait_for_url("**/login?next=/trials")
