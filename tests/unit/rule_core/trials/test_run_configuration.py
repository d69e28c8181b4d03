"""run_configuration: the settings of a run, from the files beside its log."""

import json
from pathlib import Path

import pytest
import wandb_files

from rule_core.sources.options import DEFAULT
from rule_core.trials.run_configuration import run_configuration
from rule_runner.loading.trials import read_trial

LOG = "step,loss\n0,2\n1,1\n"


def configuration(folder: Path) -> dict[str, str]:
    return run_configuration(read_trial(str(folder), DEFAULT)[0])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config.yaml", "lr: 1e-3\nmodel:\n  layers: 2\n  bias: true\n"),
        ("config.json", '{"lr": 0.001, "model": {"layers": 2, "bias": true}}'),
        ("hparams.yaml", "lr: 0.001\nmodel: {layers: 2.0, bias: true}\n"),
        ("args.json", '{"lr": "0.001", "model": {"layers": 2, "bias": true}}'),
        (".hydra/config.yaml", "lr: .001\nmodel: {layers: 2, bias: true}\n"),
        (
            "files/config.yaml",
            (
                "_wandb:\n  value:\n    t: 1\nlr:\n  desc: null\n  value: 0.001\n"
                "model:\n  value:\n    layers: 2\n    bias: true\n"
            ),
        ),
    ],
)
def test_files_have_one_form(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / "metrics.csv").write_text(LOG)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(content)
    found = {key.replace("/value/", "/"): text for key, text in configuration(tmp_path).items()}
    assert found == {"lr": "0.001", "model/layers": "2", "model/bias": "true"}


def test_settings_in_rows_and_parameters_of_mlflow(tmp_path: Path) -> None:
    rows = [{"config": {"lr": 0.1, "seed": 3}, "step": 0, "loss": 2.0}, {"step": 1, "loss": 1.0}]
    (tmp_path / "log.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (tmp_path / "params").mkdir()
    (tmp_path / "params" / "depth").write_text("3")
    assert configuration(tmp_path) == {"lr": "0.1", "depth": "3"}


def test_settings_in_a_log_of_wandb_without_secrets(tmp_path: Path) -> None:
    rows = [(step, {"loss": 1.0}) for step in range(3)]
    (tmp_path / "run-abc.wandb").write_bytes(wandb_files.run(rows))
    assert configuration(tmp_path) == {"batch_size": "32"}


def test_what_differs_from_run_to_run_and_secrets_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "metrics.csv").write_text(LOG)
    settings = {"lr": 1, "seed": 2, "data_seed": 3, "output_dir": "x", "run_name": "a", "host": "h"}
    settings |= {
        "api_key": "s",
        "hf_token": "s",
        "text": "x" * 500,
        "timestamp": 1,
        "wandb/id": "a",
    }
    (tmp_path / "config.json").write_text(json.dumps(settings))
    assert configuration(tmp_path) == {"lr": "1"}


@pytest.mark.parametrize("content", ["", "[", "- 1\n- 2\n", "\x00\xff", "a: &x [*x]\n", "[" * 9999])
def test_broken_files_have_no_settings(tmp_path: Path, content: str) -> None:
    (tmp_path / "metrics.csv").write_text(LOG)
    for name in ("config.yaml", "args.json"):
        (tmp_path / name).write_text(content)
    assert configuration(tmp_path) == {}
