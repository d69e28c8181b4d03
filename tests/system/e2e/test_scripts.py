"""The scripts: the set-up behind them, and the check of a release."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

LIBRARY = Path(__file__).parents[3] / "scripts" / "lib.sh"
SET_UP_FROM = ("pyproject.toml", "uv.lock")
RUNTIME = "rule-runner build"
# Stands in for every Python: makes a .venv that holds nothing but itself, and notes its calls.
PYTHON = """\
#!/bin/bash
case "$*" in
    *"-c import sys"*) exit {too_old} ;;
    *"-c import ensurepip"*) exit {no_venv} ;;
    *"-c import rule_core.kernels"*) exit 1 ;;
esac
echo "$*" >>{calls}
case "$*" in
    *"-m venv"*) mkdir -p "${{@: -1}}/bin" && cp "$0" "${{@: -1}}/bin/python" ;;
    *--editable*) [ ! -e {broken} ] ;;
    *--require-hashes*)
        [ ! -e {offline} ] || {{ echo "ERROR: no network" >&2 && exit 1; }}
        echo "Collecting numpy==2.4.6 (from -r requirements.txt)"
        echo "Installing collected packages: numpy" ;;
esac
"""


class Checkout:
    """A checkout with a lock file, on a machine whose only Python is the stand-in."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.broken = root / "broken"
        self.offline = root / "offline"
        self._calls = root / "calls"
        (root / "scripts").mkdir()
        shutil.copy(LIBRARY, root / "scripts" / "lib.sh")
        self.kernel = root / "rule_core" / "kernels" / "_sweep.c"
        self.kernel.parent.mkdir(parents=True)
        for name in (*SET_UP_FROM, "setup.py", "rule_core/kernels/_sweep.c"):
            (root / name).write_text(f"{name}\n", encoding="utf-8")
        self.programs = root / "programs"
        self.programs.mkdir()
        for tool in ("bash", "cat", "cp", "dirname", "mkdir", "rm", "sed"):
            (self.programs / tool).symlink_to(shutil.which(tool) or tool)

    def add_python(self, name: str, *, too_old: bool = False, no_venv: bool = False) -> None:
        text = PYTHON.format(
            calls=self._calls,
            broken=self.broken,
            offline=self.offline,
            too_old=int(too_old),
            no_venv=int(no_venv),
        )
        (self.programs / name).write_text(text, encoding="utf-8")
        (self.programs / name).chmod(0o755)

    def ensure_venv(self, tools: str = "") -> subprocess.CompletedProcess[str]:
        bash = self.programs / "bash"
        return subprocess.run(
            [bash, "-c", f"source scripts/lib.sh; ensure_venv {tools}"],
            check=False,
            capture_output=True,
            text=True,
            cwd=self.root,
            env={"PATH": str(self.programs)},
        )

    def times_set_up(self) -> int:
        return self._calls.read_text("utf-8").count("-m venv")

    def times_built(self) -> int:
        return self._calls.read_text("utf-8").count("--editable")

    def installed(self) -> list[str]:
        """Return the extras and groups whose packages were installed, for each time."""
        return re.findall(r"/scripts/requirements (.+)", self._calls.read_text("utf-8"))


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


@pytest.mark.parametrize("tools", ["", "dev"])
def test_a_finished_environment_is_used_again_at_once(checkout: Checkout, tools: str) -> None:
    checkout.add_python("python3.11")
    assert [checkout.ensure_venv(tools).returncode for _ in range(2)] == [0, 0]
    assert (checkout.times_set_up(), len(checkout.installed())) == (1, 1)


def test_the_demo_installs_no_development_tools(checkout: Checkout) -> None:
    checkout.add_python("python3.11")
    checkout.ensure_venv()
    assert checkout.installed() == [RUNTIME]


def test_tools_are_added_to_what_the_demo_has_installed(checkout: Checkout) -> None:
    checkout.add_python("python3.11")
    for tools in ("", "dev", "", "dev"):
        assert checkout.ensure_venv(tools).returncode == 0
    assert checkout.times_set_up() == 1
    assert checkout.installed() == [RUNTIME, f"{RUNTIME} dev profiler"]


