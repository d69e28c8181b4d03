"""Checks of the installation: packages, versions, file notifications, working folder."""

import os
import platform
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Final

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from rule_core.clock import SystemClock
from rule_core.failures import attempt
from rule_runner.commands.doctor.checks import Diagnosis, Grade, good, warning, wrong
from rule_runner.errors import RuleSourceError
from rule_runner.loading.loader import every_builtin
from rule_runner.loading.rule_packages import rule_packages
from rule_runner.steps.folder_notifications import FolderNotifications

DISTRIBUTION: Final = "rule-runner"
OTHER: Final = "smdebug"  # the distribution that this one replaces; its package has the same name
EXTENSION: Final = "rule_core.kernels._sweep"
LEAST_FREE_BYTES: Final = 100 << 20
_OURS: Final = Path(__file__).parents[3] / "smdebug"
_REINSTALL: Final = f"Reinstall: pip install --force-reinstall {DISTRIBUTION}."
# Both install the folder of the package, so that removing one breaks the other.
_REMOVE: Final = f"Remove it: pip uninstall {OTHER}. Then {_REINSTALL[0].lower()}{_REINSTALL[1:]}"
_PATIENCE_S: Final = 4.0  # for a notification
# What packages with compiled code raise if their files do not belong together.
_OF_BINARIES: Final = (
    ImportError,
    AttributeError,
    RuntimeError,
    SystemError,
    TypeError,
    ValueError,
)
_BY_NUMPY: Final = "Tensors are measured by numpy, which is slower than the compiled kernel"


def examine_installation() -> Iterator[Diagnosis]:
    """Yield the checks of the installation and of the working folder."""
    package = _imported_package()
    yield package
    yield from _other_distribution()
    yield from _versions()
    yield _numpy()
    yield _kernel()
    if package.grade is not Grade.WRONG:
        yield from _rule_packages()
    yield _notifications()
    yield from _working_folder()


def _rule_packages() -> Iterator[Diagnosis]:
    """Import the rules of installed packages."""
    packages = rule_packages(every_builtin())
    for name, rule in packages.by_name.items():
        try:
            rule.load()
        except RuleSourceError as err:
            yield warning(str(err))
        else:
            yield good(f"Rule {name!r} of package {rule.package} can be used.")
    yield from map(warning, packages.problems.values())


def _imported_package() -> Diagnosis:
    """Check that `import smdebug` gives the package beside this one."""

    def imported() -> ModuleType:
        import smdebug  # any package may have this name, and raise anything

        return smdebug

    package = attempt(imported, lambda err: type(err).__name__)
    if isinstance(package, str):
        return wrong(f"Package 'smdebug' cannot be imported: {package}. {_REMOVE}")
    if package.__file__ is None:  # a folder without `__init__.py`
        return wrong(
            f"Package 'smdebug' has lost files, as after 'pip uninstall {OTHER}': that "
            f"distribution installs the same folder. {_REINSTALL}"
        )
    folder = Path(package.__file__).parent
    if folder.resolve() != _OURS.resolve():
        return wrong(
            f"Package 'smdebug' is imported from {str(folder)!r} and not from {str(_OURS)!r}. "
            f"If distribution {OTHER!r} is installed: pip uninstall {OTHER}. Otherwise rename that "
            "folder, or remove it from PYTHONPATH."
        )
    return good(f"Package 'smdebug' is imported from {str(folder)!r}.")


def _other_distribution() -> Iterator[Diagnosis]:
    """Check that no other distribution installs the same package."""
    try:
        other = metadata.distribution(OTHER)
    except metadata.PackageNotFoundError:
        return
    where = Path(str(other.locate_file(OTHER)))
    if where.resolve() == _OURS.resolve():
        yield wrong(
            f"Distribution {OTHER!r} {other.version} is installed in the same folder "
            f"{str(where)!r}: each has overwritten files of the other. {_REMOVE}"
        )
    else:
        yield warning(
            f"Distribution {OTHER!r} {other.version} is installed too, at {str(where)!r}, and may "
            f"be imported instead. Remove it: pip uninstall {OTHER}."
        )


