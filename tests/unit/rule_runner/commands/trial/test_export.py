"""trial export: what is written is read back alike."""

import csv
import json
import math
from pathlib import Path

import mlflow_runs
import numpy as np
import pytest
from mlflow_runs import ROWS, Logged, run_files
from source_content import content

from rule_core.modes import ModeKeys
from rule_core.reading.native_index import NativeIndex
from rule_core.trials.create_trial import create_trial
from rule_core.trials.open_index import open_index
from rule_runner.api import evaluate
from rule_runner.commands.trial.export import FORMATS, export_trial
from rule_runner.debugger import Rule, rule_configs
from rule_runner.errors import OutputError, TrialError, UsageError
from smdebug.core.writer import TrialWriter

NUMBERS = ("tensorboard", "csv", "jsonl")


def read(path: str) -> NativeIndex:
    index = open_index(path)
    index.refresh(whole=True)
    index.finish()
    return index


def saved_content(path: str) -> list[tuple[int, str, str, str]]:
    return content(read(path))  # type: ignore[arg-type] # any index will do


@pytest.fixture
def run(tmp_path: Path) -> str:
    """Return a finished run of MLflow, whose numbers fit into 32 bits."""
    for key, data in run_files(ROWS, status=3).items():
        path = tmp_path / "run" / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(
            data.replace(b"0.3333333333333333", b"0.375")
            .replace(b"0.2 ", b"0.25 ")
            .replace(b"0.16666666666666666", b"0.125")
        )
    return str(tmp_path / "run")


@pytest.fixture
def native(tmp_path: Path) -> str:
    """Return a trial of saved tensors with two modes and all kinds of values."""
    path = str(tmp_path / "native")
    with TrialWriter(path, collections={"losses": "loss", "weights": "weight"}) as trial:
        for step in range(6):
            trial.step(
                10 * step,
                {
                    "loss": math.nan if step == 3 else 0.5**step,
                    "fc.weight": np.full((2, 3), step, np.float32),
                    "half": np.arange(4, dtype=np.float16),
                    "note": "text",
                    "complex": np.array([1j]),
                },
                mode=ModeKeys.EVAL if step == 5 else ModeKeys.TRAIN,
                mode_step=step,
                reductions={"gradient": {("mean", True): 0.25, ("max", False): 1.0}},
                shapes={"image": (3, 4)},
            )
    return path


@pytest.mark.parametrize("form", NUMBERS)
def test_numbers_are_read_back_alike(run: str, tmp_path: Path, form: str) -> None:
    output = tmp_path / "out" / f"log.{form}"
    export_trial(run, form, str(output))
    kind = {"tensorboard": "tensorboard", "csv": "csv", "jsonl": "jsonl"}[form]
    assert saved_content(f"{kind}:{output}") == saved_content(run)


def test_a_step_of_several_modes_is_written_to_a_trial(run: str, tmp_path: Path) -> None:
    output = str(tmp_path / "again")
    export_trial(run, "smdebug", output)
    assert saved_content(output) == saved_content(run)


@pytest.mark.parametrize("form", NUMBERS)
def test_verdicts_are_alike(run: str, tmp_path: Path, form: str) -> None:
    output = tmp_path / f"log.{form}"
    export_trial(run, form, str(output))
    literal = {"literal": "true"}  # a single infinity is enough
    rules = [Rule.sagemaker(rule_configs.exploding_tensor(), rule_parameters=literal)]
    results = [
        evaluate(path, rules, wait=False, report=False) for path in (run, f"{form}:{output}")
    ]
    first, second = [result.rules[0] for result in results]
    assert first.status == second.status == "IssuesFound"
    assert first.step == second.step == 3


def test_each_mode_has_a_name_of_its_own(native: str, tmp_path: Path) -> None:
    output = tmp_path / "log.jsonl"
    export_trial(native, "jsonl", str(output))
    lines = [json.loads(line) for line in output.read_text().splitlines()]
    assert lines[0] == {"step": 0, "loss": 1.0}
    assert math.isnan(lines[3]["loss"])
    assert lines[5] == {"step": 50, "eval/loss": 0.5**5}


def test_a_table_has_the_union_of_the_columns(run: str, tmp_path: Path) -> None:
    output = tmp_path / "log.csv"
    export_trial(run, "csv", str(output))
    rows = list(csv.DictReader(output.read_text().splitlines()))
    assert list(rows[0]) == ["step", "grad_norm", "train/loss", "val_loss"]
    assert [row["val_loss"] for row in rows[:4]] == ["", "2.0", "", "2.0"]
    assert rows[6]["grad_norm"] == "inf"


