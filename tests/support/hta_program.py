"""Prints what Holistic Trace Analysis says of folders of traces, as JSON; for its own Python.

Usage: ``PYTHON hta_program.py FOLDER...`` with a Python that has ``HolisticTraceAnalysis==0.5.0``
and ``pandas<3``. By folder and rank:

- ``idle``, ``compute``, ``span``: of the temporal breakdown, in microseconds;
- ``host_wait``: of the idle time breakdown, in microseconds by stream;
- ``overlap``: of communication and computation, in percent; null without communication;
- ``kernels``: of the kernel breakdown, the microseconds of each kernel's name.

``steps`` are the numbers of the steps. ``ranks`` is empty if no GPU is in the traces: all of these
breakdowns are of kernels. ``straggler`` is the rank that is late most often; null where nothing is
compared. That analysis knows NCCL's kernels by the beginning ``ncclKernel`` only, which they had
before NCCL 2.19, so it sees copies with the older names.
"""

import importlib
import json
import logging
import math
import os
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any


def analysis_of(paths: dict[int, Path]) -> Any:
    """Open the traces of ranks."""
    files = {rank: str(path) for rank, path in paths.items()}
    folder = str(next(iter(paths.values())).parent)
    trace_analysis = importlib.import_module("hta.trace_analysis").TraceAnalysis
    return trace_analysis(trace_files=files, trace_dir=folder, include_last_profiler_step=True)


def ranks_of(folder: Path) -> dict[int, Path]:
    """Return the traces of a folder by rank."""
    paths: dict[int, Path] = {}
    for path in sorted(folder.glob("*.json")):
        document = json.loads(path.read_text())
        paths[document.get("distributedInfo", {}).get("rank", 0)] = path
    return paths


def straggler(paths: dict[int, Path]) -> int | None:
    """Return the rank that is late most often."""
    if len(paths) < 2:
        return None
    with tempfile.TemporaryDirectory() as temporary:
        copies = {}
        for rank, path in paths.items():
            copies[rank] = Path(temporary, path.name)
            text = path.read_text().replace("ncclDevKernel", "ncclKernel")
            copies[rank].write_text(text)
        ranks = analysis_of(copies).get_potential_stragglers(num_candidates=1)
    return int(ranks[0]) if ranks else None


def numbers(analysis: Any, ranks: list[int]) -> dict[str, Any]:
    """Return the numbers of each rank."""
    try:
        temporal = analysis.get_temporal_breakdown(visualize=False).set_index("rank")
    except IndexError:  # its answer to a trace without kernels
        return {}
    overlap = analysis.get_comm_comp_overlap(visualize=False).set_index("rank")
    _, kernels = analysis.get_gpu_kernel_breakdown(visualize=False)
    by_rank: dict[str, Any] = {}
    for rank in ranks:
        idle, _ = analysis.get_idle_time_breakdown(ranks=[rank], visualize=False)
        waits = idle[idle["idle_category"] == "host_wait"]
        percent = float(overlap.loc[rank, "comp_comm_overlap_pctg"])
        of_rank = kernels[kernels["rank"] == rank]
        by_rank[str(rank)] = {
            "idle": round(float(temporal.loc[rank, "idle_time(us)"]), 3),
            "compute": round(float(temporal.loc[rank, "compute_time(us)"]), 3),
            "span": round(float(temporal.loc[rank, "kernel_time(us)"]), 3),
            "host_wait": {
                str(int(stream)): round(float(time), 3)
                for stream, time in zip(waits["stream"], waits["idle_time"], strict=True)
            },
            "overlap": None if math.isnan(percent) else percent,
            "kernels": {
                str(name).partition("(")[0]: round(float(time), 3)
                for name, time in zip(of_rank["name"], of_rank["sum (us)"], strict=True)
            },
        }
    return by_rank


def main(folders: list[str]) -> None:
    """Print the numbers of each folder."""
    os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    result = {}
    for folder in map(Path, folders):
        paths = ranks_of(folder)
        analysis = analysis_of(paths)
        by_rank = numbers(analysis, sorted(paths))
        result[folder.name] = {
            "steps": [int(step) for step in analysis.get_profiler_steps()],
            "ranks": by_rank,
            "straggler": straggler(paths) if by_rank else None,
        }
    print(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1:])
