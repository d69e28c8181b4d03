"""docs/jobs.md: its names and limits are those of the product."""

import re
from pathlib import Path

from documents import blocks_in

from rule_runner.config.documents import DEPTH, LIMIT, NODES, parse_yaml
from rule_runner.config.job_file.definition import definition_of
from rule_runner.config.sagemaker_contract import contract_of, is_platform, is_reserved

TEXT = (Path(__file__).parents[3] / "docs" / "jobs.md").read_text()


def test_the_request_names_its_trial() -> None:
    (request,) = (block.code for block in blocks_in("docs/jobs.md") if block.file == "job.yaml")
    trial = definition_of(parse_yaml(request), "the job").trial
    assert trial == "s3://my-training/jobs/mnist-42/debug-output"


def test_names_that_are_no_parameters() -> None:
    table = TEXT.partition("These are not passed to the rule:")[2].partition("Values are")[0]
    names = re.findall(
        r"`([A-Za-z0-9_*]+)`", "".join(re.findall(r"^\| (.*?) \|", table, re.MULTILINE))
    )
    assert len(names) == 18
    for name in names:
        given = name.replace("*", "X")
        assert is_reserved(given) or is_platform(given), name
    assert contract_of({"other_trials": "a, b"}).other_trials == ("a", "b")


def test_limits() -> None:
    assert (LIMIT, DEPTH, f"{NODES:,}") == (1 << 20, 64, "100,000")
    assert "at most 1 MiB and 64 levels" in TEXT
    assert f"{NODES:,} values" in TEXT
