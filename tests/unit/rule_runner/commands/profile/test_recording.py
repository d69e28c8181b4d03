"""A recording follows changes of the user's file; several nodes share a folder."""

import asyncio
import json
from pathlib import Path
from typing import Any, ClassVar

import pytest

from rule_core.profiler.recording.config_file import PATH_VARIABLE
from rule_runner.commands.profile import recording as module
from rule_runner.commands.profile.recording import ProfileRecording
from rule_runner.commands.profile.recording_options import RecordingOptions
from rule_runner.errors import OutputError


class FakeSampler:
    """Notes when samplers start and stop."""

    notes: ClassVar[list[object]] = []

    def __init__(self, folder: str, interval_ms: int, node: int) -> None:
        self._name = (Path(folder).name, interval_ms, node)

    def start(self) -> None:
        self.notes.append(self._name)

    def stop(self, timeout_s: float) -> None:
        assert timeout_s
        self.notes.append("stop")


@pytest.fixture
def samplers(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    monkeypatch.setattr(FakeSampler, "notes", [])
    monkeypatch.setattr(module, "Sampler", FakeSampler)
    monkeypatch.setattr(module, "CHECK_S", 0.001)
    return FakeSampler.notes


async def until(condition: Any) -> None:
    for _ in range(30_000):
        if condition():
            return
        await asyncio.sleep(0.001)
    pytest.fail("the condition never holds")


def written(path: Path) -> Any:
    return json.loads(path.read_text())


def test_changes_of_the_file_take_effect(tmp_path: Path, samplers: list[object]) -> None:
    file, said = tmp_path / "config.json", list[str]()
    file.write_text("{}")

    async def change() -> None:
        recording = ProfileRecording(
            RecordingOptions(file=file), str(tmp_path / "p"), tmp_path, said.append
        )
        recording.start()
        path = Path(recording.environment()[PATH_VARIABLE])
        following = asyncio.create_task(recording.follow())
        file.write_text('{"ProfilingIntervalInMilliseconds": 100}')
        await until(lambda: len(samplers) == 3)
        file.write_text("{ damaged")
        await until(lambda: said)
        file.unlink()
        assert written(path)["ProfilingIntervalInMilliseconds"] == 100
        file.write_text('{"DisableProfiler": true}')
        await until(lambda: len(samplers) == 4)
        assert written(path)["DisableProfiler"]
        following.cancel()
        recording.end()

    asyncio.run(change())
    assert samplers == [("p", 500, 1), "stop", ("p", 100, 1), "stop"]
    assert said[0].endswith("The recording keeps its configuration.")
    assert said[1:] == ["Profiling is disabled by the configuration."]


def test_code_is_not_read_again(tmp_path: Path) -> None:
    code = tmp_path / "job.py"
    code.write_text("from rule_runner.debugger import ProfilerConfig\nconfig = ProfilerConfig()\n")
    for file in (None, code):
        options = RecordingOptions(file=file)
        recording = ProfileRecording(options, str(tmp_path / "p"), tmp_path, print)
        asyncio.run(asyncio.wait_for(recording.follow(), 60))


def test_nodes_record_into_one_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "p" / "system" / "incremental" / "2026010100" / "1767225600.algo-1.json"
    other.parent.mkdir(parents=True)
    other.write_text("{}\n")
    with pytest.raises(OutputError, match="holds a recording"):
        ProfileRecording(RecordingOptions(), str(tmp_path / "p"), tmp_path, print)
    monkeypatch.setenv("SLURM_NODEID", "1")
    ProfileRecording(RecordingOptions(), str(tmp_path / "p"), tmp_path, print)


def test_a_sampler_that_cannot_start_is_named(
    tmp_path: Path, samplers: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> None:
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(FakeSampler, "start", fail)
    said: list[str] = []
    ProfileRecording(RecordingOptions(), str(tmp_path / "p"), tmp_path, said.append).start()
    assert said == ["System metrics are not sampled: [Errno 11] Resource temporarily unavailable."]
    assert samplers == []


@pytest.mark.parametrize(
    ("operators", "before", "after"),
    [(None, None, None), ("5", None, module.SILENT), ("5", "0", None)],
)
def test_pytorch_prints_nothing_about_profiled_steps(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    operators: str | None,
    before: str | None,
    after: str | None,
) -> None:
    monkeypatch.delenv(module.KINETO_LOG, raising=False)
    if before is not None:
        monkeypatch.setenv(module.KINETO_LOG, before)
    options = RecordingOptions(operators=operators)
    recording = ProfileRecording(options, str(tmp_path / "p"), tmp_path, print)
    assert recording.environment().get(module.KINETO_LOG) == after


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="Cannot write"):
        ProfileRecording(RecordingOptions(), str(tmp_path / "file" / "p"), tmp_path, print)
