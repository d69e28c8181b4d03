"""Rules judge checkpoints as they judge the same weights that a hook saved."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import s3_objects
from judging import Judged, judge, save
from safetensors_files import write, write_sharded

import smdebug.rules
from rule_core.reading import saved_tensors
from rule_core.storage.s3.store import S3Store
from smdebug.core.modes import ModeKeys
from smdebug.trials import create_trial

RANDOM = np.random.default_rng(0)
STEPS = [0, 100, 200, 300, 400]
RULES: dict[str, dict[str, Any]] = {
    "AllZero": {"collection_names": "weights"},
    "ExplodingTensor": {"collection_names": "weights"},
    "PoorWeightInitialization": {"activation_inputs_regex": ".*weight"},
    "TensorVariance": {"collection_names": "weights", "max_threshold": 1000.0},
    "UnchangedTensor": {"collection_names": "weights"},
    "WeightUpdateRatio": {},
}


def weights() -> dict[int, dict[str, Any]]:
    """Return the weights of a model at some steps, with much that rules find."""
    frozen = RANDOM.standard_normal((40, 50)).astype(np.float32)
    by_step = {}
    for place, step in enumerate(STEPS):
        trained = frozen * (1 + place * 10.0 ** (place - 2))
        broken = frozen.copy()
        broken[3, place:2] = np.nan
        by_step[step] = {
            "frozen.weight": frozen,
            "trained.weight": trained.astype(np.float16),
            "trained.bias": trained[0],
            "zero.weight": frozen * (place < 3),
            "broken.weight": broken,
            "wild.weight": frozen * np.float32(100) ** place,
        }
    return by_step


def without_seconds(judged: Judged) -> Any:
    """Return what a rule said, as text."""
    return judged.met, judged.skipped, [str(finding) for finding in judged.findings]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("large", [1 << 24, 1], ids=["whole", "in pieces"])
def test_verdicts_are_those_over_saved_tensors(
    rule: str, large: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saved_tensors, "LARGE", large)
    by_step = weights()
    save(tmp_path / "saved", by_step, modes=dict.fromkeys(STEPS, ModeKeys.TRAIN))
    for step, tensors in by_step.items():
        names = sorted(tensors)
        halves = ({name: tensors[name] for name in part} for part in (names[:3], names[3:]))
        write_sharded(tmp_path / "run" / f"checkpoint-{step}", *halves)
    rule_class = getattr(smdebug.rules, rule, None) or _built_in(rule)
    expected = judge(rule_class, tmp_path / "saved", **RULES[rule])
    assert without_seconds(judge(rule_class, tmp_path / "run", **RULES[rule])) == without_seconds(
        expected
    )
    assert expected.met or rule == "PoorWeightInitialization"


def _built_in(rule: str) -> Any:
    import builtin_rules

    return getattr(builtin_rules, rule)


def test_checkpoints_in_s3_are_read_by_ranges(
    aws_endpoint: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(saved_tensors, "LARGE", 1 << 16)
    array = RANDOM.standard_normal(1 << 16).astype(np.float32)
    s3_objects.make_bucket(aws_endpoint)
    for step in (10, 20):
        path = write(tmp_path / "x.safetensors", {"b.bias": array[:9], "w.weight": array * step})
        s3_objects.put(
            aws_endpoint, "run/", {f"checkpoint-{step}/model.safetensors": path.read_bytes()}
        )
    ranges = []
    read = S3Store.fetch

    def counted(store: S3Store, key: str, byte_range: Any = None, **more: Any) -> Any:
        ranges.append(byte_range)
        return read(store, key, byte_range, **more)

    monkeypatch.setattr(S3Store, "fetch", counted)
    trial = create_trial("s3://bucket/run", timeout=1)
    tensor = trial.tensor("w.weight")
    assert tensor.steps(show_incomplete_steps=True) == [10, 20]
    assert trial.tensor("b.bias").value(10).tolist() == array[:9].tolist()
    for step in (10, 20):
        assert tensor.reduction_value(step, "max") == array.max() * np.float32(step)
    assert None not in ranges
    assert sum(stop - start for start, stop in ranges) < 2.5 * 2 * array.nbytes
