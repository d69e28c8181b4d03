"""Make the small trials of ``tests/data/trials`` with smdebug 1.0.34, and record its answers.

Run it with the Python of a virtual environment of its own::

    python3.11 -m venv /tmp/old-smdebug
    /tmp/old-smdebug/bin/pip install smdebug==1.0.34 "numpy<2" requests packaging pandas psutil
    /tmp/old-smdebug/bin/python tests/system/old_library/make_trials.py

It replaces the folders that it makes.
"""

import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BASE_ENV = {
    "SMDEBUG_LOG_LEVEL": "off",
    "SMDEBUG_TRAINING_END_DELAY_REFRESH": "0",
    "SMDEBUG_MISSING_EVENT_FILE_RETRY_LIMIT": "1",
}
os.environ.update(BASE_ENV)  # the old library reads it when it is imported
sys.path.insert(0, str(Path(__file__).parents[2] / "support"))

import answers
import numpy as np
from questions import EVAL, Query, reduction_queries, tensor_queries, trial_queries, uneven_queries
from smdebug.profiler.profiler_config_parser import ProfilerConfigParser

import smdebug
from smdebug.core.collection_manager import CollectionManager
from smdebug.core.hook import CallbackHook
from smdebug.core.modes import ModeKeys
from smdebug.core.reduction_config import ReductionConfig
from smdebug.core.reductions import get_numpy_reduction
from smdebug.core.save_config import SaveConfig
from smdebug.core.writer import FileWriter
from smdebug.trials import create_trial

DATA = Path(__file__).parents[2] / "data" / "trials"
END_MARK = "training_job_end.ts"


class NumpyHook(CallbackHook):
    """The old library's own hook, for tensors that are numpy arrays already."""

    def __init__(self, out_dir: Path, **kwargs: Any) -> None:
        super().__init__(
            collection_manager=CollectionManager(),
            default_include_collections=["losses"],
            profiler_config_parser=ProfilerConfigParser(),
            data_type_name="ndarray",
            out_dir=str(out_dir),
            **kwargs,
        )
        self.worker = self._get_worker_name()

    def _get_worker_name(self) -> str:
        return "worker_0"

    def _get_num_workers(self) -> int:
        return 1

    def _is_not_supported(self) -> bool:
        return False

    def _get_default_collections(self) -> list[str]:
        return ["losses", "all", "default"]

    @staticmethod
    def _get_reduction_of_data(name: str, value: np.ndarray, _tensor: str, absolute: bool) -> Any:
        return get_numpy_reduction(name, value, absolute)

    @staticmethod
    def _make_numpy_array(value: Any) -> np.ndarray:
        return np.asarray(value)

    def begin_step(self, mode: ModeKeys) -> None:
        """Close the step before, and open the next one."""
        self.set_mode(mode)
        if self.writer is not None:
            self._close_writers()
        if not self.prepared_collections:
            self._prepare_collections()
        self._increment_step()
        if self._get_collections_to_save_for_step():
            self._initialize_writers()
        if self.last_saved_step is not None and not self.exported_collections:
            self.export_collections()
            self.exported_collections = True

    def save(self, name: str, value: np.ndarray) -> None:
        """Save what the collections of a tensor ask for."""
        if self._get_collections_to_save_for_step():
            self._save_for_tensor(name, value)
            self.last_saved_step = self.step


