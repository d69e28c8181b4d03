"""Outputs in S3: worked on here, uploaded meanwhile, fetched again, never lost without a word."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import evaluating
import faulty_s3
import pytest
import s3_objects
import structlog

from rule_runner.errors import OutputError, UsageError
from rule_runner.results import s3_output as module
from rule_runner.results.s3_output import S3OutputSync

URI = "s3://bucket/out"
OLD = Path(__file__).parents[3] / "data" / "outputs-0.1.0"
OURS = ("findings.jsonl", "measurements.json", "events.jsonl", "results.json")


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluating.log_nothing()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def s3(aws_endpoint: str) -> str:
    s3_objects.make_bucket(aws_endpoint)
    return aws_endpoint


@pytest.fixture
def faulty(s3: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[faulty_s3.FaultyS3]:
    with faulty_s3.serving(s3) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
        yield server


def synced(uri: str = URI, *, overwrite: bool = False) -> S3OutputSync:
    return S3OutputSync(uri, overwrite=overwrite)


def write(sync: S3OutputSync, **texts: str) -> None:
    """Write files; two underscores stand for a slash, one for a dot."""
    for name, text in texts.items():
        path = sync.folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def here(sync: S3OutputSync) -> dict[str, str]:
    found = sorted(one for one in sync.folder.rglob("*") if one.is_file())
    return {one.relative_to(sync.folder).as_posix(): one.read_text() for one in found}


def puts(server: faulty_s3.FaultyS3) -> list[str]:
    paths = [path.partition("?")[0] for verb, path, _ in server.asked if verb == "PUT"]
    return [path.removeprefix("/bucket/out/") for path in paths]


def test_what_is_written_is_uploaded_and_then_removed_here(s3: str) -> None:
    with synced(f"{URI}/") as sync:
        write(sync, report_html="<p>", Quiet__findings_jsonl="{}\n", deep__er__file_bin="x" * 99)
    assert s3_objects.content(s3, "out/") == {
        "Quiet/findings.jsonl": b"{}\n",
        "deep/er/file.bin": b"x" * 99,
        "report.html": b"<p>",
    }
    assert (sync.problem, sync.folder.exists()) == ("", False)


def test_scratch_files_and_links_stay_here(s3: str, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    with synced() as sync:
        write(sync, a="a")
        for folder in (sync.folder, sync.folder / "Quiet"):
            (folder / ".sagemaker-ignore").mkdir(parents=True)
            (folder / ".sagemaker-ignore" / "lock").touch()
        (sync.folder / "link").symlink_to(tmp_path / "secret")
        (sync.folder / "folder").symlink_to(tmp_path)
    assert (sync.problem, s3_objects.content(s3)) == ("", {"out/a": b"a"})


def test_it_is_uploaded_meanwhile_by_a_thread_of_its_own(
    s3: str, faulty: faulty_s3.FaultyS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PAUSE_S", 0.01)
    came = [threading.Event(), threading.Event()]

    def passes(at: int) -> faulty_s3.Fault:
        def fault(handler: faulty_s3.Handler) -> None:
            faulty_s3.passes(handler)
            came[at].set()

        return fault

    with synced() as sync:
        faulty.due = [passes(0)]
        write(sync, a="a")
        assert came[0].wait(30)
        assert s3_objects.content(s3) == {"out/a": b"a"}
        faulty.due = [passes(1)]
        write(sync, a="aa")
        assert came[1].wait(30)
        assert s3_objects.content(s3) == {"out/a": b"aa"}
        sent = len(puts(faulty))
    assert len(puts(faulty)) == sent == 2


def test_a_first_result_goes_first_and_a_later_one_last(faulty: faulty_s3.FaultyS3) -> None:
    with synced() as sync:
        (sync.folder).mkdir()
        for name in ("a", "results.json", "z"):
            (sync.folder / name).write_text("1")
        sync._upload()
        for name in ("a", "results.json", "z"):
            (sync.folder / name).write_text("22")
    assert puts(faulty) == ["results.json", "a", "z", "a", "z", "results.json"]


def test_an_evaluation_at_the_address_is_fetched(s3: str) -> None:
    foreign = {"other.txt": b"mine", "b/deep/results.json": b"{}", "c/results.json": b"{}"}
    s3_objects.put(s3, "out/", dict.fromkeys(OURS, b"{}") | foreign)
    with synced() as sync:
        assert here(sync) == dict.fromkeys(sorted(OURS), "{}")
    assert set(foreign) <= set(s3_objects.content(s3, "out/"))


@pytest.mark.parametrize("layout", ["single", "several"])
def test_results_of_version_0_1_0_are_refused_or_overwritten(s3: str, layout: str) -> None:
    old = {
        path.relative_to(OLD / layout).as_posix(): path.read_bytes()
        for path in (OLD / layout).rglob("*")
        if path.is_file()
    }
    s3_objects.put(s3, "out/", old | {"other.txt": b"mine"})
    sentence = r"^Output folder 's3://bucket/out' holds results of version 0\.1\.0"
    with pytest.raises(OutputError, match=sentence), synced():
        pass
    assert s3_objects.content(s3, "out/") == old | {"other.txt": b"mine"}
    with synced(overwrite=True) as sync:
        write(sync, results_json="{}")
    assert s3_objects.content(s3, "out/") == {"other.txt": b"mine", "results.json": b"{}"}


def test_ended_results_go_when_all_other_files_have_gone(s3: str) -> None:
    ended = '{"run_id": "a", "ended_at": "2026-01-01T00:00:00.000Z"}'
    with synced() as sync:
        write(sync, results_json=ended, a="a")
        sync.record()
        assert s3_objects.content(s3, "out/") == {"a": b"a"}
    assert s3_objects.content(s3, "out/")["results.json"] == ended.encode()


@pytest.mark.parametrize("overwrite", [False, True])
def test_acknowledgements_are_fetched_and_left_to_others(s3: str, overwrite: bool) -> None:
    s3_objects.put(s3, "out/", {"acknowledgements.jsonl": b"{}\n"})
    sync = synced()
    sync._overwrite = overwrite
    with sync:
        assert here(sync) == {"acknowledgements.jsonl": "{}\n"}
        s3_objects.put(s3, "out/", {"acknowledgements.jsonl": b"{}\n{}\n"})
        write(sync, report_html="<p>")
    assert s3_objects.content(s3, "out/") == {
        "acknowledgements.jsonl": b"{}\n{}\n",
        "report.html": b"<p>",
    }


def test_without_a_result_nothing_else_is_asked_for(faulty: faulty_s3.FaultyS3) -> None:
    with synced():
        assert [path.partition("?")[0] for _, path, _ in faulty.asked] == [
            "/bucket/out/results.json",
            "/bucket",
            "/bucket/out/acknowledgements.jsonl",
        ]


def test_what_was_fetched_is_not_uploaded_again(s3: str, faulty: faulty_s3.FaultyS3) -> None:
    s3_objects.put(s3, "out/", {"results.json": b"{}", "events.jsonl": b""})
    with synced() as sync:
        assert here(sync) == {"events.jsonl": "", "results.json": "{}"}
        (sync.folder / "results.json").write_text("{} ")
    assert puts(faulty) == ["results.json"]


def test_what_is_overwritten_is_not_fetched_and_leaves_nothing_stale(s3: str) -> None:
    old = dict.fromkeys(OURS, b"old") | {"other.txt": b"mine"}
    s3_objects.put(s3, "out/", old)
    with synced(overwrite=True) as sync:
        assert here(sync) == {}
        sync.folder.mkdir()
        (sync.folder / "results.json").write_text("new")
    assert s3_objects.content(s3, "out/") == {"other.txt": b"mine", "results.json": b"new"}


def test_an_evaluation_that_did_not_begin_overwrites_nothing(s3: str) -> None:
    s3_objects.put(s3, "out/", dict.fromkeys(OURS, b"old"))
    with synced(overwrite=True):
        pass
    assert s3_objects.content(s3, "out/") == dict.fromkeys(OURS, b"old")


def denied(server: faulty_s3.FaultyS3) -> S3OutputSync:
    """Return an output whose one file S3 did not take."""
    with synced() as sync:
        write(sync, a="a", b="b")
        server.due = [faulty_s3.says(403, "AccessDenied")]
    return sync


def test_what_cannot_be_uploaded_lies_here_until_it_can_be(
    s3: str, faulty: faulty_s3.FaultyS3
) -> None:
    sync = denied(faulty)
    assert sync.problem == (
        "Cannot write 's3://bucket/out/a': AccessDenied. The role needs s3:PutObject on "
        f"bucket/out/*. The results are in '{sync.folder}': start the same command again to have "
        "them uploaded."
    )
    assert (here(sync), s3_objects.content(s3)) == ({"a": "a", "b": "b"}, {})
    with synced() as again:
        assert here(again) == {"a": "a", "b": "b"}
    assert s3_objects.content(s3, "out/") == {"a": b"a", "b": b"b"}
    assert (again.problem, again.folder.exists()) == ("", False)


def test_a_crash_goes_on_from_what_lies_here(s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    s3_objects.put(s3, "out/", {"results.json": b"older"})
    sync = synced()
    with monkeypatch.context() as patch:
        patch.setattr(module.shutil, "rmtree", lambda *_, **__: None)
        with sync:
            pass
    (sync.folder / "results.json").write_text("newer")
    with synced() as again:
        assert here(again) == {"results.json": "newer"}
    assert s3_objects.content(s3) == {"out/results.json": b"newer"}


def test_what_was_uploaded_and_kept_gives_way_to_what_is_at_the_address(s3: str) -> None:
    with synced() as sync:
        sync.folder.mkdir()
        (sync.folder / "results.json").write_text("old")
        sync.keep = True
    assert here(sync) == {"results.json": "old"}
    s3_objects.put(s3, "out/", {"results.json": b"by another machine"})
    with synced() as again:
        assert here(again) == {"results.json": "by another machine"}
    assert s3_objects.content(s3) == {"out/results.json": b"by another machine"}


def test_a_record_of_uploads_that_is_none_costs_an_upload_only(
    s3: str, faulty: faulty_s3.FaultyS3
) -> None:
    sync = denied(faulty)
    (sync.folder.parent / "uploaded.json").write_text("[]")
    with synced():
        pass
    assert s3_objects.content(s3, "out/") == {"a": b"a", "b": b"b"}


def test_throttling_passes(s3: str, faulty: faulty_s3.FaultyS3) -> None:
    with synced() as sync:
        write(sync, a="a")
        faulty.due = [faulty_s3.SLOW_DOWN, faulty_s3.resets]
    assert (sync.problem, s3_objects.content(s3)) == ("", {"out/a": b"a"})


def test_a_thread_that_cannot_upload_is_reported_and_goes_on(
    s3: str, faulty: faulty_s3.FaultyS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PAUSE_S", 0.01)
    warned = threading.Event()
    monkeypatch.setattr(module._log, "warning", lambda *_, **__: warned.set(), raising=False)
    with synced() as sync:
        faulty.due = [faulty_s3.says(403, "AccessDenied")]
        write(sync, a="a")
        assert warned.wait(30)
    assert (sync.problem, s3_objects.content(s3)) == ("", {"out/a": b"a"})


def test_one_process_at_a_time_works_for_an_address(s3: str) -> None:
    del s3
    sentence = r"^Output folder 's3://bucket/out' is in use by process [0-9]+\. "
    with synced(), pytest.raises(OutputError, match=sentence), synced(f"{URI}/"):
        pass
    with synced(), synced("s3://bucket/out2"):
        pass


def fail(sync: S3OutputSync, sentence: str) -> None:
    """Write a file, and find that no more can be written."""
    write(sync, a="a")
    raise OutputError(sentence)


def test_what_is_reported_of_the_folder_names_the_address(faulty: faulty_s3.FaultyS3) -> None:
    sync = synced()
    sentence = r"^Output folder 's3://bucket/out/a' holds another evaluation\.$"
    msg = f"Output folder '{sync.folder}/a' holds another evaluation."
    with pytest.raises(OutputError, match=sentence), sync:
        raise OutputError(msg)
    msg = f"Cannot write '{sync.folder}/a': No space left on device."
    with pytest.raises(OutputError, match=str(sync.folder)), synced():
        raise OutputError(msg)
    with structlog.testing.capture_logs() as logs:
        faulty.due = [faulty_s3.passes] * 3 + [faulty_s3.says(403, "AccessDenied")] * 9
        with pytest.raises(OutputError, match=str(sync.folder)), synced() as again:
            fail(again, msg)
    assert (logs[-1]["event"], logs[-1]["log_level"]) == ("output_not_uploaded", "error")
    assert sync.to_address(f"Results: {sync.folder}/a") == "Results: s3://bucket/out/a"


def test_an_address_that_cannot_be_used(s3: str, faulty: faulty_s3.FaultyS3) -> None:
    del s3
    sentence = r"^Output folder 's3://nowhere/x' cannot be used: bucket 'nowhere' does not exist"
    with pytest.raises(OutputError, match=sentence), synced("s3://nowhere/x"):
        pass
    faulty.due = [faulty_s3.says(403, "AccessDenied")]
    sentence = r"cannot be used: AccessDenied\. The role needs s3:GetObject on bucket/out/\*"
    with pytest.raises(OutputError, match=sentence), synced():
        pass
    with pytest.raises(UsageError, match=r"^A bucket's name must be"):
        S3OutputSync("s3://x/out")
    with pytest.raises(UsageError, match=r"^An S3 address must be"):
        S3OutputSync("s3://")


def test_the_folder_is_the_same_for_the_same_address_of_the_same_service(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://one")
    folder = S3OutputSync(URI).folder
    assert folder.is_relative_to(tmp_path / "state" / "rule-runner" / "outputs")
    assert S3OutputSync(f"{URI}/").folder == S3OutputSync(f"s3a{URI[2:]}").folder == folder
    others = {
        folder,
        S3OutputSync("s3://bucket/outs").folder,
        S3OutputSync("s3://buckets/out").folder,
    }
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://two")
    assert len(others | {S3OutputSync(URI).folder}) == 4


def test_the_state_folder_is_private_and_where_desktops_have_it(
    s3: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del s3
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    with synced() as sync:
        ours = tmp_path / ".local" / "state" / "rule-runner"
        assert sync.folder.is_relative_to(ours)
        assert ours.stat().st_mode & 0o777 == 0o700


def test_a_state_folder_that_cannot_be_written_is_one_sentence(
    s3: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del s3
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    sentence = (
        r"^Cannot write '.*/file/rule-runner/outputs/[0-9a-f]+': Not a directory\. "
        r"Results are kept there until they are uploaded; set XDG_STATE_HOME to use another "
        r"directory\.$"
    )
    with pytest.raises(OutputError, match=sentence), synced():
        pass


def test_a_user_without_a_home_learns_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    with pytest.raises(
        OutputError, match=r"^This user has no home directory\. Set XDG_STATE_HOME to"
    ):
        S3OutputSync(URI)


def test_a_large_file_is_uploaded_in_parts(s3: str) -> None:
    with synced() as sync:
        sync.folder.mkdir()
        with (sync.folder / "large").open("wb") as file:
            file.truncate(9 << 20)
    assert s3_objects.client(s3).head_object(Bucket="bucket", Key="out/large")["ContentLength"] == (
        9 << 20
    )
    assert s3_objects.uploads(s3) == []


def test_marks_are_json(s3: str) -> None:
    del s3
    with synced() as sync:
        write(sync, a="a")
    marks = json.loads((sync.folder.parent / "uploaded.json").read_text())
    assert list(marks) == ["a"]


@pytest.mark.parametrize(
    ("there", "here_stays"),
    [
        pytest.param({"run_id": "a", "ended_at": None}, True, id="same-evaluation"),
        pytest.param({"run_id": "b", "ended_at": None}, False, id="another-went-on"),
        pytest.param({"run_id": "a", "ended_at": "2026-01-01"}, False, id="another-ended-it"),
        pytest.param(None, True, id="nothing-there"),
    ],
)
@pytest.mark.parametrize("overwrite", [False, True])
def test_what_was_left_here_gives_way_to_what_another_machine_went_on_with(
    s3: str, there: dict[str, Any] | None, here_stays: bool, overwrite: bool
) -> None:
    sync = synced(overwrite=overwrite)
    sync.folder.mkdir(parents=True)
    (sync.folder / "results.json").write_text('{"run_id": "a", "ended_at": null}')
    if there is not None:
        text = json.dumps(there).encode()
        s3_objects.put(s3, "out/", {"results.json": text, "events.jsonl": b"{}\n"})
    with sync:
        assert ("events.jsonl" in here(sync)) == (not here_stays and not overwrite)


def test_what_another_machine_has_replaced_meanwhile_is_uploaded_again(s3: str) -> None:
    with synced() as sync:
        sync.keep = True
        write(sync, results_json='{"run_id": "a"}', findings_jsonl="{}")
    write(sync, events_jsonl="{}")  # which the process did not live to upload
    s3_objects.put(s3, "out/", {"findings.jsonl": b"of another machine"})
    with synced():
        pass
    assert s3_objects.content(s3, "out/")["findings.jsonl"] == b"{}"
