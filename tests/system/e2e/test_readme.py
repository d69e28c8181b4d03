"""The README and its guides as newcomers follow them: every file is written, every command run."""

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from xml.etree.ElementTree import fromstring

import pytest

from builtin_rules import RULES
from rule_core.storage import aws

ROOT = Path(__file__).parents[3]
PAGES = (
    "README.md",
    "docs/evaluate.md",
    "docs/giant-trials.md",
    "docs/write-a-rule.md",
    "docs/hooks.md",
    "docs/api.md",
)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
BLOCKS = [block for page in PAGES for block in BLOCK.findall((ROOT / page).read_text())]
SHELL = [text for kind, text in BLOCKS if kind == "sh"]
PRINTED = [text for kind, text in BLOCKS if kind == "text"]
# The installation into an environment of one's own, which this is inside of, and the two commands
# that set up everything, which the project's CI runs.
SET_UP = [text for text in SHELL if text.startswith(("./scripts/demo", "pip install"))]
CONTAINED = [text for text in SHELL if "rule-runner docker run" in text]
DOCKER = [text for text in SHELL if "docker run" in text and text not in CONTAINED]
CLOUD = [text for text in SHELL if re.search("s3://|eventbridge:", text)]
TORCH = [text for text in SHELL if "train_torch" in text]
FIRST = [text for text in SHELL if "your_script" in text]
CALLBACKS = {
    match[1]: text
    for text in SHELL
    if (match := re.match(r"python train_(lightning|transformers|keras)\.py$", text, re.MULTILINE))
}
SEPARATE = {*SET_UP, *DOCKER, *CONTAINED, *CLOUD, *TORCH, *FIRST, *CALLBACKS.values()}
COMMANDS = [text for text in SHELL if text not in SEPARATE]


def furnished(folder: Path) -> Path:
    """Make a folder with the README's files, and the virtual environment of these tests."""
    folder.mkdir()
    (folder / ".venv").symlink_to(sys.prefix)
    for kind, text in BLOCKS:
        if kind in {"python", "yaml"}:
            (folder / text.splitlines()[0].removeprefix("# ")).write_text(text)
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return furnished(tmp_path / "home")


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """Run all commands in order; return their folder and what each block printed."""
    folder = furnished(tmp_path_factory.mktemp("readme") / "home")
    printed = []
    for text in COMMANDS:
        done = run(text, folder)
        assert (done.returncode, done.stderr) == (0, ""), text
        printed.append(done.stdout)
    return folder, printed


def run(script: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    path = f"{folder}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_block_is_known() -> None:
    assert {kind for kind, _ in BLOCKS} == {"sh", "python", "text", "yaml", "toml", "dockerfile"}
    assert (len(SET_UP), len(TORCH), len(FIRST), len(COMMANDS)) == (2, 1, 2, 11)
    assert [*CALLBACKS] == ["lightning", "transformers", "keras"]
    assert (len(DOCKER), len(CONTAINED), len(CLOUD)) == (2, 1, 2)
    assert [line.split()[0] for line in SET_UP[1].splitlines()] == [
        "./scripts/demo",
        "./scripts/test",
    ]
    assert all(os.access(ROOT / "scripts" / name, os.X_OK) for name in ("demo", "test"))


def test_the_readme_is_short_and_its_picture_small() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(text.split()) <= 1_150
    (picture,) = re.findall(r"!\[[^]]+\]\((.+?)\)", text)
    assert (ROOT / picture).stat().st_size < 200_000


def test_every_documented_container_names_its_user() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    texts = [text for page in pages for _, text in BLOCK.findall(page.read_text())]
    commands = [line for text in texts for line in text.replace("\\\n", "").splitlines()]
    started = [line for line in commands if re.match(r"\s*docker run\b", line)]
    assert len(started) >= 2
    assert [line for line in started if "--user " not in line] == []


def test_the_commands_do_what_the_readme_says(walked: tuple[Path, list[str]]) -> None:
    home, printed = walked
    address, judged, own_rule, rules_and_formats, job, _report, giant, sharded, *printed = printed
    assert ".dkr.ecr.eu-west-1.amazonaws.com/" in address
    explored, tested, recorded = printed
    table = PRINTED[2]
    verdict = "VanishingGradient: IssuesFound at step 130 (warning)\n"
    assert verdict in giant
    assert verdict in sharded
    assert "Measured 20 parts of steps as shard 0/2: 1 files in out/measures\n" in sharded
    assert "Checked 1 trial: 1 broken.\n" in judged
    assert judged.endswith(table)
    assert "IssuesFound at step 0" in own_rule
    two = json.loads(rules_and_formats[rules_and_formats.index("{") :])
    assert [(rule["configuration_name"], rule["outcome"]) for rule in two["rules"]] == [
        ("VanishingGradient", "NoIssuesFound"),
        ("loss", "NoIssuesFound"),
    ]
    suites = fromstring((home / "out" / "all.xml").read_text())
    assert (suites.get("tests"), suites.get("failures")) == (str(len(RULES)), "0")
    (log,) = json.loads((home / "out" / "ci.sarif").read_text())["runs"]
    assert [(result["ruleId"], result["level"]) for result in log["results"]] == [
        ("VanishingGradient", "warning")
    ]
    assert job.startswith("Gradients (VanishingGradient): NoIssuesFound\n")
    assert explored.startswith("[0, 10, 20] ['loss'] [0.18181818]\n")
    assert "] The condition of rule LossAbove was met at step 0.\n" in explored
    assert explored.endswith("The training job has ended.\n")
    assert "VanishingGradient" in (home / "runs.html").read_text()
    assert tested == "loss.rules.yaml: 3 of 3 passed\n3 cases: 3 passed, 0 failed.\n"
    assert recorded.startswith("Recorded 1 tensor at 5 steps in case.npz.\n")
    assert recorded.endswith("1 case: 1 passed, 0 failed.\n")
    assert "expect: {status: IssuesFound, step: 0" in (home / "recorded.rules.yaml").read_text()


def check_second_run(script: str, folder: Path) -> None:
    """Run a block again: it works, or ends with one sentence that has the remedy."""
    done = run(script, folder)
    assert done.returncode in {0, 73}, done.stderr
    assert re.fullmatch(r"([^\n]+ (Choose another|Use --overwrite) [^\n]+\.\n)*", done.stderr)
    assert done.returncode == 0 or done.stderr, script


@pytest.mark.parametrize("number", range(len(COMMANDS)))
def test_a_second_run_works_or_says_how(walked: tuple[Path, list[str]], number: int) -> None:
    check_second_run(COMMANDS[number], walked[0])


def test_invoke_rule_prints_what_the_readme_says(walked: tuple[Path, list[str]]) -> None:
    done = run("python invoke.py", walked[0])
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.partition("] ")[2] for line in done.stdout.splitlines()]
    assert lines == [
        "Started rule LossAbove at step 0.",
        "The condition of rule LossAbove was met at step 0.",
        "Ended rule LossAbove after step 90.",
    ]


