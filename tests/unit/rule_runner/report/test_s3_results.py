"""The command `report` on results in S3, and pages that are written there."""

import logging
from pathlib import Path

import pytest
import reports
import s3_objects
from click.testing import CliRunner, Result

from rule_runner.cli import main

OUT = "s3://bucket/runs/out"


@pytest.fixture
def s3(aws_endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return an S3 with an evaluation of two rules, in an empty working directory."""
    monkeypatch.setattr(logging.getLogger("werkzeug"), "disabled", True)
    s3_objects.make_bucket(aws_endpoint)
    for name in ("one", "two"):
        save(aws_endpoint, f"runs/out/{name}/", tmp_path / "saved" / name, name)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return aws_endpoint


def save(s3: str, prefix: str, scratch: Path, name: str) -> None:
    folder = reports.save(scratch, reports.result(name, trial="s3://bucket/runs/mnist"))
    files = {one.name: one.read_bytes() for one in folder.iterdir() if one.is_file()}
    s3_objects.put(s3, prefix, files | {"notes.txt": b"not ours"})


def call(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["report", *map(str, arguments)])


def test_a_page_on_results_in_s3_lies_here(s3: str) -> None:
    before = s3_objects.content(s3)
    done = call(OUT)
    assert (done.exit_code, done.stdout, done.stderr) == (0, "Report: report.html\n", "")
    page = Path("report.html").read_text("utf-8")
    assert "<title>mnist</title>" in page
    assert "rule-runner-" not in page
    assert s3_objects.content(s3) == before


@pytest.mark.parametrize(
    ("output", "key"),
    [
        ("s3://bucket/pages/x.html", "pages/x.html"),
        ("s3://bucket/pages/", "pages/report.html"),
        ("s3://bucket/pages", "pages/report.html"),
    ],
)
def test_a_page_is_written_to_s3(s3: str, output: str, key: str) -> None:
    done = call(OUT, "--output", output, "--title", "Week 3")
    assert (done.exit_code, done.stdout) == (0, f"Report: s3://bucket/{key}\n")
    assert b"<title>Week 3</title>" in s3_objects.content(s3)[key]
    assert list(Path().iterdir()) == []


def test_folders_and_addresses_go_on_one_page(s3: str, tmp_path: Path) -> None:
    del s3
    folder = reports.save(tmp_path / "local", reports.result("mine", trial="/runs/other"))
    done = call(folder, f"{OUT}/one", "--output", tmp_path / "x.html")
    assert (done.exit_code, done.stdout) == (0, f"Report: {tmp_path}/x.html\n")
    page = (tmp_path / "x.html").read_text("utf-8")
    assert "<title>other, mnist</title>" in page
    assert f'<span class="note">{folder}</span>' in page
    assert f'<span class="note">{OUT}</span>' in page


def test_a_damaged_result_is_named_by_its_address(s3: str) -> None:
    s3_objects.put(s3, "runs/out/two/", {"rule_result.json": b"{"})
    assert call(OUT).exit_code == 0
    page = Path("report.html").read_text("utf-8")
    assert f"Result &#39;{OUT}/two/rule_result.json&#39; cannot be read" in page


def test_keys_do_not_lead_out_of_the_folder(s3: str) -> None:
    odd = {".hidden/rule_result.json": b"{", "a//rule_result.json": b"{", "/rule_result.json": b"{"}
    s3_objects.put(s3, "runs/out/", odd)
    assert call(OUT).exit_code == 0
    assert "Not in this report." not in Path("report.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (
            ["s3://bucket/none"],
            1,
            (
                "Error: Address 's3://bucket/none' holds no rule_result.json, nor do the "
                "folders in it. Give the output folder of an evaluation.\n"
            ),
        ),
        (
            ["s3://nowhere/x"],
            1,
            (
                "Error: Results at 's3://nowhere/x' cannot be read: bucket 'nowhere' "
                "does not exist. Check the address, and AWS_ENDPOINT_URL.\n"
            ),
        ),
        (
            ["s3://x/y"],
            1,
            (
                "Error: Results at 's3://x/y' cannot be read: A bucket's name must be 3 to "
                "255 letters, digits, dots, hyphens and underscores, got 'x' in 's3://x/y'.\n"
            ),
        ),
        (
            [OUT, "--output", "s3://nowhere/x"],
            73,
            (
                "Cannot write 's3://nowhere/x/report.html': bucket 'nowhere' does not exist. Check "
                "the address, and AWS_ENDPOINT_URL.\n"
            ),
        ),
        (
            [OUT, "--output", "s3://x/y"],
            2,
            (
                "Error: A bucket's name must be 3 to 255 letters, digits, dots, hyphens and "
                "underscores, got 'x' in 's3://x/y'.\n"
            ),
        ),
    ],
)
def test_what_cannot_be_read_or_written(
    s3: str, arguments: list[str], code: int, sentence: str
) -> None:
    del s3
    done = call(*arguments)
    assert (done.exit_code, done.stdout, done.stderr) == (code, "", sentence)