def test_the_demo_uses_what_the_tests_have_installed(checkout: Checkout) -> None:
    checkout.add_python("python3.11")
    for tools in ("dev", ""):
        assert checkout.ensure_venv(tools).returncode == 0
    assert checkout.installed() == [f"{RUNTIME} dev profiler"]


@pytest.mark.parametrize("name", SET_UP_FROM)
def test_a_changed_lock_file_sets_up_again(checkout: Checkout, name: str) -> None:
    checkout.add_python("python3.11")
    checkout.ensure_venv()
    (checkout.root / name).write_text("another version\n", encoding="utf-8")
    checkout.ensure_venv()
    assert checkout.times_set_up() == 2


def test_a_moved_checkout_sets_up_again(checkout: Checkout) -> None:
    checkout.add_python("python3.11")
    checkout.ensure_venv()
    mark = checkout.root / ".venv" / "made-from"
    mark.write_text(f"/elsewhere{mark.read_text('utf-8')}", encoding="utf-8")
    checkout.ensure_venv()
    assert checkout.times_set_up() == 2


def test_changed_sources_of_the_extension_are_built_again(checkout: Checkout) -> None:
    checkout.add_python("python3.11")
    for content in ("int a;", "int a;", "int b;"):
        checkout.kernel.write_text(content, encoding="utf-8")
        assert checkout.ensure_venv().returncode == 0
    assert (checkout.times_set_up(), checkout.times_built()) == (1, 2)


def test_an_interrupted_build_is_repeated_and_leaves_no_older_extension(
    checkout: Checkout,
) -> None:
    checkout.add_python("python3.11")
    checkout.ensure_venv()
    older = checkout.kernel.with_name("_sweep.abi3.so")
    older.touch()
    checkout.kernel.write_text("changed", encoding="utf-8")
    checkout.broken.touch()
    assert checkout.ensure_venv().returncode == 1
    assert not older.exists()
    checkout.broken.unlink()
    assert checkout.ensure_venv().returncode == 0
    assert (checkout.times_set_up(), checkout.times_built()) == (1, 3)


def test_a_compiler_that_built_nothing_is_mentioned(checkout: Checkout) -> None:
    checkout.add_python("python3.11")
    assert "extension" not in checkout.ensure_venv().stderr
    (checkout.programs / "cc").symlink_to("/bin/false")
    checkout.kernel.write_text("changed", encoding="utf-8")
    assert checkout.ensure_venv().stderr == (
        "The extension was not built, so numpy measures tensors, which is slower; "
        "CONTRIBUTING.md says how to see why.\n"
    )


@pytest.mark.parametrize("before", [[], [""]], ids=["at first", "adding tools"])
def test_an_interrupted_set_up_is_not_believed(checkout: Checkout, before: list[str]) -> None:
    checkout.add_python("python3.11")
    for tools in before:
        checkout.ensure_venv(tools)
    checkout.broken.touch()
    assert checkout.ensure_venv("dev").returncode == 1
    checkout.broken.unlink()
    assert checkout.ensure_venv("dev").returncode == 0
    assert checkout.times_set_up() == 2


def test_each_package_that_is_installed_is_printed(checkout: Checkout) -> None:
    checkout.add_python("python3.11")
    assert checkout.ensure_venv().stderr == (
        "Installing the packages of uv.lock into .venv; this happens once.\n"
        "  numpy==2.4.6\n"
        "Installing them\n"
    )


def test_packages_that_cannot_be_installed_end_the_set_up(checkout: Checkout) -> None:
    checkout.add_python("python3.11")
    checkout.offline.touch()
    done = checkout.ensure_venv()
    assert done.returncode == 1
    assert done.stderr.endswith("ERROR: no network\n")
    assert not (checkout.root / ".venv" / "made-from").exists()