def made_by_hook(root: Path) -> Iterator[Query]:
    """One worker, three modes, reductions, shapes, scalars, a custom collection; ended."""
    rng = np.random.default_rng(5)
    hook = NumpyHook(root, save_config=SaveConfig(save_interval=2))
    collections = {
        "weights": ("^fc/weight", None),
        "gradients": (
            "^gradient/",
            ReductionConfig(reductions=["min", "max", "mean"], abs_norms=["l1", "l2"]),
        ),
        "shapes": ("^conv/", ReductionConfig(save_shape=True)),
        "both": (
            "^both/",
            ReductionConfig(
                reductions=["std", "variance", "sum", "prod"],
                abs_reductions=["mean", "min", "max"],
                norms=["l1", "l2"],
                save_raw_tensor=True,
            ),
        ),
    }
    for name, (regex, config) in collections.items():
        hook.get_collection(name).include(regex)
        hook.get_collection(name).reduction_config = config
        hook.include_collections.append(name)
    hook.get_collection("losses").include("loss")
    modes = [ModeKeys.TRAIN] * 6 + [ModeKeys.EVAL] * 4 + [ModeKeys.TRAIN, ModeKeys.PREDICT]
    for number, mode in enumerate(modes):
        hook.begin_step(mode)
        hook.save("loss", np.float32(1 / (number + 1)))
        hook.save("fc/weight", rng.normal(size=(3, 4)).astype(np.float32))
        hook.save("gradient/fc/weight", rng.normal(size=(3, 4)).astype(np.float32))
        hook.save("conv/kernel", rng.normal(size=(3, 3, 2, 4)).astype(np.float32))
        hook.save("both/vector", np.arange(-3, 4, dtype=np.float64) * number)
        hook.save_scalar("learning_rate", 0.1 / (number + 1))
    hook.close()
    yield from trial_queries(steps=(0, 2, 3, 6, 8, 99), mode_steps=(0, 2, 5))
    for name in ("loss", "fc/weight", "gradient/fc/weight", "conv/kernel", "both/vector"):
        yield from tensor_queries(name, steps=(0, 2, 6, 99), mode_steps=(0, 2, 3))
    for name in ("gradient/fc/weight", "both/vector"):
        yield from reduction_queries(name, steps=(2, 6))
    yield from tensor_queries("scalar/learning_rate", steps=(0, 2), mode_steps=(0,))


def made_of_every_type(root: Path) -> Iterator[Query]:
    """Every data type and rank that the old library writes, in GLOBAL mode; ended."""
    rng = np.random.default_rng(6)
    values: dict[str, Any] = {
        f"{dtype}/{'x'.join(map(str, shape)) or 'scalar'}": np.asarray(
            rng.integers(0, 2, size=shape) if dtype == "bool" else rng.normal(0, 60, size=shape)
        ).astype(dtype)
        for dtype in (
            *("float16", "float32", "float64", "bool", "complex64", "complex128"),
            *("int8", "int16", "int32", "int64"),
        )
        for shape in ((), (3,), (2, 3), (2, 1, 2), (1, 2, 2, 2))
    }
    values |= {
        dtype: np.array([0, 1, np.iinfo(dtype).max], dtype)
        for dtype in ("uint8", "uint16", "uint32", "uint64")
    }
    values |= {
        "special": np.array([np.nan, np.inf, -np.inf, -0.0], np.float32),
        "python/float": 2.5,
        "python/int": -7,
        "python/bool": True,
        "python/str": "one",
        "numpy/float32": np.float32(0.1),
        "strings": np.array(["", "a", "ünïcode ✓", "line\nbreak"]),
        "objects": np.array(["x", "longer"], dtype=object),
        "list": [1, 2, 3],
    }
    with_collections(root, {"default": "never", "floats": "^float"}, ["worker_0"])
    for step in (0, 1):
        write_step(root, step, "worker_0", values)
    (root / END_MARK).touch()
    yield from trial_queries(steps=(0, 1, 2), mode_steps=(0,))
    for name in values:
        for call in ("value", "shape", "workers"):
            yield {"on": "tensor", "name": name, "call": call, "args": [1]}
    for name in ("float16/2x3", "float32/2x1x2", "int8/3", "int16/3", "bool/3", "uint8", "special"):
        yield from reduction_queries(name, steps=(0,))


def made_by_three_workers(root: Path) -> Iterator[Query]:
    """Three workers, uneven, two modes; ended."""
    write_uneven(root)
    (root / END_MARK).touch()
    yield from uneven_queries()


def made_by_three_running_workers(root: Path) -> Iterator[Query]:
    """The same three workers, still running."""
    write_uneven(root)
    yield from uneven_queries()
    for args in ([[0, 3]], [[5]], [[2], EVAL]):
        yield {"on": "trial", "call": "wait_for_steps", "args": args}


