"""NativeExport: a trial of saved tensors, as hooks write it."""

from pathlib import Path
from typing import Final

from rule_core.failures import OnError
from rule_core.format import paths
from rule_core.model.segments import segment_of
from rule_core.reading.trial_index import TrialIndex
from rule_core.saving.trial_writer import TrialWriter
from rule_runner.errors import UsageError
from rule_runner.export.saved_parts import SavedPart

GOES_BACK: Final = (
    "The run was resumed: its steps go back. Steps of a trial of smdebug only grow. Export to "
    "tensorboard, csv or jsonl instead."
)


class NativeExport:
    """Writes a trial with the same steps, modes, workers, collections and reductions.

    Raises
    ------
    UsageError
        If the steps of the trial go back.
    """

    def __init__(self, output: Path, index: TrialIndex) -> None:
        if index.steps and segment_of(index.steps[-1]):
            raise UsageError(GOES_BACK)
        self._index = index
        self._writers: dict[str, TrialWriter] = {}
        self._output = output

    def add(self, saved: SavedPart) -> bool:
        """Write what a worker saved at a step."""
        writer = self._writer(saved.worker)
        draft = writer.begin(saved.step, mode=saved.mode, mode_step=saved.file.mode_step)
        written_at = saved.time()
        with OnError(draft.discard):
            for name, array in saved.arrays(says_omissions=False):
                draft.add(name, array, written_at)
            for name, operation, absolute, value in saved.reductions():
                record_name = paths.reduction_record_name(name, operation, absolute)
                draft.add(record_name, value, written_at)
            for name, entry in saved.file.entries.items():
                if entry.shape is not None:
                    draft.add_shape(name, entry.shape)
            return draft.commit()

    def _writer(self, worker: str) -> TrialWriter:
        if worker not in self._writers:
            collections = self._index.collections
            writer = self._writers[worker] = TrialWriter(
                str(self._output),
                collections={name: [*each.include_regex] for name, each in collections.items()},
                worker=worker,
                num_workers=len(self._index.workers),
                end_job=False,
            )
            writer.add_members({name: each.tensor_names for name, each in collections.items()})
        return self._writers[worker]

    def close(self) -> None:
        """Mark the trial as ended."""
        for number, writer in enumerate(self._writers.values(), 1):
            writer.end_job = number == len(self._writers)
            writer.close()
