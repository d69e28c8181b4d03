"""The set-up behind the scripts: it asks for what is missing, and only a finished .venv counts."""

import shutil
import subprocess
from pathlib import Path

import pytest

LIBRARY = Path(__file__).parents[2] / "scripts" / "lib.sh"
# Stands in for every Python: makes a .venv that holds nothing but itself, and notes its calls.
PYTHON = """\
#!/bin/bash
case "$*" in
    *"-c import sys"*) exit {too_old} ;;
    *"-c import ensurepip"*) exit {no_venv} ;;
esac
echo "$*" >>{calls}
case "$*" in
    *"-m venv"*) mkdir -p "${{@: -1}}/bin" && cp "$0" "${{@: -1}}/bin/python" ;;
    *--editable*) [ ! -e {broken} ] ;;
esac
"""


class Checkout:
    """A checkout with lock files, on a machine whose only Python is the stand-in."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.lock = root / "requirements-dev.lock"
        self.broken = root / "broken"
        self._calls = root / "calls"
        (root / "scripts").mkdir()
        shutil.copy(LIBRARY, root / "scripts" / "lib.sh")
        for name in ("pyproject.toml", "requirements-dev.lock", "requirements-build.lock"):
            (root / name).write_text(f"{name}\n", encoding="utf-8")
        self.programs = root / "programs"
        self.programs.mkdir()
        for tool in ("bash", "cat", "cp", "dirname", "mkdir", "rm"):
            (self.programs / tool).symlink_to(shutil.which(tool) or tool)

    def add_python(self, name: str, *, too_old: bool = False, no_venv: bool = False) -> None:
        text = PYTHON.format(
            calls=self._calls, broken=self.broken, too_old=int(too_old), no_venv=int(no_venv)
        )
        (self.programs / name).write_text(text, encoding="utf-8")
        (self.programs / name).chmod(0o755)

    def ensure_venv(self) -> subprocess.CompletedProcess[str]:
        bash = self.programs / "bash"
        return subprocess.run(
            [bash, "-c", "source scripts/lib.sh; ensure_venv"],
            check=False,
            capture_output=True,
            text=True,
            cwd=self.root,
            env={"PATH": str(self.programs)},
        )

    def times_set_up(self) -> int:
        return self._calls.read_text("utf-8").count("-m venv")


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_without_a_python_the_scripts_say_what_to_install(checkout: Checkout) -> None:
    checkout.add_python("python3", too_old=True)
    done = checkout.ensure_venv()
    assert done.returncode == 1
    assert done.stderr == (
        "No Python 3.11 or newer was found: install one with its venv module, "
        "on Debian with 'apt-get install python3 python3-venv'.\n"
    )


def test_without_the_venv_module_the_scripts_say_what_to_install(checkout: Checkout) -> None:
    checkout.add_python("python3.11", no_venv=True)
    done = checkout.ensure_venv()
    assert done.returncode == 1
    assert done.stderr == (
        "The venv module of python3.11 is missing: install it, "
        "on Debian with 'apt-get install python3-venv'.\n"
    )


def test_a_python_with_venv_is_preferred_to_one_without(checkout: Checkout) -> None:
    checkout.add_python("python3.11", no_venv=True)
    checkout.add_python("python3")
    assert checkout.ensure_venv().returncode == 0


def test_a_finished_environment_is_used_again_at_once(checkout: Checkout) -> None:
    checkout.add_python("python3.11")
    assert [checkout.ensure_venv().returncode for _ in range(2)] == [0, 0]
    assert checkout.times_set_up() == 1


def test_a_changed_lock_file_sets_up_again(checkout: Checkout) -> None:
    checkout.add_python("python3.11")
    checkout.ensure_venv()
    checkout.lock.write_text("another version\n", encoding="utf-8")
    checkout.ensure_venv()
    assert checkout.times_set_up() == 2


def test_an_interrupted_set_up_is_not_believed(checkout: Checkout) -> None:
    checkout.add_python("python3.11")
    checkout.broken.touch()
    assert checkout.ensure_venv().returncode == 1
    checkout.broken.unlink()
    assert checkout.ensure_venv().returncode == 0
    assert checkout.times_set_up() == 2
