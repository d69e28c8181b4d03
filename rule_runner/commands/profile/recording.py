"""ProfileRecording: samples the system beside a script, and configures what its hooks record."""

import asyncio
import json
import os
import shlex
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from rule_core.exceptions import SMDebugError
from rule_core.profiler.files.constants import DEFAULT_PREFIX
from rule_core.profiler.recording.config import parse_config
from rule_core.profiler.recording.config_file import CHECK_S, PATH_VARIABLE, file_stamp
from rule_core.profiler.recording.end_marks import SUPERVISED, mark_end
from rule_core.profiler.recording.layout import SYSTEM_FOLDER
from rule_core.profiler.recording.sampler.process import Sampler, node_number
from rule_core.profiler.recording.timelines import complete_drafts
from rule_core.storage.base import ObjectNotFoundError
from rule_core.storage.uri import is_s3, open_output
from rule_runner.commands.profile.recording_options import RecordingOptions
from rule_runner.commands.train.evaluator import short
from rule_runner.commands.train.script import unseen
from rule_runner.config.job_file.python_file import SUFFIX
from rule_runner.errors import OutputError, RuleRunnerError, translated
from rule_runner.results.durable_files import output_errors

CONFIG: Final = "profilerconfig.json"
STOP_TIMEOUT_S: Final = 10.0  # nobody waits but the user
# PyTorch's profiler prints lines to stderr for each step that is profiled.
KINETO_LOG: Final = "KINETO_LOG_LEVEL"
SILENT: Final = "99"


class ProfileRecording:
    """A recording of all processes of a script, and of the node.

    Hooks in the script's processes write their part, by the configuration that this object writes.
    It follows changes of the user's file.

    Parameters
    ----------
    options
        What to record.
    folder
        Folder or S3 address of the recording.
    control
        Folder for the configuration.
    say
        Prints a sentence.

    Raises
    ------
    ClientError, UsageError
        If the options are wrong.
    OutputError
        If the folder cannot be written, or has a recording of this node.
    """

    def __init__(
        self, options: RecordingOptions, folder: str, control: Path, say: Callable[[str], None]
    ) -> None:
        self.folder = folder if is_s3(folder) else str(Path(folder).absolute())
        self._options = options
        self._config = control / CONFIG
        self._say = say
        self._node = node_number()
        self._document = options.document(self.folder)
        self._stamp = None if options.file is None else file_stamp(options.file)
        self._sampler: Sampler | None = None
        self._check_is_free()

    def _check_is_free(self) -> None:
        """Check that this node has not recorded into the folder; other nodes may be doing so."""
        own = f".algo-{self._node}.json"
        with translated(OutputError, SMDebugError):
            is_used = any(key.endswith(own) for key in self._keys(SYSTEM_FOLDER))
        if is_used:
            raise OutputError(
                f"Folder {self.folder!r} holds a recording. Choose another one, or remove it."
            )
        if not is_s3(self.folder):
            with output_errors(Path(self.folder)):
                Path(self.folder).mkdir(parents=True, exist_ok=True)

    def environment(self) -> dict[str, str]:
        """Return the variables by which the script's processes take part."""
        variables = {PATH_VARIABLE: str(self._config), SUPERVISED: self.folder}
        if parse_config(self._document).detailed is not None and KINETO_LOG not in os.environ:
            variables[KINETO_LOG] = SILENT
        return variables

    def start(self) -> None:
        """Write the configuration, and begin to sample the system."""
        draft = self._config.with_suffix(".new")
        draft.write_text(json.dumps(self._document), "utf-8")
        draft.replace(self._config)
        config = parse_config(self._document)
        if config.is_disabled:
            self._say("Profiling is disabled by the configuration.")
            return
        sampler = Sampler(self.folder, config.interval_ms, self._node)
        try:
            sampler.start()
        except OSError as err:
            self._say(f"System metrics are not sampled: {err}.")
        else:
            self._sampler = sampler

    async def follow(self) -> None:
        """Take over changes of the user's file, until this is cancelled."""
        file = self._options.file
        while file is not None and file.suffix != SUFFIX:  # code runs only once
            await asyncio.sleep(CHECK_S)
            stamp = file_stamp(file)
            if stamp is None or stamp == self._stamp:
                continue
            self._stamp = stamp
            try:
                document = self._options.document(self.folder)
                if document != self._document:
                    self._document = document
                    self._stop_sampler()
                    self.start()
            except (RuleRunnerError, OSError) as err:
                self._say(f"{err} The recording keeps its configuration.")

    def _stop_sampler(self) -> None:
        sampler, self._sampler = self._sampler, None
        if sampler is not None:
            sampler.stop(STOP_TIMEOUT_S)

    def end(self) -> None:
        """End sampling, complete the files of killed processes, and mark the end."""
        self._stop_sampler()
        with suppress(OSError, SMDebugError):  # such as a full disk, of which the writers told
            if not is_s3(self.folder):
                complete_drafts(self.folder)
            if self.has_steps():
                mark_end(self.folder, 0, 1)

    def has_steps(self) -> bool:
        """Return whether there are timelines of a training."""
        return self._has(DEFAULT_PREFIX)

    def is_empty(self) -> bool:
        """Return whether nothing was recorded."""
        return not (self.has_steps() or self._has(SYSTEM_FOLDER))

    def _has(self, folder: str) -> bool:
        with suppress(SMDebugError):
            return bool(self._keys(folder))
        return False

    def _keys(self, folder: str) -> list[str]:
        try:
            return [*open_output(self.folder).list_keys(f"{folder}/")]
        except ObjectNotFoundError:
            return []


def recorded(
    recording: ProfileRecording, frameworks: Sequence[str], missed: Sequence[str] = ()
) -> list[str]:
    """Return sentences on what was recorded, and how to look at it."""
    if recording.is_empty():
        return [f"Nothing was recorded in {recording.folder!r}."]
    sentences = []
    if not recording.has_steps():
        reasons = missed or [unseen(frameworks)]
        sentences.append(" ".join(["Only system metrics were recorded.", *reasons]))
    folder = recording.folder
    place = shlex.quote(folder if is_s3(folder) else str(short(Path(folder))))
    return [
        *sentences,
        f"Profile: {place}",
        f"Show it with: rule-runner profile show {place}",
        f"Judge it with: rule-runner profile report {place} --output DIR",
    ]
