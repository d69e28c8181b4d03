"""tag_run: verdicts are shown in TensorBoard and MLflow, and are not read as data."""

import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import mlflow_runs
import pytest
import s3_objects
from click.testing import CliRunner
from mlflow_runs import ROWS, RUN, add_rows, add_run, run_files

from rule_core.format.summary_encoder import scalars_record, version_record
from rule_core.sources.address import address_of
from rule_core.sources.tensorboard import VERDICTS, is_event_file
from rule_core.trials.open_index import open_index
from rule_runner.api import evaluate
from rule_runner.cli import main
from rule_runner.debugger import Rule, rule_configs
from rule_runner.results.schema import EvaluationResult

EXPLODING = "ExplodingTensor"
NOTE = "mlflow.note.content"


def judged(path: str, *, tag_run: bool = True) -> EvaluationResult:
    exploding = rule_configs.exploding_tensor()
    literal = {"literal": "true"}  # a single NaN is enough
    rules = [Rule.sagemaker(exploding, name=EXPLODING, rule_parameters=literal)]
    return evaluate(path, rules, wait=False, tag_run=tag_run, report=False)


def write(folder: Path, files: Mapping[str, bytes]) -> str:
    for key, data in files.items():
        path = folder / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return str(folder)


@pytest.fixture
def board(tmp_path: Path) -> Path:
    records = [version_record(1.0)]
    records += [scalars_record(step, 2.0, {"loss": 1 / (step + 1)}) for step in range(9)]
    records.append(scalars_record(9, 2.0, {"loss": float("nan")}))
    records.append(scalars_record(10, 2.0, {"loss": 0.5}))
    write(tmp_path / "board", {"events.out.tfevents.1.host": b"".join(records)})
    return tmp_path / "board"


def test_tensorboard_gets_a_file_that_is_not_read_again(board: Path) -> None:
    first = judged(str(board))
    files = sorted(path.name for path in board.iterdir())
    assert [name.endswith(VERDICTS) for name in files] == [False, True]
    assert [is_event_file(name) for name in files] == [True, False]  # else it is a sign of life
    second = judged(str(board))
    assert second.trial.steps == first.trial.steps
    assert second.rules[0].step == first.rules[0].step == 9
    assert sum(path.name.endswith(VERDICTS) for path in board.iterdir()) == 1
    index = open_index(str(board))
    index.refresh()
    assert list(index.names) == ["loss"]


def test_tensorboard_shows_the_verdict(board: Path) -> None:
    pytest.importorskip("tensorboard", reason="tensorboard is not installed.")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    judged(str(board))
    read = EventAccumulator(str(board)).Reload()
    (text,) = read.Tensors(f"rule_runner/{EXPLODING}")
    assert text.step == 9
    (content,) = text.tensor_proto.string_val
    assert content.startswith(b"**IssuesFound at step 9**, judged 10 of 11 steps")
    assert read.Tags()["scalars"] == ["loss"]


def test_a_run_in_a_folder_gets_tags_and_keeps_its_note(tmp_path: Path) -> None:
    note = {f"tags/{NOTE}": b"My own words.\n\n### Data\nImages."}
    run = write(tmp_path / "run", run_files(ROWS, status=3) | note)
    judged(run)
    tags = tmp_path / "run" / "tags"
    assert (tags / f"rule_runner.{EXPLODING}").read_text() == "IssuesFound at step 3"
    first = (tags / NOTE).read_text()
    assert first.startswith("My own words.\n\n### Data\nImages.\n\n### rule-runner\n")
    assert f"**{EXPLODING}: IssuesFound at step 3**" in first
    judged(run)
    assert (tags / NOTE).read_text() == first


def test_mlflow_shows_the_tags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mlflow", reason="mlflow is not installed.")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    uri = f"file:{tmp_path}/mlruns"
    command = [sys.executable, "-c", mlflow_runs.WRITER, uri]
    shown = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path)
    experiment, run = shown.stdout.split()[-2:]
    judged(f"{tmp_path}/mlruns/{experiment}/{run}")
    from mlflow.tracking import MlflowClient

    tags = MlflowClient(uri).get_run(run).data.tags
    assert tags[f"rule_runner.{EXPLODING}"] == "IssuesFound at step 2"


