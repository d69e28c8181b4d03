"""The files that GitHub, editors and git hooks read, and what they call."""

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml"))
SCRIPT = re.compile(r"(?<!\S)(?:\./)?((?:scripts|\.ci)/\w+)")
LIMIT = "The subject of a commit must have at most 72 characters; give reasons in the body.\n"


def loaded(path: Path) -> Any:
    return yaml.safe_load(path.read_text("utf-8"))


def steps(workflow: Path) -> list[dict[str, Any]]:
    return [step for job in loaded(workflow)["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize(
    ("schema", "paths"),
    [
        ("github-workflows", WORKFLOWS),
        ("dependabot", [ROOT / ".github" / "dependabot.yml"]),
    ],
)
def test_files_of_the_forge_are_valid(schema: str, paths: list[Path]) -> None:
    program = Path(sys.executable).parent / "check-jsonschema"
    command = [program, "--builtin-schema", f"vendor.{schema}", *paths]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "ok -- validation done\n")


def test_what_is_called_can_be_run() -> None:
    hooks = [
        hook["entry"] for hook in loaded(ROOT / ".pre-commit-config.yaml")["repos"][0]["hooks"]
    ]
    commands = [step.get("run", "") for workflow in WORKFLOWS for step in steps(workflow)] + hooks
    called = {path for command in commands for path in SCRIPT.findall(command)}
    assert {"scripts/check", "scripts/test", "scripts/docs", ".ci/nightly"} < called
    assert [path for path in called if not os.access(ROOT / path, os.X_OK)] == []


def test_actions_of_others_are_pinned() -> None:
    """But for the one that publishes, which PyPI asks to take from a branch."""
    used = {step["uses"] for workflow in WORKFLOWS for step in steps(workflow) if "uses" in step}
    unpinned = {action for action in used if not re.search(r"@[0-9a-f]{40}$", action)}
    assert unpinned == {"pypa/gh-action-pypi-publish@release/v1"}


@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.name)
def test_a_form_asks_with_labels(form: Path) -> None:
    content = loaded(form)
    assert content.keys() == {"name", "description", "labels", "body"}
    assert all(field["attributes"]["label"] for field in content["body"])
    assert len({field["id"] for field in content["body"]}) == len(content["body"])


def test_the_devcontainer_sets_up_the_environment_of_the_scripts() -> None:
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text("utf-8"))
    assert "ensure_venv dev" in container["postCreateCommand"]


@pytest.mark.parametrize(
    ("message", "code"),
    [
        pytest.param(f"{'a' * 72}\n\n{'b' * 99}\n", 0, id="at-the-limit"),
        pytest.param(f"{'ä' * 72}\n", 0, id="characters-not-bytes"),
        pytest.param(f"# {'c' * 99}\n\n{'a' * 73}\n", 1, id="over-the-limit"),
        pytest.param(f"Merge branch '{'a' * 73}'\n", 0, id="merge"),
    ],
)
def test_the_subject_of_a_message_has_72_characters(
    message: str, code: int, tmp_path: Path
) -> None:
    path = tmp_path / "message"
    path.write_text(message, "utf-8")
    command = [ROOT / "scripts" / "check_subjects", path]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr.endswith(LIMIT)) == (code, code == 1)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed.")
def test_subjects_of_commits_that_main_lacks_are_checked(tmp_path: Path) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"]

    def git(*arguments: str) -> None:
        subprocess.run(
            ["git", *identity, *arguments], check=True, cwd=tmp_path, capture_output=True
        )

    def check() -> subprocess.CompletedProcess[str]:
        command = [ROOT / "scripts" / "check_subjects"]
        return subprocess.run(command, check=False, cwd=tmp_path, capture_output=True, text=True)

    assert check().returncode == 0  # no repository
    git("init", "--initial-branch=main")
    for subject in ("a" * 80, "short"):
        git("commit", "--allow-empty", "--message", subject)
    assert check().returncode == 0
    git("checkout", "-b", "topic")
    for subject in ("b" * 80, "short"):
        git("commit", "--allow-empty", "--message", subject)
    assert (check().returncode, check().stderr) == (1, f"{'b' * 80}\n{LIMIT}")


CHANGELOG = """\
# Changelog

## [Unreleased]

### Added

- One.

### Fixed

- Two.

## [0.1.0] - 2026-11-22

### Added

- Zero.
"""
RELEASED = """\
# Changelog

## [Unreleased]

## [0.2.0] - DATE

### Added

- One.
- Three.

### Fixed

- Two.

### Removed

- Four.

## [0.1.0] - 2026-11-22

### Added

- Zero.
"""


def test_a_release_takes_the_unreleased_lines_and_the_fragments(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    script = shutil.copy(ROOT / "scripts" / "release_notes", tmp_path / "scripts")
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG, "utf-8")
    (tmp_path / "changelog.d").mkdir()
    (tmp_path / "changelog.d" / ".gitkeep").touch()
    (tmp_path / "changelog.d" / "three.added.md").write_text("- Three.\n", "utf-8")
    (tmp_path / "changelog.d" / "four.removed.md").write_text("- Four.\n", "utf-8")
    subprocess.run([sys.executable, script, "0.2.0"], check=True)
    written = (tmp_path / "CHANGELOG.md").read_text("utf-8")
    assert re.sub(r"\d{4}-\d\d-\d\d(?=\n\n### Added\n\n- One)", "DATE", written) == RELEASED
    assert [path.name for path in (tmp_path / "changelog.d").iterdir()] == [".gitkeep"]


def test_fragments_are_well_formed() -> None:
    list(runpy.run_path(str(ROOT / "scripts" / "release_notes"))["fragments"](ROOT / "changelog.d"))


@pytest.mark.parametrize(
    ("name", "text"), [("tokens.md", "- A.\n"), ("a.fixed.md", "A.\n"), ("a.new.md", "- A.\n")]
)
def test_a_file_that_is_no_fragment_is_refused(name: str, text: str, tmp_path: Path) -> None:
    fragments = runpy.run_path(str(ROOT / "scripts" / "release_notes"))["fragments"]
    (tmp_path / name).write_text(text, "utf-8")
    with pytest.raises(
        ValueError, match=f"Fragment '{name}' must be a list, named as in tokens.added.md"
    ):
        list(fragments(tmp_path))
