"""Recorded answers of smdebug 1.0.34: where they lie, and when an answer of ours equals one."""

import hashlib
import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

Json = Any
TESTS = Path(__file__).parents[1]
# Why a test of the larger samples is skipped.
MISSING = "A fresh clone has no samples of real jobs: RULE_RUNNER_SHARED names their folder."
OWN = TESTS / "data" / "trials"
# Sums are added up in another order here: that many digits agree.
TOLERANCE = {"<f2": 1e-3, "<f4": 1e-5, "<f8": 1e-12, "<c8": 1e-5, "<c16": 1e-12}


def shared_folder() -> Path:
    """Return the folder of the larger samples, which a fresh clone does not have."""
    shared = os.environ.get("RULE_RUNNER_SHARED")
    return Path(shared) if shared else TESTS.parents[1] / "shared"


SHARED = shared_folder() / "trials"


class Session(NamedTuple):
    """One trial object, and the questions that are asked of it in this order."""

    folder: Path
    sample: str
    title: str
    env: dict[str, str]
    path: str
    create: dict[str, Json]
    create_result: Json
    queries: list[dict[str, Json]]


def sessions(folder: Path) -> Iterator[Session]:
    """Yield the sessions recorded in one sample folder."""
    document = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    for session in document["sessions"]:
        yield Session(
            folder,
            document["sample"],
            session["title"],
            {**document["base_env"], **(session.get("env") or {})},
            session["path"],
            session.get("create") or {},
            session.get("create_result", {"ok": True}),
            session["queries"],
        )


def agrees(recorded: Json, got: Json, *, computed: bool = False) -> bool:
    """Return whether an answer equals the recorded one.

    Equal means: same type and shape, same bytes, same order. An exception agrees if it is of the
    recorded class or one derived from it; its text is our own. A computed reduction may differ in
    its last digits.
    """
    match recorded:
        case {"$exc": {"type": name}}:
            return name.rpartition(".")[2] in classes(got)
        case {"$blocks": _}:
            return "$blocks" in got if isinstance(got, dict) else False
        case {"$np": expected} if computed and isinstance(got, dict) and "$np" in got:
            ours = got["$np"]
            return expected["dtype"] == ours["dtype"] and _close(
                np.frombuffer(bytes.fromhex(expected["hex"]), expected["dtype"]),
                np.frombuffer(bytes.fromhex(ours["hex"]), ours["dtype"]),
                TOLERANCE.get(expected["dtype"], 0),
            )
        case {"$nd": expected} if isinstance(got, dict) and "$np" in got:
            # A saved reduction, which is an array in smdebug.
            ours = got["$np"]
            content = bytes.fromhex(ours["hex"])
            return (
                expected["shape"] in ([], [1])
                and expected["dtype"] == ours["dtype"]
                and expected["sha256"] == hashlib.sha256(content).hexdigest()
            )
        case {"$nd": expected}:
            ours = got.get("$nd") if isinstance(got, dict) else None
            keys = ("shape", "dtype", "sha256")
            return ours is not None and all(expected[key] == ours[key] for key in keys)
    return bool(_same_json(recorded, got))


def _same_json(recorded: Json, got: Json) -> bool:
    """Compare containers part by part, so that arrays inside them compare like arrays."""
    if isinstance(recorded, dict) and "$nd" in recorded:
        return agrees(recorded, got)
    if isinstance(recorded, dict) and isinstance(got, dict):
        return recorded.keys() == got.keys() and all(
            _same_json(one, got[key]) for key, one in recorded.items()
        )
    if isinstance(recorded, list) and isinstance(got, list):
        pairs = zip(recorded, got, strict=False)
        return len(recorded) == len(got) and all(_same_json(one, two) for one, two in pairs)
    return type(recorded) is type(got) and recorded == got


def classes(got: Json) -> list[str]:
    """Return the names of the classes of the exception that a call raised, nearest first."""
    if isinstance(got, dict) and "$exc" in got:
        return [name.rpartition(".")[2] for name in got["$exc"]["mro"]]
    return []


def _close(expected: "np.ndarray", ours: "np.ndarray", tolerance: float) -> bool:
    if not math.isclose(tolerance, 0):
        return bool(np.allclose(expected, ours, rtol=tolerance, atol=0, equal_nan=True))
    return expected.tobytes() == ours.tobytes()
