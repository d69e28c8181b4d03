import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import reports
import served
from starlette.testclient import TestClient

from rule_runner.index.database import WatchDatabase
from rule_runner.results.acknowledgements import (
    Acknowledgement,
    AcknowledgementKind,
    append_acknowledgement,
)
from rule_runner.results.issues.acknowledged import finding_ids
from rule_runner.results.schema import Evidence, RuleSource, WindowTimes
from rule_runner.service.application import build_application
from rule_runner.service.pages import views
from rule_runner.service.pages.table import ROWS

HOSTILE = "<img src=x onerror=alert(1)>\u202e"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[WatchDatabase]:
    with WatchDatabase.empty(tmp_path / "index.sqlite") as database:
        yield database


@pytest.fixture
def client(tmp_path: Path, database: WatchDatabase) -> Iterator[TestClient]:
    del database
    application = build_application(served.service(tmp_path / "index.sqlite"))
    with TestClient(application, base_url="http://127.0.0.1") as client:
        yield client


def text_of(client: TestClient, address: str, status: int = 200) -> str:
    response = client.get(address)
    assert response.status_code == status, response.text
    return response.text


def test_the_table_without_trials_says_how_to_get_some(client: TestClient) -> None:
    assert "No trials yet" in text_of(client, "/trials")


def test_the_table_shows_verdicts(client: TestClient, database: WatchDatabase) -> None:
    rules = [served.rule("A"), served.rule("B", "IssuesFound"), served.rule("C", "NotEvaluated")]
    served.add(database, "/runs/sweep/first", rules)
    page = text_of(client, "/trials")
    assert 'aria-label="B: Warning at step 130, 3 findings"' in page
    assert '<td class="v q NoIssuesFound">✓</td>' in page
    assert "/rules/B" in page
    assert "/rules/C" not in page


def test_the_filter_is_that_of_the_address(client: TestClient, database: WatchDatabase) -> None:
    served.add(database, "/runs/first", [served.rule("A")])
    served.add(database, "/runs/second", [served.rule("A", "IssuesFound")])
    page = text_of(client, "/trials?text=sec&outcome=IssuesFound&rule=A&sort=-changed")
    assert "second" in page
    assert ">first<" not in page
    assert "1 of 2 trials" in page
    assert '<option value="IssuesFound" selected>' in page
    assert '<option value="A" selected>' in page
    assert "No trial fits" in text_of(client, "/trials?text=third")


def test_a_long_table_has_pages(client: TestClient, database: WatchDatabase) -> None:
    for number in range(ROWS + 1):
        served.add(database, f"/runs/{number:04d}")
    first = text_of(client, "/trials?sort=-path")
    assert first.count('id="trial-') == ROWS
    assert 'rel="next" href="/trials?sort=-path&amp;page=2"' in first
    assert 'rel="prev"' not in first
    second = text_of(client, "/trials?sort=-path&page=2")
    assert second.count('id="trial-') == 1
    assert 'rel="next"' not in second


@pytest.mark.parametrize(("layout", "rules"), [("single", 1), ("several", 2)])
def test_results_of_version_0_1_0_have_a_page(
    client: TestClient, database: WatchDatabase, layout: str, rules: int
) -> None:
    output = Path(__file__).parents[4] / "data" / "outputs-0.1.0" / layout
    names = [path.parent.name for path in output.rglob("rule_result.json")]
    records = [served.rule(name, "IssuesFound") for name in names]
    trial = served.add(database, "/runs/mnist", records, output=str(output))
    page = text_of(client, f"/trials/{trial.id}")
    assert len(names) == rules
    for text in ("The first in order of execution", "rule_result.json", "0.1.0"):
        assert text in page


