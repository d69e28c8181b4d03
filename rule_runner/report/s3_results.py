"""Results and pages in S3: reading, naming and writing."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from rule_core.exceptions import SMDebugError, SMDebugValueError
from rule_core.storage import open_output, open_store
from rule_core.storage.publish import publish
from rule_runner.errors import ClientError, OutputError, UsageError
from rule_runner.escape import printable
from rule_runner.report.saved_results import DEPTH, Run, Saved
from rule_runner.results.acknowledgements import ACKNOWLEDGEMENTS
from rule_runner.results.output_folder import MEASUREMENTS, REPORT, RESULT

_READ: Final = frozenset({RESULT, MEASUREMENTS, ACKNOWLEDGEMENTS})


def fetch_results(uri: str, scratch: Path) -> Path:
    """Fetch the results below an address that a page needs, and return their folder.

    Parameters
    ----------
    scratch
        A local folder for this address alone.

    Raises
    ------
    ClientError
        If the address cannot be read.
    """
    # Runs are identified by the names of their folders, which contain folders of several rules.
    names = [part for part in uri.partition("://")[2].split("/") if _is_plain(part)]
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
    """Return whether a part of a key may be a folder of results, which has no leading dot."""
    return bool(name) and not name.startswith(".") and "\0" not in name


def with_addresses(saved: Saved, addresses: Mapping[Path, str]) -> Saved:
    """Return saved results with their addresses instead of folders."""
    problems = list(saved.problems)
    for folder, uri in addresses.items():
        problems = [text.replace(str(folder), uri.rstrip("/")) for text in problems]
    runs = tuple(replace(run, address=_address(run, addresses)) for run in saved.runs)
    return Saved(runs, tuple(problems))


def _address(run: Run, addresses: Mapping[Path, str]) -> str:
    for folder, uri in addresses.items():
        address = uri.strip().rstrip("/")
        if run.folder == folder.parent:  # the address of one of several rule jobs
            return address.rpartition("/")[0]
        if run.folder.is_relative_to(folder):
            below = run.folder.relative_to(folder).as_posix()
            return address if below == "." else f"{address}/{below}"
    return ""


def write_to(uri: str, text: str) -> str:
    """Write a page to an address or below it, and return its address.

    Raises
    ------
    OutputError
        If it cannot be written.
    UsageError
        If the address is invalid.
    """
    address = uri.strip()
    if not address.endswith(".html"):
        address = f"{address.rstrip('/')}/{REPORT}"
    folder, _, name = address.rpartition("/")
    try:
        publish(open_output(folder), name, text.encode())
    except SMDebugValueError as err:
        raise UsageError(str(err)) from err
    except OSError as err:
        raise OutputError(str(err)) from err
    return address
