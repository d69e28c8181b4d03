"""Names of files and folders, as readers of old and new recordings expect them."""

import json
import os
import socket
from pathlib import Path

import pytest

from rule_core.profiler.files.file_names import system_file, trace_file
from rule_core.profiler.recording import layout

END_US = 1_700_000_040_000_000


def test_names_are_those_that_the_readers_parse() -> None:
    node = layout.node_id(3, "gpu_box")
    key = layout.timeline_key(END_US, node, "pythontimeline.json")
    assert trace_file(key) == (END_US, "3-gpu-box", "pythontimeline.json", key)
    key = layout.system_key(1_700_000_040, 2)
    assert system_file(key) == (END_US, "algo-2", key)


def test_a_draft_is_no_timeline() -> None:
    assert trace_file(layout.draft_key("0-box", "pythontimeline.json")) is None


def test_a_process_without_a_rank_has_its_id() -> None:
    assert layout.node_id(None, "a/b_c") == f"{os.getpid()}-a-b-c"


@pytest.mark.parametrize(
    ("text", "host"),
    [
        (json.dumps({"current_host": "algo-2", "hosts": ["algo-1", "algo-2"]}), "algo-2"),
        (json.dumps({"current_host": 2}), None),
        ("[]", None),
        ("{", None),
        (None, None),
    ],
)
def test_the_platform_names_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, host: str | None
) -> None:
    path = tmp_path / "resourceconfig.json"
    if text is not None:
        path.write_text(text)
    monkeypatch.setattr(layout, "RESOURCES", str(path))
    assert layout.host_name() == (host or socket.gethostname())
