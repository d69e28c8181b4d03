"""The JSON schema of fleet.yaml accepts what is read, and says what each field means."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from click.testing import CliRunner

from rule_runner.cli import main
from rule_runner.config.documents import parse
from rule_runner.errors import JobError
from rule_runner.watch.config import WatchConfig, checked
from rule_runner.watch.config_schema import config_schema

SCHEMA = json.loads(config_schema())
ALERTS = {"sinks": ["apprise:$SLACK"]}


def test_every_field_is_described() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert [*SCHEMA["properties"]] == [*WatchConfig.__struct_fields__]
    for struct in (SCHEMA, *SCHEMA["$defs"].values()):
        texts = [struct["description"]]
        texts += [field["description"] for field in struct["properties"].values()]
        assert all(text.endswith(".") and "`" not in text[:1] for text in texts), texts


def test_nothing_depends_on_the_machine() -> None:
    assert "default" not in SCHEMA["properties"]["max_concurrent"]


def test_the_documented_configurations_are_valid() -> None:
    text = (Path(__file__).parents[4] / "docs" / "watch.md").read_text()
    blocks = [
        block for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL) if "roots" in block
    ]
    assert blocks
    for block in blocks:
        jsonschema.validate(yaml.safe_load(block), SCHEMA)
        checked(parse(block, ".yaml"), "docs/watch.md")


@pytest.mark.parametrize(
    "wrong",
    [
        {"rots": []},
        {"roots": "runs"},
        {"judge": [{"trials": "*"}]},
        {"judge": [{"rules": ["a"], "job": "b"}]},
        {"judge": [{"ignore": False}]},
        {"quiet_after": "15"},
        {"look_every": "1y"},
        {"max_concurrent": 0},
        {"alerts": {}},
        {"alerts": ALERTS | {"sink": "x"}},
        {"alerts": ALERTS | {"severity": "note"}},
        {"alerts": ALERTS | {"digest_every": "x"}},
    ],
)
def test_what_is_refused_is_refused_by_both(wrong: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, SCHEMA)
    with pytest.raises(JobError):
        checked(wrong, "x")


def test_the_command_prints_it() -> None:
    done = CliRunner().invoke(main, ["rules", "fleet-schema"])
    assert (done.exit_code, json.loads(done.stdout)) == (0, SCHEMA)
