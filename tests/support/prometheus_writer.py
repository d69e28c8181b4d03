"""Writes answers of Prometheus to query_range about dcgm-exporter and node_exporter.

The form and the labels are those that Prometheus 2.42 answered for an exporter with the text of
dcgm-exporter 3.3: one line of compact JSON, values as texts, labels sorted.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

BEGAN_S: Final = 1_700_000_000
Values = Sequence[float | str]


def gpu_series(
    metric: str,
    gpu: int,
    values: Values,
    *,
    host: str = "gpu-box",
    step_s: float = 15,
    **labels: str,
) -> dict[str, Any]:
    """Return a series of dcgm-exporter."""
    return series(
        metric,
        values,
        step_s=step_s,
        DCGM_FI_DRIVER_VERSION="535.104.05",
        Hostname=host,
        UUID=f"GPU-{host}-{gpu}",
        device=f"nvidia{gpu}",
        gpu=str(gpu),
        **{"instance": f"{host}:9400", "job": "dcgm", "modelName": "NVIDIA H100", **labels},
    )


def series(metric: str, values: Values, *, step_s: float = 15, **labels: str) -> dict[str, Any]:
    """Return a series of any exporter."""
    names: Mapping[str, str] = {"__name__": metric, **labels}
    times = (BEGAN_S + step_s * number for number in range(len(values)))
    texts = (value if isinstance(value, str) else f"{value:g}" for value in values)
    return {
        "metric": dict(sorted(names.items())),
        "values": [[time_s, text] for time_s, text in zip(times, texts, strict=True)],
    }


def write_answer(folder: Path, name: str, *found: dict[str, Any]) -> Path:
    """Write an answer, and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    answer = {"status": "success", "data": {"resultType": "matrix", "result": [*found]}}
    path.write_text(json.dumps(answer, separators=(",", ":")))
    return path


def write_node(
    folder: Path,
    use: Sequence[Values],
    *,
    host: str = "gpu-box",
    used_mib: Values | None = None,
    step_s: float = 15,
) -> Path:
    """Write one answer for each metric of a node whose GPUs are used so.

    Parameters
    ----------
    use
        The utilization of each GPU in percent.
    used_mib
        The memory in use on each of them, of 81920 MiB.
    """
    used = [20_000.0] * len(use[0]) if used_mib is None else [float(each) for each in used_mib]
    metrics: Mapping[str, Sequence[Values]] = {
        "DCGM_FI_DEV_GPU_UTIL": use,
        "DCGM_FI_DEV_FB_USED": [used] * len(use),
        "DCGM_FI_DEV_FB_FREE": [[81_920.0 - each for each in used]] * len(use),
        "DCGM_FI_DEV_POWER_USAGE": [[400.5] * len(used)] * len(use),
        "DCGM_FI_PROF_SM_ACTIVE": [[0.25] * len(used)] * len(use),
    }
    for metric, of_gpus in metrics.items():
        found = [
            gpu_series(metric, gpu, values, host=host, step_s=step_s)
            for gpu, values in enumerate(of_gpus)
        ]
        write_answer(folder, f"{host}-{metric}.json", *found)
    return folder
