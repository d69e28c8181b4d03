import re
from collections.abc import Mapping

import pytest

from rule_runner.batch.shards import WHOLE, Shard, find_shard
from rule_runner.errors import UsageError

KUBERNETES = {"JOB_COMPLETION_INDEX": "2"}
BATCH = {"AWS_BATCH_JOB_ARRAY_INDEX": "2"}
SLURM = {"SLURM_ARRAY_TASK_ID": "14", "SLURM_ARRAY_TASK_COUNT": "3", "SLURM_ARRAY_TASK_MIN": "10"}


def test_each_line_belongs_to_one_shard() -> None:
    for count in range(1, 7):
        owners = [
            [index for index in range(count) if Shard(index, count).holds(line)]
            for line in range(20)
        ]
        assert all(len(owner) == 1 for owner in owners)


@pytest.mark.parametrize(
    ("option", "count", "environment", "shard"),
    [
        (None, None, {}, WHOLE),
        (None, 1, {}, WHOLE),
        ("3/4", None, KUBERNETES, Shard(3, 4)),
        (None, 5, KUBERNETES, Shard(2, 5)),
        (None, 5, BATCH, Shard(2, 5)),
        (None, None, BATCH | {"AWS_BATCH_JOB_ARRAY_SIZE": "3"}, Shard(2, 3)),
        (None, None, SLURM | {"SLURM_ARRAY_TASK_STEP": "2"}, Shard(2, 3)),
        (None, None, SLURM | {"SLURM_ARRAY_TASK_ID": "11"}, Shard(1, 3)),
        (None, 20, SLURM, Shard(14, 20)),
    ],
)
def test_the_option_or_the_engine_names_the_shard(
    option: str | None, count: int | None, environment: Mapping[str, str], shard: Shard
) -> None:
    assert find_shard(option, count, environment) == shard


@pytest.mark.parametrize(
    ("option", "count", "environment", "message"),
    [
        ("1", None, {}, "must be I/N, such as 0/4 for the first of four, got '1'"),
        ("4/4", None, {}, "shards count from 0, and the last of 4 shards is 3"),
        ("1/1", None, {}, "the only shard is 0"),
        ("0/0", None, {}, "there must be at least one shard"),
        ("0/2", 2, {}, "--shard and --shards cannot be combined"),
        (None, 4, {}, "--shards 4 needs the index of this process: give --shard I/4"),
        (None, None, KUBERNETES, "Give --shards N, the job's number of completions"),
        (None, 2, KUBERNETES, "JOB_COMPLETION_INDEX=2 does not exist"),
        (None, None, BATCH, "AWS_BATCH_JOB_ARRAY_SIZE is not set"),
        (None, None, BATCH | KUBERNETES, "are set, so the shard is unclear. Give --shard I/N"),
        (None, None, {"JOB_COMPLETION_INDEX": "-1"}, "must be a whole number >= 0, got '-1'"),
        (None, None, {"SLURM_ARRAY_TASK_ID": "0"}, "SLURM_ARRAY_TASK_COUNT and SLURM_ARRAY"),
        (None, None, SLURM, "has no place in its array of 3 tasks from 10 in steps of 1"),
        (None, None, SLURM | {"SLURM_ARRAY_TASK_STEP": "3"}, "Give --shards N"),
        (None, None, SLURM | {"SLURM_ARRAY_TASK_ID": "9"}, "has no place in its array"),
    ],
)
def test_what_is_no_shard_is_refused_with_the_remedy(
    option: str | None, count: int | None, environment: Mapping[str, str], message: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        find_shard(option, count, environment)
