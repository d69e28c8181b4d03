import pytest
from fake_profiler_trial import event
from profiler_writer import BEGIN_S

from rule_runner.service.curves.phase_times import REST, PhaseTimes

TRAIN = "Step:ModeKeys.TRAIN"


def test_what_no_event_explains_is_the_rest() -> None:
    phases = PhaseTimes()
    steps = [
        *phases.add([event("Forward", 10.0, 0.2), event("Optimizer", 10.6, 0.1)]),
        *phases.add([event(TRAIN, 10.0, 1.0), event("batch", 11.0, 0.3, phase="DataLoaderIter")]),
        *phases.add([event("Backward(post-forward)", 11.5, 0.5), event(TRAIN, 11.3, 0.7)]),
    ]
    assert [(step.end_ms, step.mode, step.seconds) for step in steps] == [
        ((BEGIN_S + 11) * 1000, "TRAIN", 1.0),
        ((BEGIN_S + 12) * 1000, "TRAIN", 0.7),
    ]
    assert steps[0].phases == pytest.approx({"forward": 0.2, "optimizer": 0.1, REST: 0.7})
    # The second step lasts from the end of the first: its batch was loaded in between.
    assert steps[1].phases == pytest.approx({"data loading": 0.3, "backward": 0.5, REST: 0.2})


def test_steps_alone_have_no_phases_and_workers_are_no_loading() -> None:
    events = [event("DataLoaderWorker", 0.0, 60.0), event("Step:ModeKeys.GLOBAL", 1.0, 1.0)]
    [step] = PhaseTimes().add(events)
    assert (step.mode, step.phases) == ("", {})
