"""Files: which of an output folder people may see, and how they are sent."""

import os
from pathlib import Path
from urllib.parse import quote

import pytest
import served
from starlette.testclient import TestClient

from rule_runner.index.database import WatchDatabase
from rule_runner.service.api import files
from rule_runner.service.api.files import OutputFile, output_files
from rule_runner.service.application import build_application

HOSTILE = "<img src=x onerror=alert(1)>&\"';?#.html"
SHOWN = (
    "results.json",
    "rule_result.json",
    "findings.jsonl",
    "report.html",
    "plot.png",
    "LossSpike/plots/a.svg",
)
HIDDEN = (
    *("secret.txt", "request.json", "job.yaml", "rule.py", ".sagemaker-ignore/report.html"),
    *("a/b/c/d/deep.png", "new\nline.html", "\u202elmth.html"),
)


def write(path: Path, text: str = "content") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "output"


@pytest.fixture
def client(tmp_path: Path, output: Path) -> TestClient:
    with WatchDatabase.empty(tmp_path / "index.sqlite") as database:
        served.add(database, "/runs/a", output=str(output))
    service = served.service(tmp_path / "index.sqlite")
    return TestClient(build_application(service), "http://127.0.0.1")


def test_results_reports_and_plots_are_shown_and_nothing_else(output: Path) -> None:
    for name in (*SHOWN, *HIDDEN):
        write(output / name)
    write(Path(os.fsdecode(os.fsencode(output) + b"/\xff.html")))
    shown = output_files(str(output))
    assert {file.name for file in shown} == {*SHOWN}
    assert shown[0] == OutputFile("report.html", len("content"))


def test_what_is_no_regular_file_is_not_shown(tmp_path: Path, output: Path) -> None:
    write(tmp_path / "elsewhere" / "report.html", "not of the trial")
    output.mkdir()
    (output / "report.html").symlink_to(tmp_path / "elsewhere" / "report.html")
    (output / "linked").symlink_to(tmp_path / "elsewhere")
    (output / "folder.png").mkdir()
    os.mkfifo(output / "pipe.png")
    assert output_files(str(output)) == []
    assert output_files(str(tmp_path / "gone")) == []
    assert output_files("s3://bucket/far") == []


def test_there_is_a_limit(output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_MOST_FILES", 3)
    for number in range(5):
        write(output / f"{number}.png")
    assert len(output_files(str(output))) == 3


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("results.json", "application/json"),
        ("LossSpike/findings.jsonl", "text/plain; charset=utf-8"),
        ("plot.png", "image/png"),
        ("ä b.svg", "image/svg+xml"),
        (HOSTILE, "text/html; charset=utf-8"),
    ],
)
def test_a_file_can_do_nothing_in_a_browser(
    client: TestClient, output: Path, name: str, kind: str
) -> None:
    write(output / name, "<script>alert(1)</script>")
    answer = client.get(f"/api/v1/trials/1/files/{quote(name)}")
    assert (answer.status_code, answer.text) == (200, "<script>alert(1)</script>")
    assert answer.headers["content-type"] == kind
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("sandbox; default-src 'none';")
    assert "script" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    saved = f"inline; filename*=UTF-8''{quote(Path(name).name, safe='')}"
    assert answer.headers["content-disposition"] == saved


@pytest.mark.parametrize(
    "name",
    [
        *("secret.txt", "../index.sqlite", "%2e%2e/index.sqlite", "/etc/passwd", "pipe.png"),
        *("..%2findex.sqlite", "report.html%00", "linked/report.html", "", ".", "%ff.html"),
    ],
)
def test_other_files_are_not_sent(
    client: TestClient, tmp_path: Path, output: Path, name: str
) -> None:
    write(output / "secret.txt")
    write(output / "report.html")
    os.mkfifo(output / "pipe.png")
    write(tmp_path / "elsewhere" / "report.html")
    (output / "linked").symlink_to(tmp_path / "elsewhere")
    assert client.get(f"/api/v1/trials/1/files/{name}").status_code == 404


@pytest.mark.parametrize("part", ["a", "a/b.png"])
def test_a_link_that_replaces_a_listed_file_is_not_followed(
    client: TestClient,
    tmp_path: Path,
    output: Path,
    part: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write(tmp_path / "elsewhere" / "b.png", "not of the trial")
    target = tmp_path / "elsewhere" / "b.png" if part.endswith("png") else tmp_path / "elsewhere"
    (output / part).parent.mkdir(parents=True)
    (output / part).symlink_to(target)
    monkeypatch.setattr(files, "output_files", lambda _: [OutputFile("a/b.png", 1)])
    answer = client.get("/api/v1/trials/1/files/a/b.png")
    assert answer.status_code == 404
    assert "cannot be read" in answer.json()["error"]


def test_a_file_that_grows_is_sent_up_to_its_length(client: TestClient, output: Path) -> None:
    write(output / "events.jsonl", "{}\n" * 200_000)
    answer = client.get("/api/v1/trials/1/files/events.jsonl")
    assert int(answer.headers["content-length"]) == len(answer.content) == 600_000
