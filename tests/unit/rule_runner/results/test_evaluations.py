"""Saved evaluations: of this version and of 0.1.0, in folders and in S3."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
import reports
import s3_objects

from rule_core.exceptions import SMDebugError
from rule_runner.results.acknowledgements import (
    Acknowledgement,
    AcknowledgementKind,
    append_acknowledgement,
)
from rule_runner.results.evaluations import (
    SavedEvaluation,
    read_measurements,
    saved_evaluations,
)

OLD = Path(__file__).parents[3] / "data" / "outputs-0.1.0"


def names(evaluation: SavedEvaluation) -> list[str]:
    return [rule.configuration_name for rule in evaluation.rules]


def test_a_folder_and_those_below_are_read(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    reports.write(tmp_path / "b", reports.result("One"), reports.result("Two", ended_at=None))
    reports.save(tmp_path / "a" / "deep", reports.result("One"))
    first, second = saved_evaluations(str(tmp_path))
    assert (first.output, names(first)) == (str(tmp_path / "a" / "deep"), ["One"])
    assert (second.output, names(second)) == (str(tmp_path / "b"), ["One", "Two"])
    assert (first.unfinished, second.unfinished) == ([], [str(tmp_path / "b" / "results.json")])
    assert [*saved_evaluations(str(tmp_path), depth=0)] == []


def test_evaluations_in_containers_of_their_own_are_one(tmp_path: Path) -> None:
    for name in ("One", "Two"):
        reports.save(tmp_path / name, reports.result(name))
    (saved,) = saved_evaluations(str(tmp_path))
    assert (saved.output, names(saved)) == (str(tmp_path), ["One", "Two"])
    assert saved.folders == {name: str(tmp_path / name) for name in ("One", "Two")}


@pytest.mark.parametrize(
    ("layout", "rules"),
    [("single", ["ExplodingTensor"]), ("several", ["ExplodingTensor", "LossNotDecreasing"])],
)
def test_results_of_version_0_1_0_are_read(layout: str, rules: list[str]) -> None:
    folder = str(OLD / layout)
    (saved,) = saved_evaluations(folder)
    assert (saved.output, names(saved), saved.is_old) == (folder, rules, True)
    assert (saved.problems, saved.unfinished) == ([], [])
    assert saved.rules[0].outcome == "IssuesFound"
    record = read_measurements(saved.folders["ExplodingTensor"]).of("ExplodingTensor")
    assert record is not None
    assert [series.tensor for series in record.series] == ["loss", "val_loss"]


@pytest.mark.parametrize("layout", ["single", "several"])
def test_s3_has_what_a_folder_has(aws_endpoint: str, layout: str, tmp_path: Path) -> None:
    s3_objects.make_bucket(aws_endpoint)
    reports.save(tmp_path / "new", reports.result("One"))
    folders = {"old": OLD / layout, "new": tmp_path / "new"}
    for name, folder in folders.items():
        files = {
            f"{name}/{path.relative_to(folder).as_posix()}": path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file()
        }
        s3_objects.put(aws_endpoint, "out/", files | {f"{name}/.hidden/results.json": b"{"})
    new, old = saved_evaluations("s3://bucket/out/")
    assert (new.output, names(new)) == ("s3://bucket/out/new", ["One"])
    assert old.output == "s3://bucket/out/old"
    (local,) = saved_evaluations(str(OLD / layout))
    assert (old.rules, old.is_old) == (local.rules, True)
    folder = old.folders["ExplodingTensor"]
    assert read_measurements(folder) == read_measurements(local.folders["ExplodingTensor"])
    with pytest.raises(SMDebugError):
        [*saved_evaluations("s3://missing/out")]


def test_acknowledgements_are_applied_and_their_damage_is_named(tmp_path: Path) -> None:
    reports.save(tmp_path, reports.fired())
    entry = Acknowledgement(
        kind=AcknowledgementKind.MUTED,
        who="ann",
        reason="Known.",
        at=datetime(2026, 1, 1, tzinfo=UTC),
        rule="VanishingGradient",
    )
    append_acknowledgement(tmp_path, entry)
    (saved,) = saved_evaluations(str(tmp_path))
    assert saved.rules[0].is_muted
    (tmp_path / "acknowledgements.jsonl").unlink()
    (tmp_path / "acknowledgements.jsonl").mkdir()
    (saved,) = saved_evaluations(str(tmp_path))
    assert "cannot be read" in saved.acknowledgement_problem
    assert not saved.rules[0].is_muted


def test_a_damaged_part_is_named(tmp_path: Path) -> None:
    (tmp_path / "Bad").mkdir()
    (tmp_path / "Bad" / "rule_result.json").write_text("{")
    reports.save(tmp_path / "One", reports.result("One"))
    (saved,) = saved_evaluations(str(tmp_path))
    (problem,) = saved.problems
    assert problem.startswith(f"Result '{tmp_path}/Bad/rule_result.json' cannot be read: ")
    assert names(saved) == ["One"]
