"""Wheels: what they hold and where they install, with and without a compiler."""

import hashlib
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SCRIPTS = ROOT / "scripts"
PLATFORMS = ("manylinux_2_17_aarch64", "manylinux_2_17_x86_64")
KERNEL = "rule_core/kernels/_sweep.abi3.so"


def run(*command: object, **environment: str) -> str:
    """Return what a command that succeeds printed."""
    done = subprocess.run(
        [str(word) for word in command],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def contents(wheel: Path) -> dict[str, str]:
    """Return the names and CRCs of the files in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {info.filename: f"{info.CRC:08x}" for info in archive.infolist()}


def copy_checkout(folder: Path) -> Path:
    """Copy what builds the extension, and no other package; one that was built stays behind."""
    folder.mkdir()
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    kernels = folder / "rule_core" / "kernels"
    shutil.copytree(ROOT / "rule_core" / "kernels", kernels, ignore=shutil.ignore_patterns("*.so"))
    shutil.copy(ROOT / "rule_core" / "__init__.py", kernels.parent)
    return folder


def test_without_a_compiler_a_wheel_for_every_platform_is_built_quietly(tmp_path: Path) -> None:
    checkout = copy_checkout(tmp_path / "checkout")
    printed = run(
        *(sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"),
        *("--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", tmp_path, checkout),
        CC=str(tmp_path / "no-compiler"),
    )
    assert printed == ""
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")
    names = set(contents(wheel))
    assert "rule_core/kernels/sweep.py" in names
    assert [name for name in names if name.endswith((".so", ".c", ".h"))] == []
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in names if name.endswith("dist-info/WHEEL"))
        assert b"Root-Is-Purelib: true" in archive.read(name)


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the wheels of the last commit."""
    folder = tmp_path_factory.mktemp("released")
    run(SCRIPTS / "build_wheels", folder)
    return folder


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_wheels_of_a_release(released: Path) -> None:
    wheels = sorted(released.glob("*.whl"))
    tags = [wheel.stem.split("-", 2)[2] for wheel in wheels]
    assert tags == [f"cp311-abi3-{platform}" for platform in PLATFORMS]
    arm, x86 = map(contents, wheels)
    assert {name for name in arm if arm[name] != x86.get(name)} == {
        KERNEL,
        *(name for name in arm if name.endswith(("dist-info/WHEEL", "dist-info/RECORD"))),
    }
    assert arm.keys() == x86.keys()
    assert [name for name in x86 if name.endswith((".c", ".h"))] == []


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_the_same_commit_gives_the_same_bytes(released: Path, tmp_path: Path) -> None:
    run(SCRIPTS / "build_wheels", tmp_path)

    def hashes(folder: Path) -> dict[str, str]:
        wheels = folder.glob("*.whl")
        return {wheel.name: hashlib.sha256(wheel.read_bytes()).hexdigest() for wheel in wheels}

    assert hashes(tmp_path) == hashes(released)


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_the_wheel_of_this_processor_can_be_loaded(released: Path, tmp_path: Path) -> None:
    (wheel,) = released.glob(f"*_{os.uname().machine}.whl")
    venv.create(tmp_path / "venv")
    python = tmp_path / "venv" / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", wheel)
    program = "import rule_core.kernels._sweep as kernel; print(kernel.__file__)"
    assert str(tmp_path) in run(python, "-I", "-c", program)


@pytest.mark.nightly
@pytest.mark.timeout(1800)
@pytest.mark.skipif(os.getuid() != 0, reason="Only root can unpack a Debian.")
def test_the_wheel_for_aarch64_measures_what_numpy_measures(released: Path) -> None:
    if not shutil.which("qemu-aarch64") or not shutil.which("debootstrap"):
        pytest.skip("qemu-aarch64 or debootstrap is not installed.")
    assert " passed" in run(SCRIPTS / "test_aarch64", released).splitlines()[-1]
