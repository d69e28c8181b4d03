"""Profiles that hooks record: a configuration, and the events."""

from pathlib import Path
from typing import Any

from rule_core.profiler.recording import recorder as recording
from rule_core.profiler.traces.event import TraceEvent
from rule_core.trials.profiler_trial import ProfilerTrial


def profiler_config(folder: Path, **settings: Any) -> dict[str, Any]:
    """Return a configuration with settings of `ProfilingParameters`."""
    return {"ProfilingParameters": {"LocalPath": str(folder / "profile"), **settings}}


def end_script() -> None:
    """End what is profiled after a hook was closed, as the end of its script does."""
    for recorder in filter(None, (reference() for reference in recording._open_recorders)):
        recorder.end_script()


def events(folder: Path, *phases: str) -> list[TraceEvent]:
    """Return the recorded events of phases, by default all, in the order of their ends."""
    trial = ProfilerTrial("job", str(folder / "profile"))
    trial.refresh()
    return [
        event
        for event in trial.framework_events(0, 1 << 60)
        if not phases or event.event_phase in phases
    ]


def args_of(folder: Path, phase: str, *names: str) -> list[tuple[Any, ...]]:
    """Return args of the events of a phase."""
    return [
        tuple((event.event_args or {}).get(name) for name in names)
        for event in events(folder, phase)
    ]