def test_nothing_of_a_trial_is_html(
    client: TestClient, database: WatchDatabase, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    found = [Evidence(20, HOSTILE, HOSTILE, 1.0, HOSTILE, HOSTILE)]
    reports.save(output, reports.result(HOSTILE, "IssuesFound", evidence=found, notes=[HOSTILE]))
    trial = served.add(
        database,
        f"/runs/{HOSTILE}",
        [served.rule(HOSTILE, "IssuesFound")],
        output=str(output),
        problem=HOSTILE,
    )
    addresses = ["/trials", f"/trials?text={HOSTILE}", f"/trials/{trial.id}", "/rules"]
    for address in addresses:
        page = text_of(client, address)
        assert "<img" not in page, address
    assert "<img" not in text_of(client, f"/rules/{HOSTILE}".replace("<", "%3C"))


def test_a_trials_page_has_its_verdicts_and_findings(
    client: TestClient, database: WatchDatabase, tmp_path: Path
) -> None:
    fired = reports.fired(status_details=None)
    silent = reports.result("AllZero", "NotEvaluated", status_details="It looked for activations.")
    for result in (fired, silent):
        reports.save(tmp_path / "out" / result.configuration_name, result)
    rules = [served.rule("AllZero", "NotEvaluated"), served.rule(outcome="IssuesFound")]
    trial = served.add(database, "/runs/mine", rules, output=str(tmp_path / "out"))
    page = text_of(client, f"/trials/{trial.id}")
    assert page.index('id="VanishingGradient"') < page.index('id="AllZero"')
    assert "What to do" in page
    assert "It looked for activations." in page
    assert "gradient/fc of worker_0: measured 1e-8, limit 1e-7" in page
    assert 'data-step="20"' in page
    assert "<dt>rule-runner</dt><dd>0.1.0</dd>" in page


@pytest.mark.parametrize("kind", [AcknowledgementKind.ACKNOWLEDGED, AcknowledgementKind.MUTED])
def test_what_people_said_is_on_the_page(
    client: TestClient, database: WatchDatabase, tmp_path: Path, kind: AcknowledgementKind
) -> None:
    fired = reports.fired()
    reports.save(tmp_path / "out", fired)
    trial = served.add(
        database, "/runs/mine", [served.rule(outcome="IssuesFound")], output=str(tmp_path / "out")
    )
    (number,) = finding_ids(fired)
    said: dict[str, Any] = {"who": "ann", "reason": "known", "at": datetime.now(UTC), "kind": kind}
    append_acknowledgement(str(tmp_path / "out"), Acknowledgement(finding=number, **said))
    page = text_of(client, f"/trials/{trial.id}")
    assert f"{kind} by ann (known)" in page
    entry = page.partition('id="findings"')[2].partition("</ul>")[0]
    assert f'data-finding="{number}"' in entry
    assert "data-marked" in entry
    assert "data-fixed" not in entry


def test_only_what_was_said_can_be_withdrawn(database: WatchDatabase, tmp_path: Path) -> None:
    reports.save(tmp_path / "out", reports.fired())
    rules = [served.rule(outcome="IssuesFound")]
    trial = served.add(database, "/runs/mine", rules, output=str(tmp_path / "out"))
    acting, reading = (
        TestClient(served.Served(tmp_path / "index.sqlite", role).application, "http://127.0.0.1")
        for role in ("act", "read")
    )
    address, button = f"/trials/{trial.id}", 'data-withdraw="rule"'
    assert button not in text_of(acting, address)
    said: dict[str, Any] = {"who": "ann", "reason": "known", "at": datetime.now(UTC)}
    said |= {"kind": AcknowledgementKind.MUTED, "rule": "VanishingGradient"}
    append_acknowledgement(str(tmp_path / "out"), Acknowledgement(**said))
    page = text_of(acting, address)
    assert button in page
    assert "data-marked" not in page  # the finding has no word of its own
    assert "data-withdraw" not in text_of(reading, address)


def test_files_and_configuration_are_on_the_page(
    client: TestClient, database: WatchDatabase, tmp_path: Path
) -> None:
    source = RuleSource(location=f"/rules/{HOSTILE}.py", sha256="0123456789abcdef" * 4)
    reports.save(tmp_path / "out", reports.result("A", source=source, mode="observe"))
    (tmp_path / "out" / "<img src=x>&?#.png").write_bytes(bytes(2000))
    rules = [served.rule("A", mode="observe")]
    trial = served.add(database, "/runs/mine", rules, output=str(tmp_path / "out"))
    page = text_of(client, f"/trials/{trial.id}")
    assert f"/api/v1/trials/{trial.id}/files/results.json" in page
    assert f"/files/{quote('<img src=x>&?#.png')}" in page
    assert "2.0 kB" in page
    assert "<img" not in page
    assert "<dt>threshold</dt><dd>1e-7</dd>" in page
    assert "Mode observe:" in page
    assert "(SHA-256 0123456789ab)" in page


def test_results_in_s3_are_not_files(
    client: TestClient, database: WatchDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views, "saved_results", lambda _: ([], ""))
    trial = served.add(database, "/runs/far", output="s3://bucket/far")
    assert "The results are in S3" in text_of(client, f"/trials/{trial.id}")


@pytest.mark.parametrize(("role", "count"), [("read", 0), ("act", 4)])
def test_only_who_may_act_sees_actions(
    database: WatchDatabase, tmp_path: Path, role: str, count: int
) -> None:
    reports.save(tmp_path / "out", reports.fired())
    rules = [served.rule(outcome="IssuesFound")]
    fields = {"output": str(tmp_path / "out"), "state": "judged"}
    trial = served.add(database, "/runs/mine", rules, **fields)
    application = served.Served(tmp_path / "index.sqlite", role).application
    page = text_of(TestClient(application, base_url="http://127.0.0.1"), f"/trials/{trial.id}")
    assert page.count("data-action=") + page.count("data-acknowledge=") == count
    assert ("(read only)" in page) == (role == "read")


def test_a_mute_of_the_job_file_is_read_only(
    client: TestClient, database: WatchDatabase, tmp_path: Path
) -> None:
    muted = Evidence(20, "gradient/fc", None, 1e-8, 1e-7, None, muted="frozen on purpose")
    reports.save(tmp_path / "out", reports.result(evidence=[muted]))
    trial = served.add(database, "/runs/mine", [served.rule()], output=str(tmp_path / "out"))
    page = text_of(client, f"/trials/{trial.id}")
    assert "muted by the job file (frozen on purpose)" in page
    assert "data-fixed>" in page


def test_results_that_cannot_be_read_are_named(
    client: TestClient, database: WatchDatabase, tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "results.json").write_text('{"schema')
    trial = served.add(
        database, "/runs/mine", [served.rule("A", "IssuesFound")], output=str(tmp_path / "out")
    )
    page = text_of(client, f"/trials/{trial.id}")
    assert "cannot be read" in page
    assert 'id="A"' in page


def test_other_runs_are_laid_over(client: TestClient, database: WatchDatabase) -> None:
    ids = [served.add(database, f"/runs/{name}", [served.rule("A")]).id for name in "abc"]
    page = text_of(client, f"/trials/{ids[0]}?with={ids[2]},x,{ids[1]},{ids[2]},{ids[0]}")
    assert re.findall('data-run="([0-9]+)"', page) == [str(ids[0]), str(ids[2]), str(ids[1])]
    assert f'href="/trials/{ids[0]}?with={ids[1]}" aria-label="Remove c"' in page
    assert "data-run" in text_of(client, f"/trials/{ids[0]}?with={'9' * 5000},²,-1,1.5")
    assert "There is no trial 99" in text_of(client, f"/trials/{ids[0]}?with=99", 404)


def test_unknown_trials_and_rules(client: TestClient) -> None:
    assert "There is no trial 7" in text_of(client, "/trials/7", 404)
    assert "There is no trial" in text_of(client, f"/trials/{'9' * 5000}", 404)
    text_of(client, "/trials/-1", 404)
    text_of(client, "/trials/x", 404)
    assert "There is no rule" in text_of(client, "/rules/Nothing", 404)


def test_rules_have_their_counts(client: TestClient, database: WatchDatabase) -> None:
    served.add(database, "/runs/a", [served.rule("AllZero", "IssuesFound"), served.rule("Own")])
    page = text_of(client, "/rules")
    assert "/trials?rule=AllZero&amp;rule_outcome=IssuesFound" in page
    assert "Not a built-in rule." in page


def test_a_rules_page_tells_where_it_fires(client: TestClient, database: WatchDatabase) -> None:
    loss = served.rule("loss", "IssuesFound", rule="LossNotDecreasing")
    trial = served.add(database, "/runs/a", [loss, served.rule("Own")])
    page = text_of(client, "/rules/loss")
    assert "Why it matters" in page
    assert f'href="/trials/{trial.id}#loss"' in page
    own = text_of(client, "/rules/Own")
    assert "It has fired on no trial." in own
    assert "does not run in this service" in own


def test_a_training_and_its_profile_link_to_each_other(
    client: TestClient, database: WatchDatabase
) -> None:
    for training, path in (
        ("/runs/a", "/runs/a/profile"),
        ("/runs/job/debug-output", "/runs/job/profiler-output"),
        ("/runs/b", "/runs/b-profile"),
    ):
        own = served.add(database, training)
        rules = [served.rule(outcome="IssuesFound", findings=2)]
        profile = served.add(database, path, rules, tensors=False, profiler=True)
        page = text_of(client, f"/trials/{own.id}")
        assert f'data-profile="{profile.id}"' in page
        assert f'<a href="/trials/{profile.id}">{path}</a> has 2 findings' in page
        page = text_of(client, f"/trials/{profile.id}")
        assert f'data-profile="{profile.id}"' in page
        assert f'Of the training in <a href="/trials/{own.id}">{training}</a>' in page
    assert "data-profile" not in text_of(client, f"/trials/{served.add(database, '/runs/c').id}")
    assert ">a profile</a>" in text_of(client, "/trials")


def test_findings_of_windows_have_times(
    tmp_path: Path, client: TestClient, database: WatchDatabase
) -> None:
    found = [Evidence(step, "gpu0", "algo-1", 9.0, 5.0, None) for step in (3, 1)]
    more = {"unit": "window", "windows": WindowTimes(1_600_000_020_000_000, 60_000_000)}
    result = reports.result("BatchSize", "IssuesFound", step=1, evidence=found, **more)
    reports.save(tmp_path / "out" / "BatchSize", result)
    rules = [served.rule("BatchSize", "IssuesFound", step=1)]
    kinds = {"tensors": False, "profiler": True, "output": str(tmp_path / "out")}
    page = text_of(client, f"/trials/{served.add(database, '/runs/x y', rules, **kinds).id}")
    assert re.findall(r'<span class="step">(.*?)</span>', page) == ["12:28:00", "12:30:00"]
    assert 'data-start="1600000080000" data-end="1600000140000"' in page
    assert "profile timeline &#39;/runs/x y&#39; -o trace.json --start 2020-09-13T12:28:00Z" in page
    assert '<span class="at">12:28:00 UTC' in page
