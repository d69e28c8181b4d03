"""Acknowledgements: written once, read back, and which of them hold."""

import fcntl
import json
import multiprocessing
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import s3_objects
from structlog.testing import capture_logs

from rule_runner.errors import OutputError
from rule_runner.results.acknowledgements import (
    ACKNOWLEDGEMENTS,
    MOST_BYTES,
    Acknowledgement,
    AcknowledgementKind,
    active,
    append_acknowledgement,
    mark_of,
    read_acknowledgements,
)

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)


def entry(kind: str = "acknowledged", **fields: Any) -> Acknowledgement:
    scope = {} if "finding" in fields else {"rule": "Loss"}
    defaults: dict[str, Any] = {"who": "ann", "reason": "known", "at": NOW} | scope
    return Acknowledgement(kind=AcknowledgementKind(kind), **(defaults | fields))


@pytest.fixture(params=["local", "s3"])
def output(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "local":
        return str(tmp_path)
    s3_objects.make_bucket(request.getfixturevalue("aws_endpoint"))
    return "s3://bucket/out/a"


def test_what_was_appended_is_read(output: str) -> None:
    entries = [entry(), entry("muted", finding="f1", until=date(2026, 12, 1), reason="é\n\x1b[31m")]
    for each in entries:
        append_acknowledgement(output, each)
    assert read_acknowledgements(output) == entries


def test_without_a_file_there_are_none(output: str) -> None:
    assert read_acknowledgements(output) == []


def test_a_folder_that_does_not_exist_has_none(tmp_path: Path) -> None:
    assert read_acknowledgements(tmp_path / "absent") == []


def test_a_line_that_was_cut_off_is_skipped_and_logged_until_the_next_is_appended(
    tmp_path: Path,
) -> None:
    append_acknowledgement(tmp_path, entry())
    path = tmp_path / ACKNOWLEDGEMENTS
    line = path.read_bytes()
    path.write_bytes(line + line[:40])
    with capture_logs() as logs:
        for _ in range(2):
            assert read_acknowledgements(tmp_path) == [entry()]
    assert [(log["event"], log["line"]) for log in logs] == [("acknowledgement_skipped", 2)]
    append_acknowledgement(tmp_path, entry("withdrawn"))
    with capture_logs() as logs:
        assert read_acknowledgements(tmp_path) == [entry(), entry("withdrawn")]
    assert logs == []


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "seen"},
        {"rule": None},
        {"finding": "f"},
        {"at": "2026-11-24T12:00:00"},
        {"until": "soon"},
        {"reason": ""},
        {"who": "x" * 1001},
        {"reason": 1},
    ],
)
def test_a_line_that_is_no_acknowledgement_is_skipped(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    append_acknowledgement(tmp_path, entry())
    path = tmp_path / ACKNOWLEDGEMENTS
    wrong = json.dumps(json.loads(path.read_text()) | changes)
    path.write_text(f"{wrong}\n{path.read_text()}")
    assert read_acknowledgements(tmp_path) == [entry()]


@pytest.mark.parametrize(
    "line", [b"[" * 100_000, b'{"x":' + b"[" * 100_000, b"\xff\xfe", b"\0" * 3_000_000, b"[]", b"7"]
)
def test_bytes_that_are_no_json_are_skipped(tmp_path: Path, line: bytes) -> None:
    append_acknowledgement(tmp_path, entry())
    path = tmp_path / ACKNOWLEDGEMENTS
    path.write_bytes(path.read_bytes() + line + b"\n")
    assert read_acknowledgements(tmp_path) == [entry()]


@pytest.mark.parametrize("fields", [{"reason": ""}, {"who": "x" * 1001}])
def test_texts_that_nobody_could_read_back_are_refused(
    tmp_path: Path, fields: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match="length"):
        append_acknowledgement(tmp_path, entry(**fields))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("fields", [{"rule": None}, {"finding": "f", "rule": "Loss"}])
def test_an_acknowledgement_has_one_subject(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="a finding, a rule or an incident"):
        entry(**fields)


def append_many(folder: Path, who: str) -> None:
    for _ in range(20):
        append_acknowledgement(folder, entry(who=who))


def test_processes_append_at_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=append_many, args=(tmp_path, who)) for who in "abc"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert sorted(each.who for each in read_acknowledgements(tmp_path)) == sorted("abc" * 20)


def test_threads_append_at_once(output: str) -> None:
    with ThreadPoolExecutor(4) as threads:
        names = [f"person {number}" for number in range(8)]
        [*threads.map(lambda who: append_acknowledgement(output, entry(who=who)), names)]
    assert sorted(each.who for each in read_acknowledgements(output)) == names


def test_who_appends_waits_for_others(tmp_path: Path) -> None:
    append_acknowledgement(tmp_path, entry())
    with (tmp_path / ACKNOWLEDGEMENTS).open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        waiting = threading.Thread(target=append_acknowledgement, args=(tmp_path, entry("muted")))
        waiting.start()
        waiting.join(0.2)
        assert waiting.is_alive()
        other.write(b'{"half')
    waiting.join(10)
    assert read_acknowledgements(tmp_path) == [entry(), entry("muted")]


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("precious")
    (tmp_path / ACKNOWLEDGEMENTS).symlink_to(target)
    with pytest.raises(OutputError, match="Symbolic links are not followed"):
        append_acknowledgement(tmp_path, entry())
    with pytest.raises(OutputError, match="cannot be read"):
        read_acknowledgements(tmp_path)
    assert target.read_text() == "precious"


def test_a_full_file_is_not_appended_to(output: str) -> None:
    line = json.dumps({"note": "x" * (MOST_BYTES - 20)}) + "\n"
    if output.startswith("s3:"):
        s3_objects.put(os.environ["AWS_ENDPOINT_URL"], "out/a/", {ACKNOWLEDGEMENTS: line.encode()})
    else:
        (Path(output) / ACKNOWLEDGEMENTS).write_text(line)
    with pytest.raises(OutputError, match=r"is full.*Remove the lines"):
        append_acknowledgement(output, entry())


def test_a_folder_that_does_not_exist_cannot_be_appended_to(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="No such file or directory"):
        append_acknowledgement(tmp_path / "absent", entry())


def test_the_last_word_on_a_subject_holds() -> None:
    other = entry(finding="f1")
    assert active([entry(), other, entry("muted")], NOW) == [entry("muted"), other]
    assert active([entry(), entry("withdrawn")], NOW) == []
    assert active([entry(), entry("withdrawn"), entry("muted")], NOW) == [entry("muted")]


def test_an_acknowledgement_holds_to_the_end_of_its_last_day() -> None:
    limited = entry(until=NOW.date())
    assert active([limited], NOW.replace(hour=23, minute=59)) == [limited]
    assert active([limited], NOW + timedelta(days=1)) == []
    assert active([entry(), limited], NOW + timedelta(days=1)) == []
    elsewhere = NOW.astimezone(timezone(timedelta(hours=14)))
    assert elsewhere.date() > NOW.date()
    assert active([limited], elsewhere) == [limited]


def test_a_mute_goes_before_an_acknowledgement_and_a_finding_before_its_rule() -> None:
    own, muted = entry(finding="f1"), entry("muted")
    assert mark_of([entry(), own], "Loss", "f1") is own
    assert mark_of([own, muted], "Loss", "f1") is muted
    assert mark_of([own, muted], "Loss", "f2") is muted
    assert mark_of([own, muted], "Other", "f1") is own
    assert mark_of([own, muted], "Other", "f2") is None
    assert mark_of([own], "Loss", "") is None