def test_a_run_in_s3_gets_tags(aws_endpoint: str) -> None:
    s3 = s3_objects.make_bucket(aws_endpoint)
    s3_objects.put(aws_endpoint, "mlruns/1/run/", run_files(ROWS, status=3))
    judged("s3://bucket/mlruns/1/run")
    key = f"mlruns/1/run/tags/rule_runner.{EXPLODING}"
    assert s3.get_object(Bucket="bucket", Key=key)["Body"].read() == b"IssuesFound at step 3"


def test_a_run_in_a_database_gets_tags(tmp_path: Path) -> None:
    path = tmp_path / "mlflow.db"
    add_run(path, status="FINISHED")
    add_rows(path, ROWS)
    with closing(sqlite3.connect(path)) as database:
        database.execute(
            'CREATE TABLE tags ("key" VARCHAR(250) NOT NULL, value VARCHAR(8000), '
            'run_uuid VARCHAR(32) NOT NULL, CONSTRAINT tag_pk PRIMARY KEY ("key", run_uuid))'
        )
        database.commit()
    for _ in range(2):
        judged(f"mlflow:{path}#{RUN}")
    with closing(sqlite3.connect(path)) as database:
        tags = dict(database.execute("SELECT key, value FROM tags").fetchall())
    assert tags[f"rule_runner.{EXPLODING}"] == "IssuesFound at step 3"
    assert sorted(tags) == [NOTE, f"rule_runner.{EXPLODING}"]


def test_a_run_on_a_server_gets_tags(monkeypatch: pytest.MonkeyPatch) -> None:
    with mlflow_runs.serving() as server:
        server.rows, server.status = [*ROWS], "FINISHED"
        monkeypatch.setenv("MLFLOW_TRACKING_URI", server.url)
        judged(server.page.replace("http", "mlflow:http"))
        judged(f"mlflow:{RUN}")
        assert server.tags[f"rule_runner.{EXPLODING}"] == "IssuesFound at step 3"
        assert server.tags[NOTE].count("### rule-runner") == 1


def test_nothing_is_tagged_unless_asked(board: Path) -> None:
    judged(str(board), tag_run=False)
    assert len([*board.iterdir()]) == 1


@pytest.mark.parametrize("command", ["evaluate", "check"])
def test_the_commands_have_the_option(board: Path, tmp_path: Path, command: str) -> None:
    arguments = {
        "evaluate": ["--trial", str(board), "--rule", EXPLODING, "--no-wait"],
        "check": [str(board)],
    }[command]
    output = str(tmp_path / "out")
    shown = CliRunner().invoke(main, [command, *arguments, "--tag-run", "--output", output])
    assert shown.exit_code == 0
    assert "Verdicts for TensorBoard: " in shown.stderr
    assert any(path.name.endswith(VERDICTS) for path in board.iterdir())


def test_a_failure_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    run = write(tmp_path / "run", run_files(ROWS, status=3))

    def fail(*_: object) -> None:
        msg = "disk full"
        raise OSError(msg)

    monkeypatch.setattr("rule_core.sources.mlflow.folder_run.publish", fail)
    assert judged(run).rules[0].status == "IssuesFound"
    assert "disk full" in caplog.text


def test_the_command_for_wandb_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rule_runner.commands.tag_run import tag_run

    run = write(tmp_path / "run", run_files(ROWS, status=3))
    result = judged(run, tag_run=False)
    write(tmp_path / "run", {"wandb/latest-run/run-4fz8.wandb": b""})
    monkeypatch.chdir(tmp_path)
    said = tag_run(address_of("run"), result)
    assert said[-1].startswith("For W&B, run: python -c ")
    assert "id='\"'\"'4fz8'\"'\"'" in said[-1]
    assert f"rule_runner/{EXPLODING}" in said[-1]
