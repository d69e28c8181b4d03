"""Limits: sizes of files that are read as a whole, descriptors, and memory of large trials."""

import errno
import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rawtrial
import s3_objects
from click.testing import CliRunner
from evaluating import END, configured, rule_job

from rule_core.storage.base import ByteRange, StorageUnavailableError
from rule_core.storage.size_limit import METADATA_BYTES
from rule_core.storage.uri import open_store
from rule_runner import file_descriptors
from rule_runner.cli import main
from rule_runner.commands.serve import _fitting
from rule_runner.engine.runner import Runner
from rule_runner.errors import ClientError, TrialError
from rule_runner.file_descriptors import exhausted, require
from rule_runner.loading.trials import open_trial
from rule_runner.service.settings import ServiceSettings
from smdebug.exceptions import SMDebugValueError

COLLECTIONS = rawtrial.collections({"gradients": ["^gradient"]})
# Runs a command and prints its exit code, its peak memory in bytes and its seconds.
MEASURE = """
import resource, subprocess, sys, time
began = time.monotonic()
code = subprocess.run(sys.argv[1:], stdout=sys.stderr, check=False).returncode
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(code, peak * 1024, time.monotonic() - began)
"""


def small_trial(root: Path) -> Path:
    step = rawtrial.step_files(0, {"gradient/a": np.ones(4, "f4")})
    return rawtrial.write(root, {END: b"", rawtrial.collections_key(): COLLECTIONS, **step})


def measured(trial: Path, **environment: str) -> tuple[int, int, float]:
    """Return exit code, peak memory and seconds of an evaluation by a process of its own."""
    command = [sys.executable, "-m", "rule_runner", "evaluate", "--trial", str(trial)]
    command += ["--rule", "VanishingGradient", "--output", str(trial.parent / "out")]
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, *command],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env=os.environ | environment,
    )
    code, peak, seconds = done.stdout.split()
    return int(code), int(peak), float(seconds)


# -- sizes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [rawtrial.index_key(1), rawtrial.collections_key("worker_1")])
def test_hole_of_3_gb_is_named_and_not_read(tmp_path: Path, key: str) -> None:
    trial = small_trial(tmp_path / "trial")
    with (trial / key).open("wb") as file:
        file.truncate(3 << 30)
    config = configured(tmp_path / "out", [rule_job("VanishingGradient")], str(trial))
    (found,) = Runner(config).run().result.rules
    assert found.coverage.judged == 1
    (note,) = found.notes
    assert f"Cannot read {key!r}: it has 3221225472 bytes, more than the 268435456" in note
    assert "Raise RULE_RUNNER_METADATA_BYTES if this is intended." in note


@pytest.mark.parametrize(("limit", "whole"), [("1000", True), ("1 KB", True), ("999", False)])
def test_limit_holds_for_files_that_are_read_as_a_whole(
    tmp_path: Path, aws_endpoint: str, monkeypatch: pytest.MonkeyPatch, limit: str, whole: bool
) -> None:
    content = {"index/x.json": bytes(1000)}
    s3_objects.make_bucket(aws_endpoint)
    s3_objects.put(aws_endpoint, "t/", content)
    rawtrial.write(tmp_path, content)
    monkeypatch.setenv(METADATA_BYTES, limit)
    for address in (str(tmp_path), "s3://bucket/t"):
        store = open_store(address)
        assert len(store.read("index/x.json", ByteRange(0, 2000))) == 1000
        if whole:
            assert len(store.read("index/x.json")) == 1000
            continue
        with pytest.raises(StorageUnavailableError, match="it has 1000 bytes, more than the 999"):
            store.read("index/x.json")


