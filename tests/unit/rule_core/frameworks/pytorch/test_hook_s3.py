"""A PyTorch model whose hook writes to S3: the same tensors as in a folder."""

from pathlib import Path
from typing import Any

import s3_objects
import torch_models


def trained(out_dir: Any) -> dict[int, torch_models.Arrays]:
    """Train a seeded model for three steps; return what its trial holds, by step."""
    model, hook = torch_models.net(), torch_models.hook(out_dir, save_all=True)
    hook.register_module(model)
    for step in range(3):
        model(torch_models.images(step)).sum().backward()
    trial = torch_models.opened(hook)
    return {step: torch_models.read(trial, step) for step in trial.steps()}


def test_a_model_is_watched_in_s3_as_in_a_folder(aws_endpoint: str, tmp_path: Path) -> None:
    s3_objects.make_bucket(aws_endpoint)
    found, expected = trained("s3://bucket/run"), trained(tmp_path)
    assert list(found) == list(expected) == [0, 1, 2]
    for step, values in expected.items():
        torch_models.assert_same(values, found[step])
    assert s3_objects.uploads(aws_endpoint) == []
