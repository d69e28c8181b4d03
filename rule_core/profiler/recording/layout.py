"""Names of the files and folders that a recording writes, below its folder."""

import json
import os
import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from rule_core.profiler.files.constants import DEFAULT_PREFIX, TRACE_DIRECTORY_FORMAT

RESOURCES: Final = "/opt/ml/input/config/resourceconfig.json"
SYSTEM_FOLDER: Final = "system/incremental"
DRAFTS: Final = "framework"
DRAFT: Final = ".tmp"
_SECOND_US: Final = 1_000_000


def resources() -> dict[str, Any]:
    """Return the platform's description of the hosts of the job; empty elsewhere."""
    try:
        document = json.loads(Path(RESOURCES).read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def host_name() -> str:
    """Return the name of this host, by the platform or the operating system."""
    name = resources().get("current_host")
    return name if isinstance(name, str) and name else socket.gethostname()


def node_id(rank: int | None, host: str | None = None) -> str:
    """Return the node of a process in file names: its rank, or its ID without one, and the host.

    >>> node_id(1, "gpu_box")
    '1-gpu-box'
    """
    number = os.getpid() if rank is None else rank
    name = f"{number}-{host_name() if host is None else host}"
    return name.replace("_", "-").replace("/", "-")


def hour(time_us: int) -> str:
    """Return the UTC hour of a time as the folder of its files.

    >>> hour(1_700_000_040_000_000)
    '2023111422'
    """
    return datetime.fromtimestamp(time_us / _SECOND_US, UTC).strftime(TRACE_DIRECTORY_FORMAT)


def timeline_key(end_us: int, node: str, suffix: str) -> str:
    """Return the key of a timeline by the end of its last event.

    >>> timeline_key(1_700_000_040_000_000, "0-box", "pythontimeline.json")
    'framework/pevents/2023111422/1700000040000000_0-box_pythontimeline.json'
    """
    return f"{DEFAULT_PREFIX}/{hour(end_us)}/{end_us}_{node}_{suffix}"


def draft_key(node: str, suffix: str) -> str:
    """Return the key of a timeline while it is written.

    >>> draft_key("0-box", "pythontimeline.json")
    'framework/0-box_pythontimeline.json.tmp'
    """
    return f"{DRAFTS}/{node}_{suffix}{DRAFT}"


def kineto_key(step: int, node: str, start_us: int, end_us: int, *, is_inside: bool) -> str:
    """Return the key of the trace of a step, beside or inside of the folder of the framework.

    Other readers of timelines take each ``.json.gz`` inside for a timeline without a time.

    >>> kineto_key(5, "0-box", 1_700_000_040_000_000, 1_700_000_041_000_000, is_inside=False)
    'kineto/2023111422/000000005/0-box_1700000040000000_1700000041000000.pt.trace.json.gz'
    """
    folder = f"{DRAFTS}/pytorch/kineto" if is_inside else "kineto"
    name = f"{node}_{start_us}_{end_us}.pt.trace.json.gz"
    return f"{folder}/{hour(end_us)}/{step:09d}/{name}"


def system_key(minute_s: int, node: int) -> str:
    """Return the key of the system metrics of a minute; nodes count from 1.

    >>> system_key(1_700_000_040, 1)
    'system/incremental/2023111422/1700000040.algo-1.json'
    """
    return f"{SYSTEM_FOLDER}/{hour(minute_s * _SECOND_US)}/{minute_s:010d}.algo-{node}.json"
