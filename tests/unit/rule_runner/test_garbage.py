"""Garbage collections: rare until rules judge, and as the program began from then on."""

import subprocess
import sys

LATER = """
import gc
from rule_runner.garbage import collect_as_usual, collect_rarely
gc.set_threshold(901, 11, 12)
collect_as_usual()
print(*gc.get_threshold(), gc.get_freeze_count())
collect_rarely()
print(*gc.get_threshold(), gc.get_freeze_count())
collect_as_usual()
print(*gc.get_threshold(), gc.get_freeze_count() > 1000)
gc.unfreeze()
collect_as_usual()
print(*gc.get_threshold(), gc.get_freeze_count())
"""


def test_collections_are_rare_between_the_two_calls_and_frozen_once() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", LATER], capture_output=True, text=True, check=True
    )
    assert ended.stdout.splitlines() == [
        "901 11 12 0",
        "100000 11 12 0",
        "901 11 12 True",
        "901 11 12 0",
    ]
