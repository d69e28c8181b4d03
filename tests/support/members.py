"""Writes small trials whose collections have members by name, as hooks fill them."""

from collections.abc import Mapping
from pathlib import Path

from judging import Steps

from smdebug.core.collection import Collection
from smdebug.core.writer import TrialWriter


def save_members(root: Path, steps: Steps, members: Mapping[str, str]) -> Path:
    """Write the steps of one worker; `members` maps collections to tensor names."""
    collections = [Collection(name, []) for name in sorted(set(members.values()))]
    writer = TrialWriter(root, collections=collections, end_job=False)
    for tensor, collection in members.items():
        writer.add_to_collection(collection, [tensor])
    for step, tensors in steps.items():
        writer.step(step, tensors)
    return root
