import logging
from pathlib import Path

import pytest
import reports
import s3_objects

from rule_runner.errors import ClientError
from rule_runner.results.schema import Evidence
from rule_runner.service.curves.measured import LINES_KEPT, read_measured


def test_the_worst_lines_of_each_quantity(tmp_path: Path) -> None:
    lines = [
        reports.series({0: 1e-3, 20: 10.0 ** -(8 + number)}, met=[20], tensor=f"gradient/{number}")
        for number in range(LINES_KEPT + 2)
    ]
    reports.save(tmp_path / "A", reports.fired("A"), reports.measurements(*lines, left_out=4))
    reports.save(tmp_path / "B", reports.result("B"))
    measured = read_measured(str(tmp_path))
    assert [curve.item.name for curve in measured.curves] == [
        f"gradient/{number}" for number in range(LINES_KEPT)
    ]
    assert measured.left_out == 6
    item, points = measured.curves[0]
    assert (item.rule, item.quantity, item.worse, item.limit) == (
        "A",
        "mean |gradient|",
        "below",
        1e-7,
    )
    assert (points.steps, item.met) == ([0, 20], [20])


def test_a_finding_alone_is_no_curve(tmp_path: Path) -> None:
    reports.save(tmp_path / "A", reports.fired("A"))
    found = [Evidence(step, "t", None, step * 1.0, 0.5, None) for step in (1, 2)]
    reports.save(tmp_path / "B", reports.result("B", "IssuesFound", evidence=found))
    assert [(curve.item.rule, curve.item.met) for curve in read_measured(str(tmp_path)).curves] == [
        ("B", [1, 2])
    ]


@pytest.mark.parametrize("name", ["gone", "file"])
def test_an_output_that_is_no_folder_has_no_curves(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    assert read_measured(str(tmp_path / name)).curves == ()


def test_an_output_in_s3(
    aws_endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("werkzeug"), "disabled", True)
    s3_objects.make_bucket(aws_endpoint)
    line = reports.series({0: 1e-3, 20: 1e-8}, met=[20])
    folder = reports.save(tmp_path / "A", reports.fired("A"), reports.measurements(line))
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    s3_objects.put(aws_endpoint, "out/A/", files)
    (curve,) = read_measured("s3://bucket/out").curves
    assert (curve.item.rule, curve.points.steps) == ("A", [0, 20])
    with pytest.raises(ClientError, match="cannot be read"):
        read_measured("s3://no-such-bucket/out")
