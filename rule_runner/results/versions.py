"""versions: the versions that a verdict may depend on."""

import platform
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

_SUFFIX: Final = ".dist-info"


def versions() -> dict[str, str]:
    """Return the versions that a verdict may depend on."""
    return {name: version(name) for name in ("rule-runner", "numpy")} | {
        "python": platform.python_version()
    }


@cache
def version(distribution: str) -> str:
    """Return the version of an installed distribution; "unknown" if it is not installed.

    The name of the folder that pip writes has it. `importlib.metadata`, which takes longer to
    import than a step to judge, is only asked if there is no such folder.
    """
    prefix = f"{distribution.replace('-', '_')}-"
    for folder in sys.path:
        with suppress(OSError):
            for path in Path(folder).glob(f"{prefix}*{_SUFFIX}"):
                return path.name[len(prefix) : -len(_SUFFIX)]
    from importlib import metadata

    with suppress(metadata.PackageNotFoundError):
        return metadata.version(distribution)
    return "unknown"  # run from a checkout