def test_what_is_left_out_is_said(
    native: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    export_trial(native, "csv", str(tmp_path / "log.csv"))
    shown = capsys.readouterr().out
    assert (
        "Left out 12 values of 'fc.weight' and 1 others: it has several elements; export it to "
        "safetensors." in shown
    )
    assert "Left out 12 values of 'complex' and 1 others: it is text, or a complex number." in shown
    assert "Left out 12 values of 'gradient' and 1 others: its value was not saved" in shown
    assert "Exported 6 of 6 steps" in shown
    export_trial(native, "safetensors", str(tmp_path / "checkpoints"))
    shown = capsys.readouterr().out
    assert "Left out 6 values of 'loss': it is a single number; export it to csv" in shown
    assert "safetensors has no type for text" in shown
    assert "safetensors has no type for complex128" in shown


def test_checkpoints_hold_the_tensors(native: str, tmp_path: Path) -> None:
    output = tmp_path / "checkpoints"
    export_trial(native, "safetensors", str(output))
    index = read(str(output))
    assert list(index.steps) == [0, 10, 20, 30, 40, 50]
    part = next(iter(index.files[20]))
    weight = index.tensors.value("fc.weight", 20, part)
    assert weight.dtype == np.float32
    assert weight.tolist() == [[2.0] * 3] * 2
    assert index.tensors.value("half", 20, part).dtype == np.float16


def test_safetensors_reads_the_checkpoints(native: str, tmp_path: Path) -> None:
    package = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed.")
    export_trial(native, "safetensors", str(tmp_path / "out"))
    tensors = package.load_file(tmp_path / "out" / "checkpoint-30" / "model.safetensors")
    assert tensors["fc.weight"].tolist() == [[3.0] * 3] * 2
    assert tensors["half"].tolist() == [0, 1, 2, 3]


def test_pandas_reads_the_table(run: str, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed.")
    export_trial(run, "csv", str(tmp_path / "log.csv"))
    table = pandas.read_csv(tmp_path / "log.csv")
    assert table["train/loss"].dropna().tolist() == [1.0, 0.5, 0.375, 0.25, 0.25, 0.125]


def test_tensorboard_reads_the_scalars(run: str, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="tensorboard is not installed.")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    export_trial(run, "tensorboard", str(tmp_path / "out"))
    scalars = EventAccumulator(str(tmp_path / "out")).Reload().Scalars("train/loss")
    assert [(point.step, point.value) for point in scalars][:3] == [(0, 1.0), (1, 0.5), (2, 0.375)]
    assert scalars[0].wall_time == mlflow_runs.STARTED / 1000


def test_a_trial_is_written_again(native: str, tmp_path: Path) -> None:
    output = str(tmp_path / "again")
    export_trial(native, "smdebug", output)
    before, after = create_trial(native), create_trial(output)
    assert after.steps() == before.steps()
    assert after.steps(ModeKeys.EVAL) == [5]
    assert after.tensor_names() == before.tensor_names()
    assert after.tensor_names(collection="losses") == ["loss"]
    assert after.tensor("gradient").reduction_value(20, "mean", abs=True) == 0.25
    assert after.tensor("image").shape(20) == (3, 4)
    assert after.tensor("note").value(20)[0] == "text"
    wall_times = [
        index.tensors.wall_time(20, "worker_0", index.files[20]["worker_0"].entries["loss"].raw)
        for index in (before.index, after.index)
    ]  # type: ignore[arg-type]
    assert wall_times[0] == wall_times[1]


def test_workers_keep_apart(tmp_path: Path) -> None:
    for rank in range(2):
        with TrialWriter(
            str(tmp_path / "native"), worker=f"worker_{rank}", num_workers=2, end_job=rank == 1
        ) as trial:
            trial.step(0, {"loss": float(rank)})
    export_trial(str(tmp_path / "native"), "jsonl", str(tmp_path / "log"))
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert lines == [{"step": 0, "loss": 0.0}, {"step": 0, "loss/worker_1": 1.0}]
    export_trial(str(tmp_path / "native"), "smdebug", str(tmp_path / "again"))
    assert create_trial(str(tmp_path / "again")).workers() == ["worker_0", "worker_1"]


def resumed(tmp_path: Path) -> str:
    rows = [Logged("loss", time, 0.5, step) for time, step in enumerate([1, 2, 3, 2, 3])]
    for key, data in run_files(rows, status=3).items():
        path = tmp_path / "run" / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return str(tmp_path / "run")


def test_segments_are_kept_or_refused(tmp_path: Path) -> None:
    path = resumed(tmp_path)
    export_trial(path, "jsonl", str(tmp_path / "log.jsonl"))
    assert saved_content(f"jsonl:{tmp_path}/log.jsonl") == saved_content(path)
    with pytest.raises(UsageError, match="steps go back"):
        export_trial(path, "smdebug", str(tmp_path / "again"))
    assert not (tmp_path / "again").exists()


def test_numbers_beyond_32_bits_are_left_out_of_tensorboard(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with TrialWriter(str(tmp_path / "native")) as trial:
        trial.step(0, {"loss": 1e300, "lr": 0.5})
    export_trial(str(tmp_path / "native"), "tensorboard", str(tmp_path / "out"))
    assert "Left out 1 value of 'loss': it is beyond the range" in capsys.readouterr().out


@pytest.mark.parametrize("form", FORMATS)
def test_an_output_is_never_replaced(native: str, tmp_path: Path, form: str) -> None:
    (tmp_path / "file").write_text("mine")
    for output in ("file", "native"):
        with pytest.raises(OutputError, match="exists"):
            export_trial(native, form, str(tmp_path / output))
    assert (tmp_path / "file").read_text() == "mine"
    export_trial(native, form, str(tmp_path / "new"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "native", "new"]


def test_wrong_paths_have_reasons(run: str, tmp_path: Path) -> None:
    with pytest.raises(TrialError):
        export_trial(str(tmp_path / "absent"), "csv", str(tmp_path / "out"))
    with pytest.raises(TrialError, match="can be written as safetensors"):
        export_trial(run, "safetensors", str(tmp_path / "out"))
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OutputError, match="cannot be written"):
        export_trial(run, "csv", str(tmp_path / "file" / "below"))
    assert not (tmp_path / "out").exists()