@pytest.mark.parametrize("text", ["many", "-1", "1.5GB", "5 XB"])
def test_limit_that_is_no_size_is_named(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(METADATA_BYTES, text)
    message = f"^The environment's {METADATA_BYTES} must be a size such as 10GiB, got '{text}'"
    for address in ("/trial", "s3://bucket/t"):
        with pytest.raises(SMDebugValueError, match=message):
            open_store(address)
        with pytest.raises(TrialError, match=message):
            open_trial(address)


# -- memory and time -----------------------------------------------------------------------------


def many_tensors(root: Path, count: int) -> None:
    values = {f"gradient/layer{number}/weight": np.ones(4, "f4") for number in range(count)}
    rawtrial.write(root, {END: b"", rawtrial.collections_key(): COLLECTIONS})
    rawtrial.write(root, rawtrial.step_files(0, values))


def many_collections(root: Path, count: int) -> None:
    small_trial(root)
    names = ("gradients", *(f"c{number}" for number in range(count)))
    collections = {name: {"name": name, "include_regex": [f"^{name[:8]}"]} for name in names}
    document = {"collections": collections, "_meta": {"num_workers": 1}}
    (root / rawtrial.collections_key()).write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("write", "count", "memory", "seconds"),
    [
        pytest.param(many_tensors, 500, 2 << 30, 60, id="tensors"),
        pytest.param(many_collections, 5_000, 1 << 30, 60, id="collections"),
        pytest.param(
            many_tensors, 50_000, 2 << 30, 60, id="50000-tensors", marks=pytest.mark.nightly
        ),
        pytest.param(
            many_collections,
            1_000_000,
            1 << 30,
            120,
            id="1000000-collections",
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_large_trial_ends_within_the_documented_memory(
    tmp_path: Path, write: Any, count: int, memory: int, seconds: int
) -> None:
    write(tmp_path / "trial", count)
    code, peak, took = measured(tmp_path / "trial")
    assert code == 0
    assert peak < memory
    assert took < seconds


# -- descriptors ---------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [16, 24])
@pytest.mark.parametrize("rules", [1, 12])
def test_low_limit_of_open_files_is_a_sentence(tmp_path: Path, limit: int, rules: int) -> None:
    small_trial(tmp_path / "trial")
    command = [sys.executable, "-m", "rule_runner", "evaluate", "--trial", "trial"]
    for number in range(rules):
        command += ["--rule", f"r{number}=VanishingGradient"]
    done = subprocess.run(
        [*command, "--output", "out"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)),
    )
    needed = 32 + 3 * rules
    assert done.stderr == (
        f"Error: The evaluation needs up to {needed} open files, got a limit of {limit}. "
        "Raise the limit with 'ulimit -n 1024'.\n"
    )
    assert done.returncode == 1
    assert not (tmp_path / "out").exists()


class Limits:
    """The limits of a process: the hard one cannot be passed."""

    RLIMIT_NOFILE = resource.RLIMIT_NOFILE
    RLIM_INFINITY = resource.RLIM_INFINITY

    def __init__(self, soft: int, hard: int) -> None:
        self.now = (soft, hard)

    def getrlimit(self, _: int) -> tuple[int, int]:
        return self.now

    def setrlimit(self, _: int, limits: tuple[int, int]) -> None:
        if limits[0] > self.now[1]:
            raise ValueError
        self.now = limits


@pytest.mark.parametrize(
    ("soft", "hard", "more", "after"),
    [
        (16, 4096, {}, 38),
        (64, 64, {}, 64),
        (-1, -1, {}, -1),
        (16, 4096, {"processes": True}, 46),
        (16, 4096, {"remote": True}, 70),
        (16, 37, {}, None),
    ],
)
def test_soft_limit_is_raised_as_far_as_it_is_needed(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, more: dict[str, bool], after: int | None
) -> None:
    limits = Limits(soft, hard)
    monkeypatch.setattr(file_descriptors, "resource", limits)
    asked = {"processes": False, "remote": False} | more
    if after is None:
        with pytest.raises(ClientError, match="needs up to 38 open files, got a limit of 16"):
            require(2, **asked)
    else:
        require(2, **asked)
        assert limits.now == (after, hard)


@pytest.mark.parametrize(
    ("soft", "hard", "asked", "expected"),
    [
        (256, 1_000_000, 250, (1000, 250)),
        (256, -1, 3000, (6000, 3000)),
        (1024, 1024, 250, (512, 250)),
        (256, 256, 250, (128, 64)),
    ],
)
def test_connections_of_the_service_leave_half_of_the_descriptors(
    monkeypatch: pytest.MonkeyPatch,
    soft: int,
    hard: int,
    asked: int,
    expected: tuple[int, int],
) -> None:
    limits = Limits(soft, hard)
    monkeypatch.setattr(file_descriptors, "resource", limits)
    settings = _fitting(ServiceSettings(max_streams=asked))
    assert (settings.max_connections, settings.max_streams) == expected
    assert limits.now == (hard, hard)


def test_error_that_comes_of_too_many_open_files_is_known() -> None:
    full = OSError(errno.EMFILE, "Too many open files")
    wrapped = RuntimeError("a library's own")
    wrapped.__cause__ = full
    for err in (full, wrapped, OSError(errno.ENFILE, "")):
        assert "Raise the limit with 'ulimit -n 1024'." in (exhausted(err) or "")
    assert exhausted(OSError(errno.ENOENT, "")) is None


def test_too_many_open_files_while_judging_are_no_internal_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = small_trial(tmp_path / "trial")
    runner = Runner(configured(tmp_path / "out", [rule_job("VanishingGradient")], str(trial)))

    def fails() -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(runner.context, "make_rules", fails)
    (found,) = runner.run().result.rules
    assert (found.status_details or "").startswith("ClientError: More files are open than")


def test_too_many_open_files_in_any_command_are_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr("rule_runner.commands.rules.listing", fails)
    done = CliRunner().invoke(main, ["rules", "list"])
    assert done.exit_code == 1
    assert done.stderr.startswith("Error: More files are open than the limit of ")
