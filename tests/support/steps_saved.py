"""Trials as training jobs save them, step by step: times and steps differ, suffixes follow."""

import json
import struct
from collections.abc import Mapping
from typing import Any

import rawtrial
from evaluating import WoundClock

from rule_core.reading.native_index import NativeIndex
from rule_core.storage.base import TrialStore
from smdebug.trials import Trial

REDUCED = "smdebug/reductions/"


def record(
    array: Any, step: int = 1, name: str = "t", *, behind: bytes = b"", footer: int | None = None
) -> bytes:
    """Return the record of an array; its time follows from the step.

    Parameters
    ----------
    behind
        What stands behind the tensor in the summary's value, such as the metadata of a mode.
    footer
        Otherwise the one that all records have.
    """
    value = rawtrial.field(1, name.encode()) + rawtrial.field(8, rawtrial.array_message(array))
    time = b"\x09" + struct.pack("<d", 1.6e9 + step / 7)
    summary = rawtrial.field(5, rawtrial.field(1, value + behind))
    payload = time + rawtrial.field(2, step) + summary
    return rawtrial.record(payload, rawtrial.FOOTER if footer is None else footer)


def step_files(
    step: int,
    records: Mapping[str, bytes],
    mode: str = "GLOBAL",
    mode_step: int | None = None,
    worker: str = "worker_0",
    gap: int = 0,
) -> dict[str, bytes]:
    """Return event file and index file of a step; `gap` bytes that nobody names follow each record.

    Names of reductions begin as the format has it.
    """
    payload, content = [], b""
    for name, data in records.items():
        payload.append({"tensorname": name, "start_idx": len(content), "length": len(data)})
        content += data + bytes(gap)
    meta = {
        "mode": mode,
        "mode_step": step if mode_step is None else mode_step,
        "event_file_name": rawtrial.event_key(step, worker),
    }
    index = json.dumps({"meta": meta, "tensor_payload": payload}).encode()
    return {rawtrial.event_key(step, worker): content, rawtrial.index_key(step, worker): index}


def trial_of(store: TrialStore, *, prefetch: bool = True, ended: bool = True) -> Trial:
    """Return a trial of which all that is there is known."""
    index = NativeIndex(store)
    index.refresh()
    if ended:
        index.finish()
    if not prefetch:
        index.tensors.local_prefetch = None
    return Trial("t", "/t", index, WoundClock())
