"""Answers as system metrics of their nodes."""

from pathlib import Path

import pytest
from prometheus_writer import BEGAN_S, gpu_series, series, write_answer, write_node

from rule_core.trials.profiler_trial import ProfilerTrial

END_US = BEGAN_S * 2 * 1_000_000


def test_answers_in_a_folder_are_one_trial(tmp_path: Path) -> None:
    for host in ("gpu_box.1", "gpu-box-2"):
        write_node(tmp_path / host, [[50, 60], [70, 80]], host=host)
    trial = ProfilerTrial("job", tmp_path)
    assert trial.nodes == ["gpu-box-2", "gpu-box.1"]
    assert trial.loaded_all_steps
    assert trial.problems == []
    samples = trial.system_samples(0, END_US)
    use = samples.of(dimension="GPUUtilization", node="gpu-box.1")
    assert use.value.tolist() == [50, 70, 60, 80]
    assert (use.time_us / 1e6 - BEGAN_S).tolist() == [0, 0, 15, 15]
    assert {key.type for key in samples.keys} == {"gpu", "gpu_extra"}


def test_one_answer_is_a_trial(tmp_path: Path) -> None:
    gpu = gpu_series("DCGM_FI_DEV_GPU_UTIL", 0, [5.0])
    path = write_answer(tmp_path, "a.json", gpu)
    write_answer(tmp_path, "b.json", gpu_series("DCGM_FI_DEV_GPU_UTIL", 0, [5.0], host="other"))
    assert ProfilerTrial("job", path).nodes == ["gpu-box"]


def test_samples_of_days_are_in_a_file_for_each_hour(tmp_path: Path) -> None:
    write_answer(tmp_path, "a.json", gpu_series("DCGM_FI_DEV_GPU_UTIL", 0, range(100), step_s=1800))
    trial = ProfilerTrial("job", tmp_path)
    files = trial.source.files.system["gpu-box"]
    assert len(files) == 50
    starts = [trial.system_samples(file.start_us, file.start_us + 1) for file in files]
    assert [samples.value[0] for samples in starts] == [*range(0, 100, 2)]


@pytest.mark.parametrize(
    ("instances", "nodes"),
    [
        (["10.0.0.1:9400"], ["gpu-box"]),
        (["10.0.0.2:9400"], ["10.0.0.1", "gpu-box"]),
        (["10.0.0.1:9400", "10.0.0.1:9401"], ["10.0.0.1", "gpu-box", "gpu-box-1"]),
    ],
)
def test_metrics_of_the_host_belong_to_the_node_of_its_gpus(
    tmp_path: Path, instances: list[str], nodes: list[str]
) -> None:
    gpus = [
        gpu_series(
            "DCGM_FI_DEV_GPU_UTIL",
            0,
            [5, 6],
            host=f"gpu-box{number or ''}".replace("x1", "x-1"),
            instance=instance,
        )
        for number, instance in enumerate(instances)
    ]
    core = {"cpu": "0", "mode": "idle", "instance": "10.0.0.1:9100"}
    write_answer(tmp_path, "a.json", *gpus, series("node_cpu_seconds_total", [1, 2], **core))
    assert ProfilerTrial("job", tmp_path).nodes == nodes


def test_bad_answers_are_named_and_the_others_are_read(tmp_path: Path) -> None:
    write_node(tmp_path, [[50]])
    write_answer(tmp_path, "other.json", series("up", [1]))
    (tmp_path / "error.json").write_text('{"status":"error","errorType":"x","error":"y"}')
    (tmp_path / "cut.json").write_text('{"status":"success","data":{"resultType":"matr')
    trial = ProfilerTrial("job", tmp_path)
    assert trial.nodes == ["gpu-box"]
    assert sorted(text.split(":")[0] for text in trial.problems) == [
        "cut.json",
        "error.json",
        "other.json",
    ]


def test_implausible_times_are_left_out(tmp_path: Path) -> None:
    gpu = gpu_series("DCGM_FI_DEV_GPU_UTIL", 0, [1, 2, 3])
    gpu["values"][0][0], gpu["values"][2][0] = -5, 1e18
    write_answer(tmp_path, "a.json", gpu)
    trial = ProfilerTrial("job", tmp_path)
    assert trial.system_samples(0, END_US).value.tolist() == [2]
    gpu["values"] = gpu["values"][:1]
    write_answer(tmp_path, "a.json", gpu)
    assert "It has no value that is read." in ProfilerTrial("job", tmp_path).problems[0]
