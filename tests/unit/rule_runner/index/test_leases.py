"""Leases: held by processes, ended by the kernel."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rule_runner.errors import OutputError
from rule_runner.index.leases import Lease, holder, is_held


def test_a_lease_is_held_once_and_freed(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    assert not is_held(path)
    lease = Lease.take(path)
    assert lease is not None
    lease.name_holder(12345)
    lease.name_holder(77)
    assert (is_held(path), holder(path), Lease.take(path)) == (True, 77, None)
    lease.close()
    assert (is_held(path), holder(path)) == (False, None)


def test_a_lease_outlives_the_process_that_took_it_but_not_the_one_that_inherited_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.lock"
    lease = Lease.take(path)
    assert lease is not None
    sleeper = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with subprocess.Popen(sleeper, stdin=subprocess.PIPE, pass_fds=[lease.fd]) as process:
        lease.close()
        assert is_held(path)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert not is_held(path)


@pytest.mark.parametrize("content", ["", "no number", "0"])
def test_a_holder_may_be_unknown(tmp_path: Path, content: str) -> None:
    path = tmp_path / "a.lock"
    with Lease.take(path) or pytest.fail("held"):
        path.write_text(content)
        assert (is_held(path), holder(path)) == (True, None)


def test_a_lease_in_no_folder_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"Cannot write '.*a\.lock': No such file or directory\."):
        Lease.take(tmp_path / "missing" / "a.lock")
