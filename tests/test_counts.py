"""scripts/counts: a change must not raise the share of names that say nothing."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "counts"


def git(root: Path, *arguments: str) -> None:
    author = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    subprocess.run(["git", "-C", str(root), *author, *arguments], check=True)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a repository with one filler name among 100 on `main`, and a branch."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed.")
    module = tmp_path / "rule_core" / "trial.py"
    module.parent.mkdir()
    module.write_text("text = 0\n" + "".join(f"step_{n} = {n}\n" for n in range(99)))
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "Begin")
    git(tmp_path, "checkout", "-qb", "branch")
    return tmp_path


def counts(root: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, SCRIPT, *options, root], capture_output=True, text=True, check=False
    )


def test_a_filler_name_is_reported_and_its_growth_refused(checkout: Path) -> None:
    (checkout / "rule_core" / "reader.py").write_text("place = 1\n")
    done = counts(checkout)
    assert "Filler names that this change adds: place 1. Name what they hold.\n" in done.stderr
    assert "Over the limit: ['filler names per 1,000 bindings']." in done.stderr
    assert done.returncode == 1


def test_a_moved_module_adds_no_names(checkout: Path) -> None:
    (checkout / "rule_core" / "trial.py").rename(checkout / "rule_core" / "trials.py")
    done = counts(checkout)
    assert (done.returncode, done.stderr) == (0, "")


def test_names_new_to_the_product_are_listed(checkout: Path) -> None:
    (checkout / "rule_core" / "reader.py").write_text("step_1 = folder = 1\n")
    done = counts(checkout, "--where")
    assert done.returncode == 0
    assert "names new to the product: folder 1\n" in done.stderr


def test_an_export_without_a_repository_is_counted(tmp_path: Path) -> None:
    (tmp_path / "rule_core").mkdir()
    (tmp_path / "rule_core" / "trial.py").write_text("step = 1\n")
    assert counts(tmp_path).returncode == 0
