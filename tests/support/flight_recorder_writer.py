"""Writes dumps of torch.distributed's flight recorder, with the fields of PyTorch 2.13.

`Dump.write` writes what ``torch._C._distributed_c10d._dump_nccl_trace_json()`` returns: compact
JSON with sorted keys, whose numbers of groups are texts, and without stacks. `Dump.convert` writes
what a pickle of the watchdog becomes by the documented conversion: with stacks, and null for times
that are unknown. The test of real dumps of Gloo compares the fields.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

BEGAN_NS: Final = 1_790_857_026_000_000_000
EVERY_NS: Final = 10_000_000
TAKES_NS: Final = 2_000_000
WORLD: Final = ("0", "default_pg")


class Dump:
    """What the recorder of one rank holds.

    Parameters
    ----------
    rank, ranks
        The rank, and how many there are.
    groups
        The ranks of further process groups by name.
    """

    def __init__(
        self, rank: int, ranks: int, groups: dict[str, Sequence[int]] | None = None
    ) -> None:
        self.rank = rank
        self.groups: dict[str, Sequence[int]] = {"0": range(ranks), **(groups or {})}
        self.entries: list[dict[str, Any]] = []
        self._joined: dict[str, int] = {}

    def join(
        self,
        operation: str = "all_reduce",
        sizes: Sequence[Sequence[int]] = ((1024, 8),),
        *,
        group: str = "0",
        dtype: str = "Float",
        completes: bool = True,
        **fields: Any,
    ) -> None:
        """Add a collective."""
        number = self._joined[group] = self._joined.get(group, 0) + 1
        began = BEGAN_NS + EVERY_NS * len(self.entries) + self.rank * 1000
        entry = {
            "collective_seq_id": number,
            "input_dtypes": [dtype],
            "input_sizes": [list(size) for size in sizes],
            "is_p2p": False,
            "op_id": number,
            "output_dtypes": [dtype],
            "output_sizes": [list(size) for size in sizes],
            "p2p_seq_id": 0,
            "pg_id": [*self.groups].index(group),
            "process_group": [group, WORLD[1] if group == "0" else "undefined"],
            "profiling_name": f"nccl:{operation}",
            "record_id": len(self.entries),
            "retired": completes,
            "state": "completed" if completes else "started",
            "thread_id": "140422249016192",
            "thread_name": "pt_main",
            "time_created_ns": began,
            "time_discovered_completed_ns": began + TAKES_NS if completes else 0,
            "time_discovered_started_ns": began + TAKES_NS // 2,
            "timeout_ms": 600_000,
        }
        self.entries.append({**entry, **fields})

    def document(self) -> dict[str, Any]:
        """Return the whole dump."""
        joined = {str([*self.groups].index(name)): str(last) for name, last in self._joined.items()}
        return {
            "comm_lib_version": "2.27.5",
            "entries": self.entries,
            "nccl_comm_state": {},
            "pg_config": {
                name: {
                    "desc": WORLD[1] if name == "0" else "undefined",
                    "name": name,
                    "ranks": str([*members]),
                }
                for name, members in self.groups.items()
                if self.rank in members
            },
            "pg_status": {
                number: {
                    "last_completed_collective": last,
                    "last_enqueued_collective": last,
                    "last_started_collective": last,
                }
                for number, last in joined.items()
            },
            "version": "2.10",
        }

    def write(self, folder: Path, name: str = "") -> Path:
        """Write the dump as PyTorch does, and return its path."""
        return _written(folder, name or f"nccl_trace_rank_{self.rank}.json", self.document())

    def convert(self, folder: Path) -> Path:
        """Write the dump as it is after the conversion of a pickle, and return its path."""
        document = self.document()
        wrapper = {"name": "all_reduce", "filename": "/lib/torch/distributed/x.py", "line": 9}
        caller = {"name": "step", "filename": "/job/train.py", "line": 42}
        document["entries"] = [
            {
                **entry,
                "frames": [wrapper, caller],
                "time_discovered_completed_ns": entry["time_discovered_completed_ns"] or None,
            }
            for entry in self.entries
        ]
        return _written(folder, f"nccl_trace_rank_{self.rank}.json", document)


def _written(folder: Path, name: str, document: dict[str, Any]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(json.dumps(document, separators=(",", ":"), sort_keys=True))
    return path


def training(ranks: int = 4, collectives: int = 6) -> list[Dump]:
    """Return the dumps of a training whose ranks joined everything."""
    dumps = [Dump(rank, ranks) for rank in range(ranks)]
    for dump in dumps:
        for _ in range(collectives):
            dump.join()
    return dumps


def write_all(folder: Path, dumps: Sequence[Dump]) -> Path:
    """Write dumps, and return their folder."""
    for dump in dumps:
        dump.write(folder)
    return folder