def test_scripts_of_the_readme_run_twice(walked: tuple[Path, list[str]]) -> None:
    for script in ("train.py", "explore.py"):
        done = run(f"python {script}", walked[0])
        assert (done.returncode, done.stderr) == (0, ""), script


def test_the_hook_does_what_the_readme_says(home: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed.")
    done = run(TORCH[0], home)
    assert (done.returncode, done.stderr) == (0, "")
    verdicts = re.findall(r"^(\w+): (\w+)$", done.stdout, re.MULTILINE)
    assert verdicts == [
        ("VanishingGradient", "NoIssuesFound"),
        ("ExplodingTensor", "NoIssuesFound"),
    ]
    check_second_run(TORCH[0], home)


@pytest.mark.parametrize("framework", CALLBACKS)
def test_a_callback_does_what_the_guide_says(home: Path, framework: str) -> None:
    pytest.importorskip("torch", reason="torch is not installed.")
    if find_spec(framework) is None:  # Keras imports its backend
        pytest.skip(f"{framework} is not installed.")
    for _ in range(2):
        done = run(CALLBACKS[framework], home)
        assert done.returncode == 0, done.stderr
        judged = re.search(
            r": looks healthy, judged by (\d+) of \d+ rules from losses", done.stdout
        )
        assert judged, done.stdout
        assert int(judged[1]) >= 6


def test_results_in_python_are_what_the_guide_says(home: Path) -> None:
    pytest.importorskip("pandas", reason="pandas is not installed.")
    assert run("python train.py", home).returncode == 0
    done = run("python in_a_notebook.py", home)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    done = run("python results_in_python.py", home)
    assert (done.returncode, done.stderr) == (0, "")
    first, *rows, counts = done.stdout.splitlines()
    assert first.startswith("runs/mine suspicious ['")
    assert any("VanishingGradient" in row and "gradient/fc.weight" in row for row in rows)
    assert counts == "1 IssuesFound, 1 NoIssuesFound"


def numberless(text: str) -> str:
    """Return text without numbers, which differ between processors and days."""
    return re.sub(r"\d+(?:[.-]\d+)*", "N", text)


def test_the_first_commands_print_what_the_readme_says(home: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed.")
    for script, shown in zip(FIRST, PRINTED, strict=False):
        done = run(script, home)
        assert done.returncode == 0, done.stderr
        printed = numberless(done.stdout + done.stderr)
        for lines in numberless(shown).split("...\n"):
            before, found, printed = printed.partition(lines)
            assert found, (lines, before)
        if "train" in script:
            assert "\nGradientAccumulates: IssuesFound at step 4\n" in done.stderr


def test_the_cloud_is_used_as_the_readme_says(home: Path, aws_endpoint: str) -> None:
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
    _as_ordinary_user(home)
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


def _as_ordinary_user(home: Path) -> None:
    """Let `id` print user 1000 for root: the image never runs rules as root."""
    if os.geteuid():
        return
    os.chown(home / "out", 1000, 1000)
    (home / "id").write_text("#!/bin/sh\necho 1000\n")
    (home / "id").chmod(0o755)


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
