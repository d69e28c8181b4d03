"""top_functions: the first functions over all chosen spans."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import s3_objects
from python_profile_writer import (
    NODE,
    OTHER_NODE,
    span,
    table,
    write_job,
    write_pyinstrument,
    write_table,
)

from rule_core.exceptions import CorruptFileError, SMDebugValueError
from rule_core.profiler.python_profiles.stats import Metrics
from rule_core.profiler.python_profiles.top_functions import (
    TopFunctions,
    top_functions,
)
from rule_core.storage.base import ObjectNotFoundError


@pytest.fixture
def job(tmp_path: Path) -> Path:
    write_job(tmp_path)
    return tmp_path


def calls(found: TopFunctions) -> int:
    """Return how often the job called ``forward``."""
    return sum(one.total_calls for one in found.functions if "(forward)" in one.function_name)


CHOICES: list[Any] = [
    pytest.param({}, 2 * (100 + 60 + 2 + 200), 18, id="all"),
    pytest.param({"node": NODE}, 362, 9, id="node"),
    pytest.param({"mode": "train"}, 2 * 60, 12, id="mode"),
    pytest.param({"steps": (9, 12)}, 2 * 60, 12, id="steps"),
    pytest.param({"steps": ("9", "11"), "node": OTHER_NODE}, 2 * (9 + 10), 4, id="texts"),
    pytest.param({"steps": (2, 3), "mode": "eval"}, 4, 2, id="steps-of-mode"),
    pytest.param({"steps": (9, 9)}, 0, 0, id="no-steps"),
    pytest.param({"node": "algo-3"}, 0, 0, id="no-such-node"),
]


@pytest.mark.parametrize(("kwargs", "expected", "spans"), CHOICES)
def test_spans_are_chosen(kwargs: dict[str, Any], expected: int, spans: int, job: Path) -> None:
    found = top_functions(job, **kwargs)
    assert (calls(found), len(found.chosen), len(found.available)) == (expected, spans, 18)


def test_functions_have_names_calls_and_times(job: Path) -> None:
    found = top_functions(job, steps=(9, 10), node=NODE, n=2)
    assert [tuple(function.as_row().values()) for function in found.functions] == [
        ("train.py:7(forward)", 18, 18, 1.0, 2.0),
        ("train.py:1(<module>)", 2, 2, 0.5, 4.0),
    ]
    assert (found.functions_in_all, found.time_in_all, found.problems) == (3, 1.75, {})


ORDERS = [
    ("tottime", ["forward)", "<module>)", "sum}"]),
    ("cumtime", ["<module>)", "forward)", "sum}"]),
    ("pcalls", ["sum}", "forward)", "<module>)"]),
    (Metrics.TOTAL_CALLS, ["sum}", "forward)", "<module>)"]),
]


@pytest.mark.parametrize(("sort", "expected"), ORDERS)
def test_functions_are_sorted(sort: str, expected: list[str], tmp_path: Path) -> None:
    write_table(tmp_path, span(9), table(2))
    for n, most in ((None, 3), (99, 3), (1, 1), (0, 0)):
        names = [one.function_name for one in top_functions(tmp_path, sort=sort, n=n).functions]
        assert len(names) == most
        assert all(name.endswith(end) for name, end in zip(names, expected, strict=False))


def test_equal_functions_are_sorted_by_name(tmp_path: Path) -> None:
    write_table(tmp_path, span(9), {(name, 1, "f"): (1, 1, 0.5, 0.5, {}) for name in "cab"})
    names = [one.function_name for one in top_functions(tmp_path).functions]
    assert names == ["a:1(f)", "b:1(f)", "c:1(f)"]


@pytest.mark.parametrize("below", ["framework", "framework/pytorch/cprofile", "framework/../"])
def test_any_folder_above_the_nodes_will_do(below: str, job: Path) -> None:
    assert str(top_functions(job / below)) == str(top_functions(job))


def test_profiles_of_pyinstrument_are_named_and_not_read(tmp_path: Path) -> None:
    write_pyinstrument(tmp_path, span(9))
    found = top_functions(tmp_path)
    assert (found.functions, found.chosen) == ((), ())
    assert [one.profiler_name for one in found.available] == ["pyinstrument"] * 2


def test_a_damaged_file_is_left_out_and_said(job: Path) -> None:
    bad = write_table(job, span(9), table(1000))
    bad.write_bytes(b"x")
    found = top_functions(job)
    assert (calls(found), len(found.chosen), len(found.available)) == (724, 18, 19)
    assert list(found.problems) == [str(bad)]


def test_nothing_but_damaged_files_is_an_error(tmp_path: Path) -> None:
    write_table(tmp_path, span(9), table()).write_bytes(b"x")
    with pytest.raises(CorruptFileError, match="expected a table of functions"):
        top_functions(tmp_path)


BAD: list[Any] = [
    ({"sort": "time"}, r"sorted by one of tottime, cumtime, pcalls, ncalls, got 'time'\.$"),
    ({"n": -1}, r"^The number of functions must be 0 or more, got -1\.$"),
    ({"steps": ("x", 3)}, r"A step must be a whole number, got 'x'\.$"),
    ({"mode": "test"}, r"The mode of a Python profile must be one of"),
]


@pytest.mark.parametrize(("kwargs", "message"), BAD)
def test_what_cannot_be_meant_is_refused(
    kwargs: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(SMDebugValueError, match=message):
        top_functions(tmp_path, **kwargs)


def test_a_folder_that_does_not_exist_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ObjectNotFoundError, match=rf"'{tmp_path}/no' does not exist\.$"):
        top_functions(tmp_path / "no")


def test_a_bucket_is_read_in_place(aws_endpoint: str, tmp_path: Path) -> None:
    path = write_table(tmp_path, span(9), table(9))
    s3_objects.make_bucket(aws_endpoint)
    key = path.relative_to(tmp_path).as_posix()
    s3_objects.put(aws_endpoint, "runs/one/", {key: path.read_bytes()})
    found = top_functions(f"s3://{s3_objects.BUCKET}/runs/one")
    assert calls(found) == 9
    assert found.chosen[0].stats_path == f"s3://{s3_objects.BUCKET}/runs/one/{key}"


def test_neither_pandas_nor_boto3_is_imported(job: Path) -> None:
    program = (
        "import sys\n"
        "from rule_core.profiler.python_profiles.top_functions import top_functions\n"
        "assert top_functions(sys.argv[1]).functions\n"
        "print(sorted({'pandas', 'boto3', 'bokeh'} & set(sys.modules)))\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", program, str(job)], capture_output=True, text=True, check=True
    )
    assert found.stdout == "[]\n"