ROOT = LIBRARY.parents[1]
LOCKED = tomllib.loads((ROOT / "uv.lock").read_text("utf-8"))["package"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def requirements(*names: str) -> list[str]:
    command = [sys.executable, ROOT / "scripts" / "requirements", *names]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def test_the_lock_is_of_todays_pyproject() -> None:
    (project,) = (package for package in LOCKED if package["name"] == "rule-runner")
    metadata = project["metadata"]
    extras = PROJECT["project"]["optional-dependencies"]
    declared = {*PROJECT["project"]["dependencies"]}.union(*extras.values())
    assert {one["name"] for one in metadata["requires-dist"]} == {*map(canonical, declared)}
    groups = PROJECT["dependency-groups"]
    assert metadata["requires-dev"].keys() == groups.keys()
    for name, group in groups.items():
        locked = {one["name"] for one in metadata["requires-dev"][name]}
        assert locked == {*map(canonical, group)}, name
    assert project["optional-dependencies"].keys() == extras.keys()


def canonical(requirement: str) -> str:
    return canonicalize_name(Requirement(requirement).name)


def test_the_lock_names_public_addresses_and_each_package_once() -> None:
    hosts = set(re.findall(r"https?://[^/\"]+", (ROOT / "uv.lock").read_text("utf-8")))
    assert hosts == {"https://pypi.org", "https://files.pythonhosted.org"}
    assert len({package["name"] for package in LOCKED}) == len(LOCKED)


def test_requirements_are_pinned_with_hashes_and_know_no_index() -> None:
    for line in requirements("rule-runner", "dev", "docs", "build", "wheels"):
        assert re.fullmatch(r"[a-z0-9.-]+==[\w.+!]+( --hash=sha256:[0-9a-f]{64})+", line)


def test_requirements_of_an_extra_are_those_of_its_packages() -> None:
    assert {line.partition("=")[0] for line in requirements("serve")} >= {"starlette", "h11"}
    build = requirements("build")
    assert [line.partition("=")[0] for line in build] == ["setuptools"]
    # coverage[toml] of pytest-cov; an extra of a package adds what that extra needs.
    assert "coverage" in {line.partition("=")[0] for line in requirements("dev")}


def test_an_unknown_group_is_named() -> None:
    command = [sys.executable, ROOT / "scripts" / "requirements", "nothing"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith(
        "There is no extra or group 'nothing' in uv.lock, but rule-runner,"
    )


RELEASED = "# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2027-01-31\n\n## [0.1.0] - 2026-11-22\n"


def check_release(root: Path, tag: str, changelog: str) -> subprocess.CompletedProcess[str]:
    """Run scripts/check_release in a checkout of version 0.2.0."""
    (root / "scripts").mkdir()
    script = shutil.copy(LIBRARY.with_name("check_release"), root / "scripts")
    (root / "pyproject.toml").write_text('[project]\nversion = "0.2.0"\n', encoding="utf-8")
    (root / "CHANGELOG.md").write_text(changelog, encoding="utf-8")
    return subprocess.run(
        [sys.executable, script, tag], check=False, capture_output=True, text=True
    )


@pytest.mark.parametrize("tag", ["v0.2.0", "0.2.0"])
def test_a_tag_that_names_the_version_is_a_release(tag: str, tmp_path: Path) -> None:
    done = check_release(tmp_path, tag, RELEASED)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_tag_of_another_version_is_no_release(tmp_path: Path) -> None:
    done = check_release(tmp_path, "v0.3.0", RELEASED)
    assert (done.returncode, done.stderr) == (
        1,
        (
            "Tag 'v0.3.0' does not match version 0.2.0 in pyproject.toml: "
            "correct the tag or the version.\n"
            "CHANGELOG.md has no release 0.3.0 at its top (its newest release is 0.2.0): "
            "run 'scripts/release_notes 0.3.0'.\n"
        ),
    )


@pytest.mark.parametrize(
    ("changelog", "newest"),
    [
        (RELEASED.replace("## [0.2.0] - 2027-01-31\n\n", ""), "its newest release is 0.1.0"),
        ("# Changelog\n\n## [Unreleased]\n", "it has no release"),
    ],
)
def test_a_release_stands_in_the_changelog(changelog: str, newest: str, tmp_path: Path) -> None:
    done = check_release(tmp_path, "v0.2.0", changelog)
    assert (done.returncode, done.stderr) == (
        1,
        (
            f"CHANGELOG.md has no release 0.2.0 at its top ({newest}): "
            "run 'scripts/release_notes 0.2.0'.\n"
        ),
    )


def test_the_changelog_is_of_the_version_in_pyproject() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "check_release", PROJECT["project"]["version"]],
        check=False,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
