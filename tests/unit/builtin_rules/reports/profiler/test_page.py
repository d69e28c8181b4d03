"""The page of the profiler report: what it says of jobs of every kind, and of strange names."""

import html
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fake_profiler_trial import FakeProfilerTrial, event, judge_windows
from profiler_writer import cpu, gpu, io_wait, memory

from builtin_rules.profiler_table import ProfilerReport
from builtin_rules.reports.profiler import charts, findings, tables
from builtin_rules.reports.profiler.page import notebook
from builtin_rules.reports.profiler.wording import moment

HOSTILE = "</script><script>hit()</script><img src=x onerror=hit()>{{ 7 * 7 }}"
TRAIN = "Step:ModeKeys.TRAIN"


def page_of(tmp_path: Path, trial: FakeProfilerTrial, **params: Any) -> str:
    """Return the page on a job."""
    judge_windows(ProfilerReport, trial, output_dir=tmp_path, **params)
    return (tmp_path / "profiler-output" / "profiler-report.html").read_text()


def text_of(page: str) -> str:
    """Return what is read of a page, on one line."""
    bare = re.sub(r"<style>.*?</style>|<[^>]+>", " ", page, flags=re.DOTALL)
    return " ".join(html.unescape(bare).split())


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the page on a job of which every rule finds something."""
    count = 12 * 120
    at = np.arange(count)
    events = []
    for number in range(400):
        begin, slow = 260.0 + number, 0.9 if number % 30 == 7 else 0.1
        events += [
            event(TRAIN, begin, slow, step_num=str(number)),
            event("Forward", begin, slow * 0.8, phase="Forward-SubModuleInternal"),
            event("Backward", begin, slow * 0.1, phase="Backward-SubModuleInternal"),
            event("aten::add", begin, 0.05, phase="cpu_functions"),
            event("sgemm", begin, 0.05, phase="gpu_functions-dev:0"),
            event("all_reduce", begin, 0.05, phase="Horovod:reduce"),
            event("DataLoaderWorker", begin, 0.05, num_workers=2, pin_memory=True),
            event("DataLoaderIter::GetNext", begin, 0.3),
        ]
    trial = FakeProfilerTrial(
        *(cpu(np.where(at % 2, 95.0, 20.0), f"cpu{one}") for one in range(4)),
        io_wait(np.where(at % 2, 60.0, 5.0)),
        gpu(np.full(count, 5.0)),
        memory(np.where(at > 1200, 90.0, 9.0)),
        gpu(np.full(count, 60.0), "gpu1"),
        memory(np.full(count, 9.0), "gpu1"),
        *(one(np.full(count, 20.0), node="algo-2") for one in (cpu, gpu, memory)),
        events=events,
    )
    given = {
        "CPUBottleneck_threshold": 40,
        "IOBottleneck_threshold": 40,
        "MaxInitializationTime_threshold": 4,
    }
    return page_of(tmp_path_factory.mktemp("busy"), trial, **given)


def test_what_to_do_first_stands_at_the_top(busy: str) -> None:
    text = text_of(busy)
    top = text[text.index("What to do first") : text.index("Phases")]
    assert (
        "algo-1 has loader processes for 25 % of its cores; below 70 % there is room for more."
        " 1 loader processes, 4 cores. Batches take 30 percent of the time."
    ) in top
    assert "Met in 7 of 7 judged windows. Found by Dataloader ;" in top
    assert "Found by CPUBottleneck ; CPUBottleneck_threshold sets the limit." in top
    assert len(re.findall(r"sets the limit", top)) == 5


def test_every_rule_has_its_section(busy: str) -> None:
    named = re.findall(r'<section id="(\w+)">\n<h2>([A-Z]\w+)</h2>', busy)
    *causes, second_last, last = [one for one, heading in named if one == heading]
    assert set(causes) == {
        *("CPUBottleneck", "Dataloader", "GPUMemoryIncrease", "IOBottleneck", "LoadBalancing"),
        *("MaxInitializationTime", "StepOutlier"),
    }
    assert {second_last, last} == {"BatchSize", "LowGPUUtilization"}  # symptoms
    text = text_of(busy)
    assert "first step 4.333 4 threshold 1 The first step started after 4.3 minutes." in text
    assert "Slow steps of algo-1-51: 7, 37, 67, 97, 127, 157, 187, 217, 247, 277" in text
    assert "Too few: increase DataLoader(num_workers=...) until steps no longer wait" in text
    assert "All samples, in percent node device lower p25 p50 p75 p95 upper algo-1 cpu" in text
    assert "Framework activity at that time Operators on GPUs sgemm 100.0 %" in text


def test_the_time_of_the_job_and_of_the_framework(busy: str) -> None:
    text = text_of(busy)
    assert "duration 12 min 0 s" in text
    assert "steps 400 of TRAIN" in text
    assert "initialisation 36.1 % 4 min 20 s training loop 55.5 % 6 min 39 s" in text
    assert "others 92.2 %" in text
    assert "Forward and backward passes Forward 88.9 % Backward 11.1 %" in text
    assert "Collectives all_reduce 100.0 %" in text
    assert "concurrent loader processes 1 cores 4 num_workers 2 pin_memory True" in text
    assert "400 steps of TRAIN, algo-1-51" in text
    assert re.search(r"algo-1-51 TRAIN 12\d ms 100 ms 100 ms 100 ms 900 ms 900 ms 14 ", text)


def test_the_table_of_use_says_what_it_means(busy: str) -> None:
    text = text_of(busy)
    assert "GPUs (%) algo-1 32.5 32.5 32.5 32.5 32.5 Mostly idle: below 70 % for 95 %" in text
    assert "GPU memory (%) algo-1 9 9 49.5 49.5 49.5 Room for a larger batch." in text
    assert "Processors (%) algo-1 20 57.5 95 95 95 Busy: GPUs may be waiting" in text


def test_charts_are_drawn_with_what_lies_around_the_line(busy: str) -> None:
    titles = re.findall(r'<figcaption class="title">(.*?)</figcaption>', busy)
    assert titles[:3] == ["processors and memory of algo-1", "gpu0 of algo-1", "gpu1 of algo-1"]
    assert {"Time to load a batch", "Workloads of algo-1", "Steps of algo-1-51"} < set(titles)
    assert busy.count("<polygon") == 2 + 2 + 2 + 1 + 2 + 1
    assert "NaN" not in busy
    assert "nan" not in re.findall(r'points="([^"]*)"', busy)


def test_a_job_without_gpus_and_without_timelines_is_reported(tmp_path: Path) -> None:
    text = text_of(page_of(tmp_path, FakeProfilerTrial(cpu(np.full(240, 30.0)))))
    for said in (
        "No rule could judge any window. See the rules below for the reasons.",
        "There are no GPU samples, so the rules about GPUs cannot judge this job.",
        "The job ran without framework profiling, so there are no timelines",
        "There are no framework events.",
        "There are no data loader events.",
        "No steps were recorded",
        "Mostly idle: fewer cores would suffice.",
        "0 windows judged, 2 skipped: no GPU utilisation in this window.",
    ):
        assert said in text


def test_a_job_with_timelines_alone_is_reported(tmp_path: Path) -> None:
    text = text_of(page_of(tmp_path, FakeProfilerTrial(events=[event("x", 1.0, 2.0)])))
    assert "There are no system metrics." in text
    assert "The timelines contain no steps." in text
    assert "None of the 1 rule that judged the job was triggered. Rules without data" in text


def test_what_a_stranger_wrote_is_only_text(tmp_path: Path) -> None:
    trial = FakeProfilerTrial(
        cpu(np.full(300, 95.0), HOSTILE, node=HOSTILE),
        gpu(np.full(300, 5.0), HOSTILE, node=HOSTILE),
        events=[
            event(f"{TRAIN}{HOSTILE}", 1.0, 2.0, node=HOSTILE),
            event(HOSTILE, 1.0, 2.0, node=HOSTILE, phase=HOSTILE),
        ],
    )
    trial.name = HOSTILE
    trial.problems = [HOSTILE] * 12
    page = page_of(tmp_path, trial, CPUBottleneck_patience=10, LowGPUUtilization_patience=10)
    assert "<script" not in page
    assert "<img" not in page
    assert page.count(html.escape(HOSTILE)) > 12
    assert "49" not in re.findall(r"\{\{.*?\}\}", page)
    assert "And 2 further problems with the data." in page


def test_the_page_says_when_more_may_come(tmp_path: Path) -> None:
    trial = FakeProfilerTrial(cpu(np.full(10, 30.0)))
    rule = ProfilerReport(trial)
    rule.output_dir = tmp_path
    rule.invoke(0)
    path = tmp_path / "profiler-output" / "profiler-report.html"
    assert "The data was incomplete when this was written" in path.read_text()
    rule.invoke_at_end(0)
    assert "The data was incomplete when this was written" not in path.read_text()
    trial.loaded_all_steps = False
    page = page_of(tmp_path, trial)
    assert "latest data" in page


def test_nothing_comes_from_the_network(busy: str) -> None:
    assert re.findall(r"(?:src|href)=\"(?!#)|url\(|@import|https?:", busy) == []
    assert "default-src 'none'" in busy


def test_long_tables_are_cut() -> None:
    rows = tables.shares({f"op{at}": 4.0 for at in range(25)})
    assert (len(rows), rows[-1]) == (tables.ROWS + 1, ("and 5 more", 20.0, ""))


def test_gaps_are_no_lines() -> None:
    times, values = charts._with_gaps(np.array([1.0, 2.0, 3.0, 30.0, 31.0]), np.arange(5.0))
    assert times == [1.0, 2.0, 3.0, 30.0, 30.0, 31.0]
    assert np.array_equal(values, [0.0, 1.0, 2.0, np.nan, 3.0, 4.0], equal_nan=True)


def test_even_passes_are_no_advice() -> None:
    for passes in ({"Forward": 35.0, "Backward": 65.0}, {"Forward": 100.0}, {}):
        assert findings._uneven(passes) is None
    advice = findings._uneven({"Backward-x": 71.0, "Forward": 29.0})
    assert advice is not None
    assert advice.todo.startswith("Find out why the backward passes")


def test_times_that_no_calendar_has() -> None:
    assert moment(1e30) == f"{1e30:.0f} us"


def test_the_notebook_is_one_and_its_code_compiles() -> None:
    document = notebook("/a/'b'\n")
    assert (document["nbformat"], document["nbformat_minor"]) == (4, 5)
    assert json.loads(json.dumps(document)) == document
    cells = [one for one in document["cells"] if one["cell_type"] == "code"]
    for cell in cells:
        compile(cell["source"], cell["id"], "exec")
    assert "path = \"/a/'b'\\n\"" in "".join(cell["source"] for cell in cells)
    assert len({one["id"] for one in document["cells"]}) == len(document["cells"])


@pytest.mark.parametrize(("begin", "end"), [(0, 100), (20, 60), (50, 40)])
def test_shares_of_the_job_add_up_where_steps_outlive_the_samples(begin: int, end: int) -> None:
    steps = SimpleNamespace(first_us=10, last_us=80)
    data: Any = SimpleNamespace(begin_us=begin, end_us=end, steps=steps)
    shares = [phase.percent for phase in tables.phases(data)]
    assert min(shares) >= 0
    assert sum(shares) == pytest.approx(100)
