"""What doctor looks at in an installation: packages, versions, notifications, working folder."""

import os
import platform
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing
from importlib import metadata
from pathlib import Path
from typing import Final

from rule_runner.diagnosis import Check, good, warning, wrong

DISTRIBUTION: Final = "rule-runner"
OTHER: Final = "smdebug"  # the distribution that this one replaces; its package has the same name
LEAST_FREE_BYTES: Final = 100 << 20
_OURS: Final = Path(__file__).parents[1] / "smdebug"
_REINSTALL: Final = f"Reinstall: pip install --force-reinstall {DISTRIBUTION}."
_REMOVE: Final = f"Remove it: pip uninstall {OTHER}. Then {_REINSTALL[0].lower()}{_REINSTALL[1:]}"
_REQUIREMENT: Final = re.compile(r"([A-Za-z0-9_.-]+)>=([0-9.]+)")
_LOOKS: Final = 20  # of a fifth of a second each, for a notification


def examine_installation() -> Iterator[Check]:
    """Yield all that is to be said of the installation and of the working folder."""
    yield _imported_package()
    yield from _other_distribution()
    yield from _versions()
    yield _numpy()
    yield _notifications()
    yield from _working_folder()


def _imported_package() -> Check:
    """Check that `import smdebug` gives the package beside this one."""
    try:
        import smdebug  # noqa: PLC0415 - another package may have the name
    except Exception as err:  # noqa: BLE001 - and raise what it likes
        return wrong(f"Package 'smdebug' cannot be imported: {type(err).__name__}. {_REMOVE}")
    found = Path(smdebug.__file__ or "").parent
    if found.resolve() != _OURS.resolve():
        return wrong(
            f"Package 'smdebug' is imported from {str(found)!r} and not from {str(_OURS)!r}. "
            f"If distribution {OTHER!r} is there: pip uninstall {OTHER}. Otherwise rename that "
            "folder, or take it out of PYTHONPATH."
        )
    return good(f"Package 'smdebug' is imported from {str(found)!r}.")


def _other_distribution() -> Iterator[Check]:
    """Check that the distribution with the same package is not there."""
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


def _versions() -> Iterator[Check]:
    """Check Python and the dependencies against what this distribution asks for."""
    try:
        ours = metadata.distribution(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        yield warning(
            f"Distribution {DISTRIBUTION!r} is not installed: this is a mere checkout, and "
            "versions cannot be compared. Install it: pip install --editable FOLDER."
        )
        return
    yield _python(str(ours.metadata["Requires-Python"]))
    bad = [text for one in ours.requires or () if (text := _lacks(one))]
    for text in bad:
        yield wrong(f"{text} {_REINSTALL}")
    if not bad:
        yield good(f"All dependencies of {DISTRIBUTION} {ours.version} are installed.")


def _python(required: str) -> Check:
    version = platform.python_version()
    if _release(version) < _release(required.removeprefix(">=")):
        return wrong(f"Python must be {required}, got {version}. Install a newer one.")
    return good(f"Python is {version}.")


def _lacks(requirement: str) -> str:
    """Return what is wrong with a dependency, such as ``numpy>=1.26``, or an empty string."""
    found = _REQUIREMENT.fullmatch(requirement)
    if found is None:  # of an extra
        return ""
    name, least = found.groups()
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return f"Dependency {name!r} is not installed; {requirement} is needed."
    if _release(version) < _release(least):
        return f"Dependency {name!r} must be >= {least}, got {version}."
    return ""


def _release(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version.

    >>> _release("2024.5.15"), _release("1.26.0rc1"), _release("3.11") == _release("3.11.0")
    ((2024, 5, 15), (1, 26), True)
    """
    found = re.match(r"[0-9]+(\.[0-9]+(?![0-9]*[a-z]))*", version)
    numbers = [int(number) for number in found[0].split(".")] if found else []
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


def _numpy() -> Check:
    """Check that numpy computes, and knows bfloat16."""
    try:
        import ml_dtypes  # noqa: PLC0415 - what cannot be imported is to be reported
        import numpy as np  # noqa: PLC0415

        right = float((np.eye(2) @ np.array([3.0, 4.0])).sum()) == 7.0  # noqa: PLR2004
        right &= float(np.array(1.5, dtype=ml_dtypes.bfloat16)) == 1.5  # noqa: PLR2004
    except Exception as err:  # noqa: BLE001 - compiled packages fail in many ways
        return wrong(f"numpy does not work: {type(err).__name__}: {str(err)[:200]!r}. {_REINSTALL}")
    if not right:
        return wrong(f"numpy computes wrong results. {_REINSTALL}")
    return good(f"numpy {np.__version__} works.")


def _notifications() -> Check:
    """Check that a new file is noticed: live trials are followed that way."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            noticed = _is_noticed(Path(folder))
    except Exception as err:  # noqa: BLE001 - of the file system, or of a compiled package
        noticed, why = False, f"{type(err).__name__}: {str(err)[:200]!r}"
    else:
        why = "a new file was not noticed"
    if noticed:
        return good("New files are noticed at once.")
    return warning(
        f"File notifications do not work ({why}): trials are looked at once a second. If that is "
        "too slow, raise fs.inotify.max_user_instances and fs.inotify.max_user_watches."
    )


def _is_noticed(folder: Path) -> bool:
    from watchfiles import watch  # noqa: PLC0415 - what cannot be imported is to be reported

    watching = watch(folder, step=10, debounce=20, rust_timeout=200, yield_on_timeout=True)
    with closing(watching) as seen:
        next(seen)  # the watch has begun when this times out
        (folder / "new").write_bytes(b"")
        return any(next(seen) for _ in range(_LOOKS))


def _working_folder() -> Iterator[Check]:
    """Check the folder that results go to by default."""
    folder = Path("rule-output").absolute()
    there = next(one for one in (folder, *folder.parents) if one.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        yield warning(
            f"Results cannot be written to {str(folder)!r}. Give a folder where they can: "
            "--output DIR."
        )
        return
    yield good(f"Results can be written to {str(folder)!r}.")
    free = shutil.disk_usage(there).free
    if free < LEAST_FREE_BYTES:
        yield warning(
            f"Only {free >> 20} MB are free below {str(there)!r}. Free some space, or give a "
            "folder elsewhere: --output DIR."
        )
