"""What the fetches of cProfileAnalysis and PyinstrumentAnalysis give, of good and bad files."""

import io
import json
import os
import pstats
import sys
from pathlib import Path

import pytest
from python_profile_writer import (
    calls_of,
    folder,
    span,
    table,
    write_cprofile,
    write_job,
    write_pyinstrument,
    write_table,
)

from rule_core.exceptions import CorruptFileError
from rule_core.profiler.python_profiles.analysis import PyinstrumentAnalysis, cProfileAnalysis
from rule_core.profiler.python_profiles.stats import Metrics, cProfileStats
from rule_core.profiler.python_profiles.types import ProfileArgumentError


@pytest.fixture
def analysis(tmp_path: Path) -> cProfileAnalysis:
    return cProfileAnalysis(write_job(tmp_path))


def calls(stats: cProfileStats) -> int:
    """Return how often the job called ``forward``."""
    (found,) = [one for one in stats.function_stats_list if "(forward)" in one.function_name]
    return found.total_calls


# -- what cProfile recorded -----------------------------------------------------------------------


def work() -> None:
    sorted(json.dumps([1, 2, 3]))


def test_the_numbers_are_those_of_pstats(tmp_path: Path) -> None:
    paths = [write_cprofile(tmp_path, span(step), work)[0] for step in (9, 10)]
    expected = vars(pstats.Stats(*map(str, paths)))
    found = cProfileAnalysis(tmp_path).fetch_profile_stats_by_step(9, 10)
    assert expected["stats"] == vars(found.ps)["stats"]
    for name in ("total_calls", "prim_calls", "total_tt", "top_level", "max_name_len"):
        assert expected[name] == vars(found.ps)[name]
    for one, (key, row) in zip(found.function_stats_list, expected["stats"].items(), strict=True):
        assert row[:4] == (one.prim_calls, one.total_calls, one.total_time, one.cumulative_time)
        assert one.callers == [pstats.func_std_string(caller) for caller in row[4]]  # type: ignore[attr-defined]  # typeshed lacks it
        assert one.function_name == pstats.func_std_string(key)  # type: ignore[attr-defined]  # likewise


def test_a_function_prints_as_a_dictionary(analysis: cProfileAnalysis) -> None:
    one, _, sums = analysis.fetch_profile_stats_by_step(9).function_stats_list
    assert str(one) == repr(
        {
            "function name": "train.py:7(forward)",
            "# of primitive calls": 9,
            "# of total calls": 9,
            "total time": 0.5,
            "cumulative time": 1.0,
        }
    )
    assert one.callers == ["train.py:1(<module>)"]
    assert sums.function_name == "{built-in method builtins.sum}"
    assert (sums.prim_calls, sums.total_calls) == (3, 5)


def test_functions_are_a_frame_with_a_column_for_each_number(analysis: cProfileAnalysis) -> None:
    frame = analysis.fetch_profile_stats_by_step(9).get_function_stats()
    assert frame.to_dict("list") == {
        "function name": [
            *("train.py:7(forward)", "train.py:1(<module>)", "{built-in method builtins.sum}")
        ],
        "# of primitive calls": [9, 1, 3],
        "# of total calls": [9, 1, 5],
        "total time": [0.5, 0.25, 0.125],
        "cumulative time": [1.0, 2.0, 0.125],
    }
    assert [str(one) for one in frame.dtypes][1:] == ["int64", "int64", "float64", "float64"]


def test_no_functions_are_an_empty_frame_with_all_columns() -> None:
    assert len(cProfileStats(pstats.Stats()).get_function_stats().columns) == 5


SORTED = [
    (Metrics.TOTAL_TIME, ["forward", "<module>", "sum"]),
    (Metrics.CUMULATIVE_TIME, ["<module>", "forward", "sum"]),
    (Metrics.PRIMITIVE_CALLS, ["sum", "forward", "<module>"]),
    (Metrics.TOTAL_CALLS, ["sum", "forward", "<module>"]),
]


