"""Files of system metrics in memory, a minute of a node each: for tests of what walks over them."""

import json
from collections.abc import Mapping

BEGIN = 1_699_990_020  # epoch seconds
END_MARK = {"system/training_job_end.ts": b""}
_DIMENSIONS = {"cpu": "CPUUtilization", "gpu": "GPUUtilization"}


def minute(
    number: int,
    node: int = 1,
    *,
    values: Mapping[str, float] | None = None,
    seconds: float = 60,
    every: float = 10,
    begin: int = BEGIN,
) -> dict[str, bytes]:
    """Return the file of one minute: at each sample the same value of each series by its name."""
    start = begin + 60 * number
    lines = [
        json.dumps(
            {
                "Type": name[:3],
                "Name": name,
                "Dimension": _DIMENSIONS[name[:3]],
                "Value": value,
                "NodeId": f"algo-{node}",
                "Timestamp": start + sample * every,
            }
        )
        for sample in range(int(seconds / every))
        for name, value in (values or {"cpu0": 50.0}).items()
    ]
    text = "\n".join(lines) + "\n"
    return {f"system/incremental/2023111419/{start}.algo-{node}.json": text.encode()}
