"""What a process needs, and a browser, for the scripts that measure `rule-runner serve`."""

import os
import re
import shutil
from pathlib import Path
from typing import Any

TICKS = os.sysconf("SC_CLK_TCK")


def memory_mb(pid: int, field: str) -> float:
    """Return a size of a process, such as ``VmRSS``, in MB."""
    status = Path(f"/proc/{pid}/status").read_text()
    matched = re.search(rf"{field}:\s+(\d+) kB", status)
    return int(matched[1]) / 1024 if matched else 0.0


def processor_s(pid: int) -> float:
    """Return the processor time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def entries(pid: int, folder: str) -> int:
    """Return how many threads (``task``) or files (``fd``) a process has."""
    return sum(1 for _ in Path(f"/proc/{pid}/{folder}").iterdir())


def browser_options() -> dict[str, Any] | None:
    """Return how Playwright starts the Chromium of the system; None without one."""
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        return None
    # root of a container has no sandbox
    return {"executable_path": path, "chromium_sandbox": os.geteuid() != 0}
