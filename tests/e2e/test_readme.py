"""The README as a newcomer follows it: every file in it is written, every command is run."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree.ElementTree import fromstring

import pytest

from builtin_rules import RULES
from smdebug.storage import aws

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
BLOCKS = BLOCK.findall((ROOT / "README.md").read_text())
# The two commands that set up everything; the project's CI runs them, and this is inside one.
SET_UP = [text for kind, text in BLOCKS if kind == "sh" and text.startswith("./scripts/demo")]
CONTAINED = [text for kind, text in BLOCKS if kind == "sh" and "rule-runner docker run" in text]
DOCKER = [
    text for kind, text in BLOCKS if kind == "sh" and "docker run" in text and text not in CONTAINED
]
CLOUD = [text for kind, text in BLOCKS if kind == "sh" and re.search("s3://|eventbridge:", text)]
TORCH = [text for kind, text in BLOCKS if kind == "sh" and "train_torch" in text]
PLAIN = [text for kind, text in BLOCKS if kind == "sh" and "plain_torch" in text]
OTHERS = {*SET_UP, *DOCKER, *CONTAINED, *CLOUD, *TORCH, *PLAIN}
COMMANDS = [text for kind, text in BLOCKS if kind == "sh" and text not in OTHERS]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a folder with the README's files, and the virtual environment of these tests."""
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / ".venv").symlink_to(sys.prefix)
    for kind, text in BLOCKS:
        if kind == "python":
            (folder / text.splitlines()[0].removeprefix("# ")).write_text(text)
    return folder


def run(script: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_block_is_known() -> None:
    kinds = [kind for kind, _ in BLOCKS]
    assert kinds == [
        *("sh", "sh", "python", "sh", "text", "sh", "sh", "python", "sh"),
        *("python", "sh", "python", "sh", "sh", "sh"),
        *("python", "sh", "python", "sh", "sh", "sh", "sh", "sh", "sh"),
    ]
    assert (len(SET_UP), len(TORCH), len(PLAIN), len(COMMANDS)) == (1, 1, 1, 9)
    assert (len(DOCKER), len(CONTAINED), len(CLOUD)) == (2, 1, 2)
    assert [line.split()[0] for line in SET_UP[0].splitlines()] == [
        "./scripts/demo",
        "./scripts/test",
    ]
    assert all(os.access(ROOT / "scripts" / name, os.X_OK) for name in ("demo", "test"))


def test_the_commands_do_what_the_readme_says(home: Path) -> None:
    shown = []
    for text in COMMANDS:
        done = run(text, home)
        assert (done.returncode, done.stderr) == (0, ""), text
        shown.append(done.stdout)
    (printed,) = (text for kind, text in BLOCKS if kind == "text")
    assert shown[1].endswith(printed)
    two = json.loads(shown[2][shown[2].index("{") :])
    assert [(rule["configuration_name"], rule["outcome"]) for rule in two["rules"]] == [
        ("VanishingGradient", "NoIssuesFound"),
        ("loss", "NoIssuesFound"),
    ]
    suites = fromstring((home / "out" / "all.xml").read_text())  # noqa: S314 - our own report
    assert (suites.get("tests"), suites.get("failures")) == (str(len(RULES)), "0")
    (log,) = json.loads((home / "out" / "ci.sarif").read_text())["runs"]
    assert [(one["ruleId"], one["level"]) for one in log["results"]] == [
        ("VanishingGradient", "warning")
    ]
    assert shown[4].startswith("Gradients (VanishingGradient): NoIssuesFound\n")
    assert "IssuesFound at step 0" in shown[5]
    assert shown[6].startswith("[0, 10, 20] ['loss'] [0.18181818]\n")
    assert shown[6].endswith("The training job has ended.\n")
    assert "VanishingGradient" in (home / "runs.html").read_text()


def test_the_hook_does_what_the_readme_says(home: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed.")
    done = run(TORCH[0], home)
    assert (done.returncode, done.stderr) == (0, "")
    verdicts = re.findall(r"^(\w+): (\w+)$", done.stdout, re.MULTILINE)
    assert verdicts == [
        ("VanishingGradient", "NoIssuesFound"),
        ("ExplodingTensor", "NoIssuesFound"),
    ]


def test_training_is_stopped_as_the_readme_says(home: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed.")
    done = run(PLAIN[0], home)
    assert (done.returncode, done.stdout) == (10, "")
    assert "VanishingGradient: IssuesFound at step 0\n" in done.stderr


def test_the_cloud_is_told_as_the_readme_says(home: Path, aws_endpoint: str) -> None:
    del aws_endpoint  # in the environment
    assert run("python train.py", home).returncode == 0
    s3 = aws.client("s3")
    s3.create_bucket(Bucket="my-bucket")
    for file in (home / "runs/mine").rglob("*.*"):
        s3.upload_file(str(file), "my-bucket", file.relative_to(home).as_posix())
    aws.client("events").create_event_bus(Name="my-bus")
    in_s3, told = (run(text, home) for text in CLOUD)
    assert (in_s3.returncode, in_s3.stderr) == (0, "")
    assert "Results: s3://my-bucket/rules/mine\n" in in_s3.stdout
    held = s3.list_objects_v2(Bucket="my-bucket", Prefix="rules/mine/")["Contents"]
    assert "rules/mine/report.html" in {one["Key"] for one in held}
    assert (told.returncode, told.stderr) == (0, "")
    assert "action email (m***@example.com): done." in told.stdout
    assert "VanishingGradient IssuesFound\n" in told.stdout
    finding = json.loads((home / "out/finding.json").read_text())
    assert (finding["rule"], finding["step"]) == ("VanishingGradient", 130)
    assert len((home / "out/events.jsonl").read_text().splitlines()) == 3


def test_doctor_finds_nothing_wrong_with_the_trial(home: Path) -> None:
    done = run("python train.py && rule-runner doctor runs/mine", home)
    assert done.returncode == 0, done.stdout


@pytest.mark.docker
def test_the_image_does_what_the_readme_says(home: Path) -> None:
    image = os.environ.get("RULE_RUNNER_IMAGE")
    if not image or shutil.which("docker") is None:
        pytest.skip("RULE_RUNNER_IMAGE names no image: build one with scripts/build_image.")
    (home / "out").mkdir()
    assert run("python train.py", home).returncode == 0
    for text in DOCKER:
        script = "\n".join(
            line for line in text.splitlines() if not line.startswith("./scripts/build_image")
        )
        done = run(
            re.sub(r"(?m)(^\s*|mine:\S+:ro\" )rule-runner\b", rf"\g<1>{image}", script), home
        )
        assert done.returncode == 0, done.stderr
        assert "VanishingGradient: IssuesFound" in done.stdout


@pytest.mark.docker
def test_evaluations_are_contained_as_the_readme_says(home: Path) -> None:
    image = os.environ.get("RULE_RUNNER_IMAGE")
    if not image:
        pytest.skip("RULE_RUNNER_IMAGE names no image: build one with scripts/build_image.")
    assert run("python train.py", home).returncode == 0
    done = run(CONTAINED[0].replace("--image rule-runner", f"--image {image}"), home)
    assert done.returncode == 0, done.stderr
    assert "VanishingGradient: IssuesFound at step 130" in done.stdout
    assert "mine (LossAbove): IssuesFound at step 0" in done.stdout