def _versions() -> Iterator[Diagnosis]:
    """Check Python and the dependencies against the requirements of this distribution."""
    try:
        ours = metadata.distribution(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        yield warning(
            f"Distribution {DISTRIBUTION!r} is not installed: this is a plain checkout, and "
            "versions cannot be checked. Install it: pip install --editable FOLDER."
        )
        return
    version, required = platform.python_version(), str(ours.metadata["Requires-Python"])
    if _satisfies(version, SpecifierSet(required)):
        yield good(f"Python is {version}.")
    else:
        yield wrong(f"Python must be {required}, got {version}. Install a newer one.")
    problems = [problem for text in ours.requires or () if (problem := _unmet(text))]
    for problem in problems:
        yield wrong(f"{problem} {_REINSTALL}")
    if not problems:
        yield good(f"All dependencies of {DISTRIBUTION} {ours.version} are installed.")


def _unmet(text: str) -> str:
    """Return why a requirement such as ``numpy>=1.26`` is not met, or an empty string."""
    requirement = Requirement(text)
    name, specifier = requirement.name, requirement.specifier
    if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
        return ""
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return f"Dependency {name!r} is not installed; {text} is needed."
    if not _satisfies(version, specifier):
        return f"Dependency {name!r} must be {specifier}, got {version}."
    return ""


def _satisfies(version: str, specifier: SpecifierSet) -> bool:
    try:
        return specifier.contains(Version(version), prereleases=True)
    except InvalidVersion:
        return False


def _numpy() -> Diagnosis:
    """Check that numpy computes, and supports bfloat16."""
    try:
        import ml_dtypes
        import numpy as np

        product = np.eye(2) @ np.array([3.0, 4.0])
        numbers = float(product.sum()), float(np.array(1.5, dtype=ml_dtypes.bfloat16))
    except _OF_BINARIES as err:
        return wrong(f"numpy does not work: {_described(err)}. {_REINSTALL}")
    if numbers != (7.0, 1.5):
        return wrong(f"numpy computes wrong results. {_REINSTALL}")
    return good(f"numpy {np.__version__} works.")


def _kernel() -> Diagnosis:
    """Check what measures tensors: the compiled kernel, or numpy."""
    try:
        from rule_core.kernels.sweep import KERNEL, processors

        if processors():
            return good(f"Tensors are measured by the compiled kernel, for {processors()[-1]}.")
        __import__(EXTENSION)
    except _OF_BINARIES as err:
        if isinstance(err, ModuleNotFoundError) and err.name == EXTENSION:
            return good(
                f"{_BY_NUMPY}, which was not built. To use it, install a C compiler and Python's "
                "headers, on Debian with 'apt-get install gcc python3-dev', and "
                f"r{_REINSTALL[1:]}"
            )
        return warning(f"{_BY_NUMPY}: {_described(err)}. {_REINSTALL}")
    return good(f"{_BY_NUMPY}. To use it, unset {KERNEL}.")


def _described(err: Exception) -> str:
    return f"{type(err).__name__}: {str(err)[:200]!r}"


def _notifications() -> Diagnosis:
    """Check that new files are noticed: live trials depend on it."""
    reason = "a new file was not noticed"
    try:
        with (
            tempfile.TemporaryDirectory() as folder,
            closing(FolderNotifications(SystemClock())) as notifications,
        ):
            notifications.watch(Path(folder))
            Path(folder, "new").write_bytes(b"")
            if notifications.wait(_PATIENCE_S):
                return good("New files are noticed at once.")
    except OSError as err:
        reason = _described(err)
    return warning(
        f"File notifications do not work ({reason}): trials are polled once a second. If that is "
        "too slow, raise fs.inotify.max_user_instances and fs.inotify.max_user_watches."
    )


def _working_folder() -> Iterator[Diagnosis]:
    """Check the default output folder."""
    folder = Path("rule-output").absolute()
    parent = next(path for path in (folder, *folder.parents) if path.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        yield warning(
            f"Results cannot be written to {str(folder)!r}. Choose a writable folder: --output DIR."
        )
        return
    yield good(f"Results can be written to {str(folder)!r}.")
    free = shutil.disk_usage(parent).free
    if free < LEAST_FREE_BYTES:
        yield warning(
            f"Only {free >> 20} MB are free below {str(parent)!r}. Free some space, or choose "
            "another folder: --output DIR."
        )