@pytest.mark.parametrize(("by", "expected"), SORTED)
def test_top_functions_are_printed_in_order(
    by: Metrics, expected: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_table(tmp_path, span(9), table(2))
    stats = cProfileAnalysis(tmp_path).fetch_profile_stats_by_step(9)
    for n in (1, 2, 3):
        stats.print_top_n_functions(by, n)
        rows = capsys.readouterr().out.partition("filename:lineno(function)\n")[2].split("\n")
        named = [name for row in rows for name in expected if name in row]
        assert expected[:n] == named


def test_printing_goes_to_the_present_standard_output(
    analysis: cProfileAnalysis, monkeypatch: pytest.MonkeyPatch
) -> None:
    stats = analysis.fetch_profile_stats_by_step(9)
    for _ in range(2):
        now = io.StringIO()
        monkeypatch.setattr(sys, "stdout", now)
        stats.print_top_n_functions(Metrics.TOTAL_CALLS)
        assert calls_of(now.getvalue()) == ["9"]
    stats.print_top_n_function(Metrics.TOTAL_CALLS, n=1)
    stats.ps.print_stats()
    assert len(calls_of(now.getvalue())) == 3


def test_printing_obeys_no_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_table(tmp_path, span(9), table(name="\x1b[31m\udc80\r"))
    cProfileAnalysis(tmp_path).fetch_profile_stats_by_step(9).print_top_n_functions(
        Metrics.TOTAL_TIME
    )
    assert r"train.py:7(\x1b[31m\udc80\r)" in capsys.readouterr().out


def test_only_metrics_and_whole_numbers_are_printed_by(analysis: cProfileAnalysis) -> None:
    stats = analysis.fetch_profile_stats_by_step(9)
    with pytest.raises(ProfileArgumentError, match=r"^by must be one of Metrics, got 'tottime'\.$"):
        stats.print_top_n_functions("tottime")
    with pytest.raises(ProfileArgumentError, match=r"^n must be a whole number, got 0\.5\.$"):
        stats.print_top_n_functions(Metrics.TOTAL_TIME, 0.5)


def test_a_profile_of_nothing_adds_nothing(tmp_path: Path) -> None:
    write_table(tmp_path, span(9), {})
    analysis = cProfileAnalysis(tmp_path)
    assert analysis.fetch_profile_stats_by_step(9).function_stats_list == []
    write_table(tmp_path, span(9, lasts=0.75), table(3))
    assert calls(analysis.fetch_profile_stats_by_step(9)) == 3


def test_a_damaged_file_is_left_out_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_table(tmp_path, span(9), table(9))
    bad = write_table(tmp_path, span(10), table(10))
    bad.write_bytes(b"not a table")
    analysis = cProfileAnalysis(tmp_path)
    for _ in range(2):
        assert calls(analysis.fetch_profile_stats_by_step(9, 10)) == 9
    text = (
        f"File '{bad}' is corrupt: expected a table of functions before byte 1, got the code b'n'."
    )
    assert {str(bad): text} == analysis.problems
    assert [f"Python profile '{bad}' is left out. {text}"] == caplog.messages


def test_nothing_but_damaged_files_is_an_error(tmp_path: Path) -> None:
    write_table(tmp_path, span(9), table()).write_bytes(b"")
    with pytest.raises(Exception, match=r"python_stats' is cut off: expected 1 bytes at 0, got 0"):
        cProfileAnalysis(tmp_path).fetch_profile_stats_by_step(9)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    elsewhere = write_table(tmp_path / "elsewhere", span(9), table(9))
    (folder(tmp_path / "p", span(9)) / "python_stats").symlink_to(elsewhere)
    with pytest.raises(Exception, match=r"links inside a trial are not followed\.$"):
        cProfileAnalysis(tmp_path / "p").fetch_profile_stats_by_step(9)


def test_a_file_that_is_gone_is_left_out(tmp_path: Path) -> None:
    write_table(tmp_path, span(9), table(9))
    gone = write_table(tmp_path, span(10), table(10))
    analysis = cProfileAnalysis(tmp_path)
    gone.unlink()
    assert calls(analysis.fetch_profile_stats_by_step(9, 10, refresh_stats=False)) == 9
    assert "does not exist." in analysis.problems[str(gone)]


# -- what pyinstrument recorded -------------------------------------------------------------------


def test_sessions_come_with_the_path_of_a_page_that_nobody_opens(tmp_path: Path) -> None:
    for step in (10, 9):
        write_pyinstrument(tmp_path, span(step), {"duration": step, "root_frame": None})
    page = folder(tmp_path, span(9), profiler="pyinstrument") / "python_stats.html"
    page.unlink()
    os.mkfifo(page)  # whoever opened it would wait for ever
    found = PyinstrumentAnalysis(tmp_path).fetch_profile_stats_by_step(9, 10)
    assert [{"duration": step, "root_frame": None} for step in (9, 10)] == [
        one.json_stats for one in found
    ]
    assert str(page) == found[0].html_file_path


def test_frames_are_as_they_were_written(tmp_path: Path) -> None:
    where = write_pyinstrument(tmp_path, span(9))
    (found,) = PyinstrumentAnalysis(tmp_path).fetch_profile_stats_by_step(9)
    assert json.loads((where / "python_stats.json").read_bytes()) == found.json_stats
    assert str(where / "python_stats.html") == found.html_file_path


def test_a_session_may_lack_its_page_or_its_frames(tmp_path: Path) -> None:
    (write_pyinstrument(tmp_path, span(9)) / "python_stats.html").unlink()
    (write_pyinstrument(tmp_path, span(10)) / "python_stats.json").unlink()
    found = PyinstrumentAnalysis(tmp_path).fetch_profile_stats_by_step(9, 10)
    assert [(one.html_file_path is not None, one.json_stats is not None) for one in found] == [
        (False, True),
        (True, False),
    ]


def test_spans_that_begin_together_are_two_sessions(tmp_path: Path) -> None:
    write_pyinstrument(tmp_path, span(9, lasts=0.25))
    write_pyinstrument(tmp_path, span(9, lasts=0.5))
    assert len(PyinstrumentAnalysis(tmp_path).fetch_profile_stats_by_step(9)) == 2


SESSIONS = [
    pytest.param(b"[1]", "expected a JSON object, got Expected `object`, got `array`", id="list"),
    pytest.param(b"", "expected a JSON object, got Input data was truncated", id="empty"),
    pytest.param(b'{"a": ' * 100_000, "one that is nested too deeply", id="deep"),
    pytest.param(b"\xff", "a JSON object, got", id="binary"),
    pytest.param(b'{"a": "\xff"}', "got 'utf-8' codec can't decode byte 0xff", id="no-utf-8"),
    pytest.param(b'{"a": ' + b"9" * 5000 + b"}", "out of range", id="huge-number"),
]


@pytest.mark.parametrize(("content", "message"), SESSIONS)
def test_what_is_no_session_is_refused(content: bytes, message: str, tmp_path: Path) -> None:
    (write_pyinstrument(tmp_path, span(9)) / "python_stats.json").write_bytes(content)
    with pytest.raises(CorruptFileError, match=message) as caught:
        PyinstrumentAnalysis(tmp_path).fetch_profile_stats_by_step(9)
    assert "\n" not in str(caught.value)
    assert not str(caught.value).endswith("..")


def test_a_session_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_pyinstrument(tmp_path, span(9))
    name = "rule_core.profiler.python_profiles.stats.MAX_BYTES"
    monkeypatch.setattr(name, 20)
    with pytest.raises(CorruptFileError, match=r"expected at most 20 bytes, got more\.$"):
        PyinstrumentAnalysis(tmp_path).fetch_profile_stats_by_step(9)
