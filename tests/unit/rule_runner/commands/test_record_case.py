"""record: what is cut out of a trial, its keys for numpy, and the way back."""

import io
import zipfile
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from rule_core.modes import ModeKeys
from rule_core.saving.trial_writer import TrialWriter
from rule_core.trials.create_trial import create_trial
from rule_runner.commands.record_case import record
from rule_runner.commands.rule_tests import run_rule_tests
from rule_runner.config.defaults import Isolation
from rule_runner.errors import OutputError, TrialError, UsageError
from rule_runner.rule_tests.saved_case import CaseError, load_npz


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    root = tmp_path / "trial"
    for worker in ("worker_0", "worker_1"):
        with TrialWriter(
            root,
            collections={"losses": "loss", "mine": "^gradient/a"},
            worker=worker,
            num_workers=2,
            end_job=worker == "worker_1",
        ) as writer:
            for step in range(0, 60, 10):
                writer.step(
                    step,
                    {"loss": 60.0 - step, "gradient/a/b": np.zeros((2, 2), ml_dtypes.bfloat16)},
                    mode=ModeKeys.EVAL if step == 30 else ModeKeys.TRAIN,
                    mode_step=step // 10,
                    reductions={"w": {("mean", True): 0.5}},
                    shapes={"s": (3, 4)},
                )
    return root


def test_the_keys_say_what_the_values_are(trial: Path, tmp_path: Path) -> None:
    path = tmp_path / "case.npz"
    record(str(trial), "loss|gradient|w|s$", "10:31", str(path))
    with np.load(path, allow_pickle=False) as case:
        assert [key for key in case.files if "worker_1" not in key][:9] == [
            "values/worker_0/TRAIN/10/loss",
            "values/worker_0/TRAIN/10/gradient/a/b",
            "reductions/worker_0/TRAIN/10/abs_mean/w",
            "shapes/worker_0/TRAIN/10/s",
            "values/worker_0/TRAIN/20/loss",
            "values/worker_0/TRAIN/20/gradient/a/b",
            "reductions/worker_0/TRAIN/20/abs_mean/w",
            "shapes/worker_0/TRAIN/20/s",
            "values/worker_0/EVAL/30/loss",
        ]
        assert case["values/worker_1/TRAIN/20/loss"].tolist() == [40.0]
        assert case["values/worker_1/TRAIN/20/gradient/a/b"].dtype == np.float32
        assert case["mode_steps/worker_0/EVAL"].tolist() == [[30, 3]]
        assert case["collections/losses"].tolist() == ["loss"]
        assert case["collections/mine"].tolist() == ["gradient/a/b"]


def test_a_case_becomes_the_same_trial(trial: Path, tmp_path: Path) -> None:
    path = tmp_path / "case.npz"
    record(str(trial), ".", ":", str(path))
    load_npz(path).write_trial(tmp_path / "copy", {})
    original, copy = (create_trial(root) for root in (trial, tmp_path / "copy"))
    assert copy.steps() == original.steps() == [0, 10, 20, 30, 40, 50]
    assert copy.modes_at(30) == original.modes_at(30) == {ModeKeys.EVAL: 3}
    assert sorted(copy.workers()) == ["worker_0", "worker_1"]
    assert sorted(copy.tensor_names()) == sorted(original.tensor_names())
    assert copy.tensor_names(collection="mine") == ["gradient/a/b"]
    assert copy.tensor("w").reduction_value(20, "mean", abs=True) == 0.5
    assert copy.tensor("s").shape(20) == (3, 4)
    assert copy.loaded_all_steps == original.loaded_all_steps


def test_record_then_update_then_test_passes(
    trial: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record(str(trial), "^gradient/", "0:", str(tmp_path / "case.npz"))
    table = tmp_path / "zeros.rules.yaml"
    table.write_text(
        "rule: AllZero\nparameters: {tensor_regex: gradient}\ncases:\n  - npz: case.npz\n"
    )
    assert run_rule_tests([str(table)], None, Isolation.NONE, update=True) == 0
    assert "status: IssuesFound, step: 0" in table.read_text()
    assert run_rule_tests([str(table)], None, Isolation.NONE, update=False) == 0
    assert "1 case: 1 passed, 0 failed.\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("tensors", "steps", "error", "sentence"),
    [
        ("none", ":", TrialError, "No tensor of trial .* matches 'none' at steps ':'"),
        ("loss", "70:", TrialError, "No tensor"),
        ("(", ":", UsageError, "--tensors must be a regular expression, got '\\('"),
        ("loss", "3", UsageError, "--steps must be A:B, .*, got '3'"),
    ],
)
def test_what_cannot_be_recorded_is_named(
    trial: Path, tmp_path: Path, tensors: str, steps: str, error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        record(str(trial), tensors, steps, str(tmp_path / "case.npz"))
    assert not (tmp_path / "case.npz").exists()


def test_an_existing_file_is_kept(trial: Path, tmp_path: Path) -> None:
    path = tmp_path / "case.npz"
    path.write_text("mine")
    with pytest.raises(OutputError, match="exists"):
        record(str(trial), "loss", ":", str(path))
    assert path.read_text() == "mine"


def test_another_file_is_no_case(tmp_path: Path) -> None:
    path = tmp_path / "case.npz"
    for content, sentence in (
        (None, "cannot be read: No such file"),
        (b"text", "is not an .npz file without pickles"),
    ):
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(CaseError, match=sentence):
            load_npz(path)
    for key in ("loss", "values/worker_0/TEST/1/x", "values/worker_0/TRAIN/one/x", "shapes/a"):
        np.savez(path, **{key: np.ones(1)})
        with pytest.raises(CaseError, match=f"has the key '{key}'. A key is values/WORKER/MODE"):
            load_npz(path)
    np.savez(path, **{"values/worker_0/TRAIN/1/x": np.array([None], object)})
    with pytest.raises(CaseError, match="without pickles"):
        load_npz(path)


@pytest.mark.parametrize(
    ("count", "saved", "sentence"),
    [
        (1 << 20, 1 << 20, "it has [0-9]+ bytes, more than the 100000 that may be read at once"),
        (1 << 50, 1, "is not an .npz file without pickles"),
    ],
)
def test_case_that_does_not_fit_into_memory_is_named_and_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, saved: int, sentence: str
) -> None:
    monkeypatch.setenv("RULE_RUNNER_METADATA_BYTES", "100000")
    header = io.BytesIO()
    fields = {"descr": "|u1", "fortran_order": False, "shape": (count,)}
    np.lib.format.write_array_header_1_0(header, fields)
    with zipfile.ZipFile(tmp_path / "case.npz", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("values/worker_0/TRAIN/1/x.npy", header.getvalue() + bytes(saved))
    with pytest.raises(CaseError, match=sentence):
        load_npz(tmp_path / "case.npz")
