"""EarlierChecks: the outcomes of earlier checks, which hold for trials that have not changed."""

import os
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace as with_fields

from rule_core.rules.params import FileParam
from rule_core.sources.address import address_of
from rule_runner.commands.check.tables import CheckedTrial, has_ended
from rule_runner.config.request import EvaluationRequest
from rule_runner.errors import OutputError
from rule_runner.loading.trial_search import PASSED_OVER
from rule_runner.results import durable_files
from rule_runner.results.file_names import ACKNOWLEDGEMENTS, RESULTS
from rule_runner.results.json_text import dump_json
from rule_runner.results.output_folder import read_results_file
from rule_runner.results.versions import versions

NAME: Final = "checked.json"
_UNREADABLE: Final = (OSError, ValueError, msgspec.MsgspecError)


class _Remembered(msgspec.Struct, frozen=True):
    digest: str
    trial: CheckedTrial  # without its evaluation


class EarlierChecks:
    """The trials that earlier checks judged, in the file `NAME` of a folder.

    A trial is unchanged if rule-runner's version, the options, and the paths, sizes and times of
    its files are. Trials in S3, those that may still grow, and those whose issues somebody
    acknowledged are judged each time.
    """

    def __init__(self, folder: Path, request: EvaluationRequest) -> None:
        self._path = folder / NAME
        options = with_fields(request, output=None, overwrite=False, format="table", quiet=False)
        baseline = "" if request.baseline is None else FileParam.digest(request.baseline)
        self._basis = f"{versions()} {dump_json(options)} {baseline}".encode()
        self._has_trend = request.trend is not None
        self._entries: dict[str, _Remembered] = {}
        with suppress(*_UNREADABLE):
            content = durable_files.read_regular(self._path)
            self._entries = msgspec.json.decode(content, type=dict[str, _Remembered])

    def digest(self, path: str) -> str:
        """Return the digest of a trial; "" if it cannot be known whether it changes."""
        if self._has_trend:  # the runs in its folder may have changed
            return ""
        address = address_of(path)
        is_file = Path(address.path).is_file()  # the folder may hold other files of the run
        digest, line = sha256(self._basis), ""
        for folder, below, names in os.walk(address.folder or ""):
            below[:] = sorted(n for n in below if not is_file and f"{n}/" not in PASSED_OVER)
            for name in sorted(names):
                with suppress(OSError):  # removed meanwhile
                    status = os.lstat(f"{folder}/{name}")
                    line = f"{folder}/{name} {status.st_size} {status.st_mtime_ns}\n"
                    digest.update(os.fsencode(line))
        return digest.hexdigest() if line else ""

    def outcome(self, path: str, digest: str) -> CheckedTrial | None:
        """Return the outcome of a trial with this digest; None if it must be judged."""
        entry = self._entries.get(address_of(path).canonical)
        if entry is None or not digest or entry.digest != digest:
            return None
        if Path(entry.trial.results, ACKNOWLEDGEMENTS).exists():
            return None
        with suppress(*_UNREADABLE):
            result = read_results_file(Path(entry.trial.results))
            return with_fields(
                entry.trial,
                path=path,
                evaluation=with_fields(result, left_out={}),
                left_out=result.left_out,
                unchanged=True,
            )
        return None

    def replaces(self, path: str, output: str) -> bool:
        """Return whether the results in a folder are those of an earlier check of the trial."""
        entry = self._entries.get(address_of(path).canonical)
        return entry is not None and entry.trial.results == output

    def add(self, trial: CheckedTrial, digest: str) -> None:
        """Remember a trial that was judged to its end."""
        if digest and trial.evaluation and not trial.problem and has_ended(trial):
            stored = with_fields(trial, evaluation=None, left_out={})
            self._entries[address_of(trial.path).canonical] = _Remembered(digest, stored)

    def write(self) -> None:
        """Write the trials whose results exist; a failure costs time at the next check only."""
        entries = {
            path: entry
            for path, entry in self._entries.items()
            if Path(entry.trial.results, RESULTS).exists()
        }
        with suppress(OutputError):
            if entries:
                durable_files.make_folder(self._path.parent)
                durable_files.write_atomically(self._path, dump_json(entries) + "\n")
                durable_files.remove_scratch(self._path.parent)
