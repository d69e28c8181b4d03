"""Readers of Python profiles: which files they take, from folders and from S3."""

import logging
import shutil
from pathlib import Path
from typing import Any

import pytest
import s3_objects
from memory_store import MemoryStore
from python_profile_writer import NODE, folder, span, table, write_job, write_table

from rule_core.profiler.python_profiles import reader as python_stats_reader
from rule_core.profiler.python_profiles.analysis import PyinstrumentAnalysis, cProfileAnalysis
from rule_core.profiler.python_profiles.reader import (
    PROBLEMS_KEPT,
    LocalPythonStatsReader,
    ProblemList,
    PythonStatsReader,
    S3PythonStatsReader,
)
from rule_core.profiler.python_profiles.types import ProfileFolderError

KEY = f"framework/pytorch/cprofile/{NODE}/{span(9)}/python_stats"
PAGE = KEY.replace("cprofile", "pyinstrument") + ".html"


# -- folders of this machine ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "below", ["framework/pytorch/cprofile", "framework/pytorch/cprofile/", "framework/", "", "."]
)
def test_any_folder_above_the_nodes_will_do(
    below: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = write_table(tmp_path, span(9), table())
    monkeypatch.chdir(tmp_path)
    for start in (str(tmp_path / "x")[:-1], "./"):
        (found,) = LocalPythonStatsReader(start + below).load_python_profile_stats()
        assert (
            found.framework,
            found.profiler_name,
            found.node_id,
        ) == ("pytorch", "cprofile", NODE)
        assert str(expected) == found.stats_path


def test_stray_files_and_folders_are_passed_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cprofile = write_job(tmp_path)
    expected = len(LocalPythonStatsReader(cprofile).load_python_profile_stats())
    for stray in (".DS_Store", "python_stats", f"{NODE}/README", f"{NODE}/{span(9)}/x/python_stat"):
        (cprofile / stray).parent.mkdir(parents=True, exist_ok=True)
        (cprofile / stray).touch()
    (cprofile / "no-profiles").mkdir()
    (folder(tmp_path, span(9)) / "python_stats.json.tmp").touch()
    reader = LocalPythonStatsReader(cprofile)
    assert expected == len(reader.load_python_profile_stats())
    assert [one for one in caplog.records if one.levelno > logging.WARNING] == []


def test_a_span_of_another_name_is_reported_and_costs_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_table(tmp_path, span(9), table())
    old = write_table(tmp_path, "1600000042500000_1600000042400000_11-algo-1_9", table())
    reader = LocalPythonStatsReader(tmp_path)
    assert len(reader.load_python_profile_stats()) == 1
    assert list(reader.problems.texts) == [str(old)]
    assert "must be named <mode>-<step>-<phase>-<time>_" in reader.problems.texts[str(old)]
    reader.load_python_profile_stats()
    assert len(caplog.records) == 1


def test_a_node_may_have_a_name_that_is_no_utf_8(tmp_path: Path) -> None:
    write_table(tmp_path, span(9), table(), node="\udcff")
    analysis = cProfileAnalysis(tmp_path)
    assert analysis.list_available_node_ids() == ["\udcff"]
    assert analysis.fetch_profile_stats_by_step(9) is not None


def test_files_are_in_the_order_of_start_and_node(tmp_path: Path) -> None:
    for node, step in (("b", 9), ("a", 10), ("c", 8), ("a", 9)):
        write_table(tmp_path, span(step), table(), node=node)
    found = LocalPythonStatsReader(tmp_path).load_python_profile_stats()
    assert [(one.start_step, one.node_id) for one in found] == [
        *((8, "c"), (9, "a"), (9, "b"), (10, "a"))
    ]


def test_folders_that_are_links_are_not_entered(tmp_path: Path) -> None:
    job = write_job(tmp_path / "elsewhere")
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "framework").symlink_to(job.parents[1])
    assert LocalPythonStatsReader(tmp_path / "p").load_python_profile_stats() == []
    (tmp_path / "link").symlink_to(job)  # the user's own
    assert len(LocalPythonStatsReader(tmp_path / "link").load_python_profile_stats()) == 18