def made_by_a_running_job(root: Path) -> Iterator[Query]:
    """One worker on odd steps, drafts of the step in hand, a claim; not ended."""
    with_collections(root, {"losses": "loss"}, ["worker_0"])
    for step in (1, 3, 5):
        write_step(root, step, "worker_0", {"loss": np.float32(step), "w": np.full((2, 2), step)})
    for key in ("index/000000000/000000000007_worker_0.json", "events/000000000007/x.tfevents"):
        draft = root / f"{key}.tmp"
        draft.parent.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(b'{"meta": {"mode": "GLO')
    (root / "claim.smd").touch()
    yield from trial_queries(steps=(0, 1, 2, 5, 6, 7), mode_steps=(0,))
    yield from tensor_queries("w", steps=(0, 1, 2, 5, 7), mode_steps=(1,))
    for steps in ([1, 5], [2], [7]):
        yield {"on": "trial", "call": "wait_for_steps", "args": [steps]}


def made_of_sparse_steps(root: Path) -> Iterator[Query]:
    """Steps far apart, in several folders of the index; ended."""
    steps = (0, 999, 1000, 123456, 2_000_000_000)
    with_collections(root, {"losses": "loss"}, ["worker_0"])
    for number, step in enumerate(steps):
        values = {"loss": np.float64(1 / (number + 1))}
        write_step(root, step, "worker_0", values, ModeKeys.TRAIN, number)
    (root / END_MARK).touch()
    yield from trial_queries(steps=(*steps, 1, 3_000_000_000), mode_steps=(0, 3, 4, 5))
    yield from tensor_queries("loss", steps=(*steps, 1), mode_steps=(0, 4, 5))


def write_step(
    root: Path,
    step: int,
    worker: str,
    values: dict[str, Any],
    mode: ModeKeys = ModeKeys.GLOBAL,
    mode_step: int | None = None,
) -> None:
    """Write one step with the old library's writer."""
    with FileWriter(trial_dir=str(root), step=step, worker=worker) as writer:
        for name, value in values.items():
            writer.write_tensor(value, name, mode=mode, mode_step=mode_step, timestamp=1.6e9 + step)


def with_collections(root: Path, patterns: dict[str, str], workers: list[str]) -> None:
    """Write a collections file for each worker."""
    manager = CollectionManager()
    for name, pattern in patterns.items():
        manager.get(name).include(pattern)
    manager.set_num_workers(len(workers))
    for worker in workers:
        manager.export(str(root), f"{worker}_collections.json")


UNEVEN = {0: (0, 1, 2), 1: (0, 1, 2), 2: (0, 2), 3: (0, 1, 2), 4: (1,), 5: (0, 1)}


def write_uneven(root: Path) -> None:
    """Write global steps 0 to 3 as TRAIN, 4 and 5 as EVAL steps 0 and 1, not by all workers."""
    workers = [f"worker_{rank}" for rank in range(3)]
    with_collections(root, {"losses": "loss", "weights": "weight"}, workers)
    for step, ranks in UNEVEN.items():
        mode = ModeKeys.TRAIN if step < 4 else ModeKeys.EVAL
        for rank in ranks:
            values = {"loss": np.float32(step + rank / 10)}
            if rank != 1:
                values["weight"] = np.full((2, rank + 1), step, np.int32)
            write_step(root, step, workers[rank], values, mode, step % 4)


SAMPLES = {
    "hook": made_by_hook,
    "types": made_of_every_type,
    "workers": made_by_three_workers,
    "workers_running": made_by_three_running_workers,
    "running": made_by_a_running_job,
    "sparse": made_of_sparse_steps,
}


def make(name: str) -> None:
    """Make one trial and ask the old library about it."""
    folder = DATA / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    maker = SAMPLES[name]
    queries = list(maker(folder / "trial"))
    trial = create_trial(str(folder / "trial"))
    for query in queries:
        query["out"] = answers.ask(trial, query, dict(ModeKeys.__members__), 2.5)
    session = {"title": "main", "path": "trial", "create_result": {"ok": True}, "queries": queries}
    document = {
        "sample": name,
        "notes": (maker.__doc__ or "").strip(),
        "peer": {"smdebug": smdebug.__version__, "numpy": np.__version__},
        "base_env": BASE_ENV,
        "sessions": [session],
    }
    text = json.dumps(document, indent=None, ensure_ascii=False)
    lines = text.replace('{"on": ', '\n{"on": ')  # one question a line: small diffs
    (folder / "expected.json").write_text(lines + "\n", encoding="utf-8")


if __name__ == "__main__":
    for sample in SAMPLES:
        make(sample)
