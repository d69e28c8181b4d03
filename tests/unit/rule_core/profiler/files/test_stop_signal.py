"""The file by which the platform ends the data: when it counts, and where it lies."""

from pathlib import Path

import pytest
from memory_store import MemoryStore

from rule_core.exceptions import SMDebugValueError
from rule_core.profiler.files.stop_signal import StopSignal
from rule_core.storage.base import ByteRange, StorageUnavailableError
from rule_core.storage.local import LocalStore

NAME = "SAGEMAKER_ENV_RULE_STOP_SIGNAL_FILE"
GRACE = "rule_stop_grace_time_secs"


def test_without_a_name_there_is_none(tmp_path: Path) -> None:
    assert not StopSignal.from_environment(LocalStore(tmp_path), {}).is_given(9e9)
    assert not StopSignal().is_given(9e9)


@pytest.mark.parametrize(
    ("content", "now_s", "expected"),
    [
        (b"1000", 1060.0, False),
        (b"1000", 1060.5, True),
        (b" 1000\n", 1061.0, True),
        (b"1000", 5.0, False),
        (b"", 0.0, True),
        (b"soon", 0.0, True),
        (b"1000.5", 0.0, True),
        (b"9" * 200, 0.0, False),
        (b"\xff", 0.0, True),
    ],
)
def test_it_counts_when_the_grace_time_has_passed_or_it_cannot_be_understood(
    tmp_path: Path, content: bytes, now_s: float, expected: bool
) -> None:
    (tmp_path / "signals").mkdir()
    (tmp_path / "signals" / "stop").write_bytes(content)
    store = LocalStore(tmp_path)
    relative = StopSignal.from_environment(store, {NAME: " signals/stop "})
    absolute = StopSignal.from_environment(MemoryStore({}), {NAME: f"{tmp_path}/signals/stop"})
    remote = StopSignal.from_environment(
        MemoryStore({"signals/stop": content}), {NAME: "./signals/stop"}
    )
    for signal in (relative, absolute, remote):
        assert signal.is_given(now_s) == expected


def test_an_absolute_name_wins_over_the_trials_folder(tmp_path: Path) -> None:
    (tmp_path / "stop").write_text("1")
    signal = StopSignal.from_environment(LocalStore(tmp_path / "t"), {NAME: f"{tmp_path}/stop"})
    assert signal.is_given(100.0)
    assert signal.files == (tmp_path / "stop",)


def test_a_file_that_does_not_exist_says_nothing(tmp_path: Path) -> None:
    for store in (LocalStore(tmp_path), MemoryStore({})):
        assert not StopSignal.from_environment(store, {NAME: "signals/stop"}).is_given(9e9)


def test_something_else_in_its_place_counts(tmp_path: Path) -> None:
    (tmp_path / "stop").mkdir()
    assert StopSignal([tmp_path / "none", tmp_path / "stop"]).is_given(0.0)


class Silent(MemoryStore):
    transient = True

    def read(self, key: str, byte_range: ByteRange | None = None) -> memoryview:
        del byte_range
        raise StorageUnavailableError(key, "busy", transient=self.transient)


def test_a_store_that_cannot_be_asked_has_said_nothing() -> None:
    store = Silent({})
    signal = StopSignal.from_environment(store, {NAME: "stop"})
    with pytest.raises(StorageUnavailableError, match="busy"):
        signal.is_given(0.0)
    store.transient = False
    assert signal.is_given(0.0)


def test_the_grace_time_is_a_number(tmp_path: Path) -> None:
    (tmp_path / "stop").write_text("1000")
    store = LocalStore(tmp_path)
    signal = StopSignal.from_environment(store, {NAME: "stop", GRACE: "2.5"})
    assert [signal.is_given(now) for now in (1002.0, 1003.0)] == [False, True]
    assert signal.grace_s == 2.5
    for text in ("soon", "-1", "nan"):
        with pytest.raises(
            SMDebugValueError,
            match=rf"^The environment's {GRACE} must be a number of seconds >= 0, got '{text}'\.$",
        ):
            StopSignal.from_environment(store, {GRACE: text})
