"""Results and pages in S3: fetched to be read, named by their addresses, and written."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from rule_runner.errors import ClientError, OutputError, UsageError
from rule_runner.outputs import MEASUREMENTS, RESULT
from rule_runner.report.page import NAME
from rule_runner.report.saved import DEPTH, Run, Saved
from rule_runner.show import printable
from smdebug.exceptions import SMDebugError, SMDebugValueError
from smdebug.storage import open_output, open_store
from smdebug.storage.publishing import publish

_READ: Final = frozenset({RESULT, MEASUREMENTS})


def fetch_results(uri: str, scratch: Path) -> Path:
    """Fetch what a page needs of the results below an address, and return their folder.

    Parameters
    ----------
    scratch
        A folder of this machine, for this address alone.

    Raises
    ------
    ClientError
        If the address cannot be read.
    """
    # Runs are told apart by the names of their folders; several rules have folders in one.
    names = [one for one in uri.partition("://")[2].split("/") if _is_plain(one)]
    folder = scratch.joinpath("results", *names[-2:])
    try:
        folder.mkdir(parents=True)
        store = open_store(uri)
        for key in store.list_keys(""):
            *parents, name = key.split("/")
            if name in _READ and len(parents) <= DEPTH and all(map(_is_plain, parents)):
                path = folder / key
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(store.read(key))
    except (SMDebugError, OSError) as err:
        reason = printable(getattr(err, "reason", err)).rstrip(".")
        msg = f"Results at {uri!r} cannot be read: {reason}."
        raise ClientError(msg) from err
    return folder


def _is_plain(name: str) -> bool:
    """Say whether a part of a key may name a folder; those of ours never begin with a dot."""
    return bool(name) and not name.startswith(".") and "\0" not in name


def addressed(saved: Saved, addresses: Mapping[Path, str]) -> Saved:
    """Return what was read, with the addresses that it came from in the place of folders."""
    problems = list(saved.problems)
    for folder, uri in addresses.items():
        problems = [text.replace(str(folder), uri.rstrip("/")) for text in problems]
    runs = tuple(replace(run, address=_address(run, addresses)) for run in saved.runs)
    return Saved(runs, tuple(problems))


def _address(run: Run, addresses: Mapping[Path, str]) -> str:
    for folder, uri in addresses.items():
        at = uri.strip().rstrip("/")
        if run.folder == folder.parent:  # the address is that of one rule job of several
            return at.rpartition("/")[0]
        if run.folder.is_relative_to(folder):
            below = run.folder.relative_to(folder).as_posix()
            return at if below == "." else f"{at}/{below}"
    return ""


def write_to(uri: str, text: str) -> str:
    """Write a page to an address, or below it, and return where it is.

    Raises
    ------
    OutputError
        If it cannot be written.
    UsageError
        If S3 can have no such address.
    """
    at = uri.strip() if uri.strip().endswith(".html") else f"{uri.strip().rstrip('/')}/{NAME}"
    folder, _, name = at.rpartition("/")
    try:
        publish(open_output(folder), name, text.encode())
    except SMDebugValueError as err:
        raise UsageError(str(err)) from err
    except OSError as err:
        raise OutputError(str(err)) from err
    return at