def test_missing_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "no", tmp_path / "file"):
        with pytest.raises(ProfileFolderError, match=rf"'{path}' is not an existing folder"):
            cProfileAnalysis(path)


def test_the_base_says_nothing_of_files(tmp_path: Path) -> None:
    with pytest.raises(NotImplementedError):
        PythonStatsReader(tmp_path).load_python_profile_stats()


# -- S3 -------------------------------------------------------------------------------------------


@pytest.fixture
def objects(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """Return what there is below any address of S3, by key."""
    files: dict[str, bytes] = {}
    monkeypatch.setattr(python_stats_reader, "open_store", lambda uri: MemoryStore(files, str(uri)))
    return files


def reader(tmp_path: Path, profiler: str | None = None) -> S3PythonStatsReader:
    return S3PythonStatsReader(tmp_path / "local", "s3://bucket/job", profiler)


def below(tmp_path: Path) -> set[str]:
    """Return the files in the folder of downloads, without the list of them."""
    root = tmp_path / "local" / "python_stats"
    names = {one.relative_to(root).as_posix() for one in root.rglob("*") if one.is_file()}
    return {name for name in names if not name.startswith(".")}


def test_profiles_are_downloaded(objects: dict[str, bytes], tmp_path: Path) -> None:
    objects |= {KEY: b"stats", PAGE: b"page"}
    found = reader(tmp_path).load_python_profile_stats()
    assert below(tmp_path) == {"/".join(key.split("/")[3:]) for key in objects}
    assert [one.profiler_name for one in found] == ["cprofile", "pyinstrument"]
    assert {"pytorch"} == {one.framework for one in found}
    assert [Path(one.stats_path).read_bytes() for one in found] == [b"stats", b"page"]


def test_only_profiles_of_the_profiler_are_downloaded(
    objects: dict[str, bytes], tmp_path: Path
) -> None:
    objects |= {
        KEY: b"stats",
        PAGE: b"page",
        "framework/pevents/2020091312/1600000000_11-algo-1_model_timeline.json": b"[]",
        KEY + ".csv": b"",
        KEY.replace("framework", "other"): b"",
        KEY.replace("framework/pytorch", "framework"): b"",
        KEY.replace(span(9), "no-span"): b"",
        "framework/python_stats": b"",
    }
    asked = reader(tmp_path, "cprofile")
    (found,) = asked.load_python_profile_stats()
    assert below(tmp_path) == {f"{NODE}/{span(9)}/python_stats"}
    assert list(asked.problems.texts) == [
        "s3://bucket/job/framework/python_stats",
        f"s3://bucket/job/{KEY.replace(span(9), 'no-span')}",
    ]
    assert asked.read(found.stats_path) == b"stats"


HOSTILE = [
    KEY.replace(NODE, ".."),
    KEY.replace(NODE, "."),
    KEY.replace(NODE, ""),
    KEY.replace(f"/{NODE}", "/a/../../../../.."),
    KEY.replace(NODE, "a\\b"),
    KEY.replace("framework/", "framework//"),
    KEY.replace(NODE, "é" * 128),
]


@pytest.mark.parametrize("key", HOSTILE)
def test_no_key_leads_outside(key: str, objects: dict[str, bytes], tmp_path: Path) -> None:
    objects[key] = b"x"
    assert reader(tmp_path).load_python_profile_stats() == []
    assert below(tmp_path) == set()
    assert [one.name for one in tmp_path.iterdir()] == ["local"]


def test_a_refresh_downloads_again_and_drops_what_is_gone(
    objects: dict[str, bytes], tmp_path: Path
) -> None:
    objects[KEY] = b"one"
    asked = reader(tmp_path)
    asked.load_python_profile_stats()
    (tmp_path / "local" / "python_stats" / "mine").touch()
    objects[KEY] = b"two"
    (found,) = asked.load_python_profile_stats()
    assert asked.read(found.stats_path) == b"two"
    later = KEY.replace(span(9), span(10))
    objects[later] = objects.pop(KEY)
    reader(tmp_path).load_python_profile_stats()
    assert below(tmp_path) == {"mine", f"{NODE}/{span(10)}/python_stats"}


def test_each_profiler_leaves_the_downloads_of_the_other(
    objects: dict[str, bytes], tmp_path: Path
) -> None:
    objects |= {KEY: b"stats", PAGE: b"page"}
    reader(tmp_path, "cprofile").load_python_profile_stats()
    reader(tmp_path, "pyinstrument").load_python_profile_stats()
    assert len(below(tmp_path)) == 2
    objects.clear()
    reader(tmp_path, "pyinstrument").load_python_profile_stats()
    assert below(tmp_path) == {f"{NODE}/{span(9)}/python_stats"}


def test_problems_are_reported_once_and_bounded(caplog: pytest.LogCaptureFixture) -> None:
    problems = ProblemList()
    for _ in range(2):
        for number in range(PROBLEMS_KEPT + 1):
            problems.add(str(number), "It is bad.")
    assert PROBLEMS_KEPT == len(problems.texts) == len(caplog.records)


def test_two_profiles_do_not_share_a_place(objects: dict[str, bytes], tmp_path: Path) -> None:
    other = KEY.replace("pytorch", "tensorflow")
    objects |= {KEY: b"one", other: b"two"}
    asked = reader(tmp_path)
    (found,) = asked.load_python_profile_stats()
    assert (found.framework, bytes(asked.read(found.stats_path))) == ("pytorch", b"one")
    ((name, text),) = asked.problems.texts.items()
    assert (name, text) == (
        f"s3://bucket/job/{other}",
        f"Its node and span are those of 's3://bucket/job/{KEY}'.",
    )


def test_what_cannot_be_downloaded_is_left_out(
    objects: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Vanishing(MemoryStore):
        def read(self, key: str, byte_range: Any = None) -> memoryview:
            self.files.pop(gone, None)  # type: ignore[attr-defined]  # a dictionary
            return super().read(key, byte_range)

    gone, long = (KEY.replace(span(9), span(step)) for step in (10, 11))
    objects |= {KEY: b"x" * 9, gone: b"x", long: b"x" * 11}
    monkeypatch.setattr(python_stats_reader, "open_store", lambda uri: Vanishing(objects, uri))
    monkeypatch.setattr(python_stats_reader, "MAX_BYTES", 10)
    asked = reader(tmp_path)
    assert len(asked.load_python_profile_stats()) == 1
    assert asked.problems.texts == {
        f"s3://bucket/job/{gone}": f"File {gone!r} does not exist.",
        f"s3://bucket/job/{long}": "It is longer than 10 bytes.",
    }


def test_an_address_must_be_one_of_s3(tmp_path: Path) -> None:
    with pytest.raises(ProfileFolderError, match=r"as s3://bucket/prefix, got '/tmp/x'\."):
        cProfileAnalysis(tmp_path, "/tmp/x")


def test_profiles_of_a_bucket_are_analysed(aws_endpoint: str, tmp_path: Path) -> None:
    cprofile = write_job(tmp_path / "job")
    files = {
        path.relative_to(tmp_path / "job").as_posix(): path.read_bytes()
        for path in cprofile.rglob("python_stats")
    }
    s3_objects.make_bucket(aws_endpoint)
    s3_objects.put(aws_endpoint, "runs/one/", files)
    shutil.rmtree(tmp_path / "job")
    address = f"s3://{s3_objects.BUCKET}/runs/one"
    analysis = cProfileAnalysis(local_profile_dir=str(tmp_path / "local"), s3_path=address)
    assert len(analysis.python_profile_stats) == 18
    stats = analysis.fetch_python_profile_stats_by_step("9", "10")
    assert stats.function_stats_list[0].total_calls == 18
    assert PyinstrumentAnalysis(str(tmp_path / "local"), address).python_profile_stats == []
