import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rule_core.format import paths
from rule_core.format.paths import ReductionName, StepFile

STEPS = st.integers(0, 2**63 - 1)
PLAIN_WORKERS = st.from_regex(r"[a-z][a-z0-9_]{0,12}", fullmatch=True)
DEVICES = st.from_regex(r"(/[a-z]{1,5}(:[A-Z0-9]{1,3}){0,2}){1,4}", fullmatch=True)


@given(
    PLAIN_WORKERS | DEVICES,
    st.sampled_from(["TRAIN", "EVAL", "PREDICT", "GLOBAL", "1.TRAIN", "12.EVAL.3", "TRAIN.0"]),
)
def test_parts_have_workers(worker: str, rest: str) -> None:
    assert paths.worker_of(f"{worker}@{rest}") == worker
    assert paths.worker_of(worker) == worker


@pytest.mark.parametrize("worker", ["me@laptop", "a@TRAINING", "@TRAIN", "a@x.TRAIN", "a@train"])
def test_other_names_with_an_at_sign_are_workers(worker: str) -> None:
    assert paths.worker_of(worker) == worker


@given(STEPS, PLAIN_WORKERS | DEVICES)
def test_index_names_hold_step_and_worker(step: int, worker: str) -> None:
    key = paths.index_key(step, worker)
    assert paths.parse_index_key(key) == StepFile(step, worker)
    assert key.startswith(paths.index_shard(step))
    assert paths.is_inside(key)
    assert paths.is_inside(paths.event_key(step, worker))
    expected = (key, paths.event_key(step, worker))
    assert paths.step_keys(step, worker) == expected


@given(st.from_regex(r"[0-9\u0663]{11,14}_?[a_\ud800]{0,2}\.(json|csv|txt)", fullmatch=True))
def test_names_are_taken_apart_alike_however_long_their_numbers(name: str) -> None:
    result = re.fullmatch(r"(\d{1,19})_([^\ud800-\udfff]+)\.(?:json|csv)", name)
    expected = result and StepFile(int(result[1]), paths.worker_from_file_name(result[2]))
    assert paths.parse_index_key(f"index/{name}") == expected


@given(PLAIN_WORKERS | DEVICES)
def test_collections_names_hold_the_worker(worker: str) -> None:
    assert paths.parse_collections_key(paths.collections_key(worker)) == worker


@pytest.mark.parametrize(
    ("worker", "text"),
    [
        ("worker_0", "worker_0"),
        ("/job:worker/replica:0/task:0/device:GPU:1", "_job-worker_replica-0_task-0_device-GPU-1"),
        ("a__b-c", "a__b-c"),
    ],
)
def test_only_device_names_change_in_file_names(worker: str, text: str) -> None:
    assert paths.worker_to_file_name(worker) == text
    assert paths.worker_from_file_name(text) == worker


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("index/000000000/000000000003_worker_0.json", StepFile(3, "worker_0")),
        ("index/000000000/000000000003_worker_0.csv", StepFile(3, "worker_0")),
        ("index/run__7/3_worker_0.json", StepFile(3, "worker_0")),
        ("index/2000000/2000000000_w.json", StepFile(2_000_000_000, "w")),
        ("index/1000000000/1000000000001_w.json", StepFile(10**12 + 1, "w")),
        ("3_a\nb.json", StepFile(3, "a\nb")),
        ("index/x_worker_0.json", None),
        ("index/3_.json", None),
        ("index/3.json", None),
        ("index/_worker_0.json", None),
        ("index/-3_worker_0.json", None),
        ("index/3_worker_0.json.tmp", None),
        ("index/3_worker_0.txt", None),
        ("index/9223372036854775808_w.json", None),
        ("index/3_\udcff.json", None),
        ("index/99999999999999999999_w.json", None),
        ("", None),
    ],
)
def test_index_names_are_taken_apart(key: str, expected: StepFile | None) -> None:
    assert paths.parse_index_key(key) == expected


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("collections/000000000/worker_0_collections.json", "worker_0"),
        ("collections/000000000/_a-b_collections.ts", "/a:b"),
        ("collections/000000000/_collections.json", None),
        ("collections/000000000/worker_0_collections.json.tmp", None),
        ("collections/000000000/worker_0.json", None),
        ("collections/000000000/\udcff_collections.json", None),
    ],
)
def test_collections_names_are_taken_apart(key: str, expected: str | None) -> None:
    assert paths.parse_collections_key(key) == expected


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("events/000000000003/x.tfevents", True),
        ("x", True),
        ("..x/.y/z..", True),
        ("", False),
        ("/", False),
        ("/etc/passwd", False),
        ("../x", False),
        ("a/../b", False),
        ("a/./b", False),
        ("a//b", False),
        ("a/", False),
        ("a/..", False),
        ("a\0b", False),
        ("..\\x", False),
    ],
)
def test_keys_stay_inside(key: str, expected: bool) -> None:
    assert paths.is_inside(key) is expected


@given(st.text(max_size=30), st.sampled_from(["min", "l2", "median"]), st.booleans())
def test_reduction_names_are_taken_apart(tensor: str, operation: str, absolute: bool) -> None:
    name = paths.reduction_record_name(tensor, operation, absolute)
    assert paths.parse_reduction_name(name) == ReductionName(tensor, operation, absolute)


@pytest.mark.parametrize(
    "name", ["w", "smdebug/reductions/mean", "x/smdebug/reductions/mean/w", ""]
)
def test_other_names_are_no_reductions(name: str) -> None:
    assert paths.parse_reduction_name(name) is None
