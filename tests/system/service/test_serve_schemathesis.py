"""`serve` against what schemathesis makes of its OpenAPI document: with a token and without."""

import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest
from serving import PATIENCE_S, Serving, write

from rule_runner.service.access.tokens import Role, TokenFile

SCHEMATHESIS: Final = shutil.which("schemathesis")
SECONDS: Final = 60  # with a token; less than until pytest dumps its stack
pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(SCHEMATHESIS is None, reason="schemathesis is not installed"),
]


@pytest.mark.parametrize("has_token", [True, False])
def test_every_answer_is_as_the_document_says(has_token: bool, tmp_path: Path) -> None:
    for name in "ab":
        write(tmp_path / "runs" / name, rows=200)
    secret = TokenFile(tmp_path / "tokens.json").add("ann", Role.ACT)
    with Serving(tmp_path, "runs", "--tokens", "tokens.json") as serving:
        events = serving.events(Authorization=f"Bearer {secret}")
        while events.get(timeout=PATIENCE_S) != "finding":
            pass
        document = tmp_path / "openapi.json"
        with serving.open("/api/v1/openapi.json", Authorization=f"Bearer {secret}") as answer:
            document.write_bytes(answer.read())
        # A stream of events does not end, and most actions have to wait.
        options = ["--exclude-path", "/api/v1/events", "--rate-limit", "auto", "--checks", "all"]
        token = ["--header", f"Authorization: Bearer {secret}"] if has_token else []
        command = [str(SCHEMATHESIS), "run", str(document), "--url", serving.url, *options, *token]
        done = subprocess.run(
            [*command, "--max-time", str(SECONDS)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout
    assert not [line for line in serving.log if "Traceback" in line]
