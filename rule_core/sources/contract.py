r"""SourceContract: the tests that every source passes, for those who write one.

Derive a class from `SourceContract` in your tests, say how runs are written, and let pytest collect
it::

    class TestMyFormat(SourceContract):
        source_format = my_package.FORMAT

        def write(self, folder, rows):
            lines = [f"{step};{values['loss']}" for step, values in rows]
            (folder / "run.mine").write_text("".join(f"{line}\n" for line in lines))
"""

import math
import random
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from rule_core.exceptions import SMDebugError
from rule_core.model.segments import global_step
from rule_core.modes import ModeKeys
from rule_core.reading.source_index import SourceIndex
from rule_core.sources.format import Recognized, SourceFormat
from rule_core.sources.open import open_sources
from rule_core.sources.recognize import source_folder
from rule_core.storage.base import TrialStore
from rule_core.storage.local import LocalStore

Row = tuple[int, Mapping[str, float]]
# Values by mode, name and global step.
Content = dict[tuple[str, str, int], list[float]]


class SourceContract:
    """Tests of one format; see the module.

    Attributes
    ----------
    source_format
        The format.
    rows
        The run that is written: ascending steps, with the same names at each.
    cuts, damages
        In how many places files are cut, and how many damaged copies are read.
    in_turn
        Whether the files of a run are written one after another, or all of them at each step.
    keeps_not_finite
        Whether the format can hold NaN and infinities.
    has_restarts
        Whether steps of a run can go back.
    """

    source_format: ClassVar[SourceFormat]
    rows: ClassVar[Sequence[Row]] = [
        (10 * number, {"loss": 1.0 / number, "lr": 0.125}) for number in range(1, 9)
    ]
    cuts: ClassVar[int] = 30
    damages: ClassVar[int] = 20
    in_turn: ClassVar[bool] = True
    keeps_not_finite: ClassVar[bool] = True
    has_restarts: ClassVar[bool] = True

    def write(self, folder: Path, rows: Sequence[Row]) -> None:
        """Write a run into a folder, or go on with the one in it.

        Parameters
        ----------
        rows
            All rows of the run, those that were written before among them.
        """
        raise NotImplementedError

    def store(self, folder: Path) -> TrialStore:
        """Return the store with the files of a folder; override it to test another kind."""
        return LocalStore(folder)

    # -- tests -------------------------------------------------------------------------------

    def test_a_run_is_recognized(self, tmp_path: Path) -> None:
        """The format recognises its own files, once, and says why."""
        self.write(tmp_path, self.rows)
        items = self._recognize(tmp_path)
        _check(len(items) == 1, f"one source was expected, got {items}")
        _check(items[0].kind == self.source_format.kind, f"its kind is {items[0].kind!r}")
        _check(bool(items[0].reason), "it does not say why it was recognised")

    def test_another_folder_is_not_recognized(self, tmp_path: Path) -> None:
        """The format takes no file that it cannot read."""
        for name in ("notes.txt", "loss.csv", "log.jsonl", "train.log", "state.json"):
            (tmp_path / name).write_bytes(b"\x00\xffnothing of the kind\n")
        (tmp_path / "empty.csv").touch()
        items = self._recognize(tmp_path)
        _check(not items, f"it was recognised: {items}")

    def test_values_are_those_written(self, tmp_path: Path) -> None:
        """Each number is there, at its step and under its name."""
        self.write(tmp_path, self.rows)
        index = self._read(tmp_path)
        for step, values in self.rows:
            for name, value in values.items():
                read = _number(index, name, step)
                _check(math.isclose(read, value, rel_tol=1e-5), f"{name} at {step} is {read}")
        steps = [*index.steps]
        _check(steps == [step for step, _ in self.rows], f"its steps are {steps}")
        mode = next(iter(index.tensors.modes_at(steps[0])), None)
        _check(mode is ModeKeys.TRAIN, f"its mode is {mode}")

    def test_values_that_are_not_finite_are_kept(self, tmp_path: Path) -> None:
        """NaN and infinities are values, not gaps."""
        if not self.keeps_not_finite:
            return
        special = [math.nan, math.inf, -math.inf]
        rows = [
            (step, {**values, "loss": number})
            for (step, values), number in zip(self.rows, special, strict=False)
        ]
        self.write(tmp_path, rows)
        index = self._read(tmp_path)
        for (step, _), number in zip(rows, special, strict=True):
            read = _number(index, "loss", step)
            _check(repr(read) == repr(number), f"{number} was read as {read}")

    def test_a_live_reading_equals_a_later_one(self, tmp_path: Path) -> None:
        """A run that is followed row by row has the same content as one that is read at its end."""
        self.write(tmp_path, self.rows[:1])
        index = self._open(tmp_path)
        for count in range(2, len(self.rows) + 1):
            index.refresh()
            self.write(tmp_path, self.rows[:count])
        index.refresh()
        index.finish()
        _compare(_content(index), _content(self._read(tmp_path)), "followed", "read later")

    def test_any_cut_gives_a_part_of_the_run(self, tmp_path: Path) -> None:
        """What is read of a file that is still being written never changes afterwards."""
        folder = self._whole(tmp_path)
        whole = _content(self._read(folder))
        for cut in self._cuts(folder, tmp_path / "cut"):
            index = self._open(folder, cut)
            index.refresh()
            last = index.settled_step
            for key, values in _content(index).items():
                if key[2] <= last:
                    _check(_same(values, whole.get(key)), f"{key} was {values} in a cut file")

    def test_a_cut_file_that_goes_on_is_read_to_its_end(self, tmp_path: Path) -> None:
        """Wherever a reader meets the end of a growing file, it goes on from there."""
        folder = self._whole(tmp_path)
        whole = _content(self._read(folder))
        for cut in self._cuts(folder, tmp_path / "cut"):
            index = self._open(folder, cut)
            index.refresh()
            shutil.copytree(folder, cut, dirs_exist_ok=True)
            index.refresh()
            index.finish()
            _compare(_content(index), whole, "continued", "whole")

    def test_a_run_that_was_begun_anew_is_another_segment(self, tmp_path: Path) -> None:
        """Steps that go back are kept beside those before."""
        if not self.has_restarts:
            return
        again = [(step, dict.fromkeys(values, -1.0)) for step, values in self.rows[2:4]]
        self.write(tmp_path, [*self.rows, *again])
        index = self._read(tmp_path)
        _check(len(index.segments) > 1, "there is one segment")
        step = again[0][0]
        _check(_number(index, "loss", step) != -1.0, "the first history is lost")
        second = _number(index, "loss", global_step(1, step))
        _check(second == -1.0, f"the second history has {second}")

    def test_damaged_bytes_do_no_harm(self, tmp_path: Path) -> None:
        """Whatever a file holds, reading it raises nothing."""
        whole = self._whole(tmp_path)
        items = self._recognize(whole)
        draw = random.Random(7)  # noqa: S311 - not for secrets
        for number in range(self.damages):
            folder = tmp_path / f"damaged-{number}"
            shutil.copytree(whole, folder)
            for path in _files(folder):
                data = bytearray(path.read_bytes())
                for _ in range(1 + number // 4):
                    data[draw.randrange(len(data))] = draw.randrange(256)
                path.write_bytes(data)
            index = self._opened(self.store(folder), items)
            index.refresh()
            index.finish()
            _content(index, ignore=True)

    def test_files_may_disappear(self, tmp_path: Path) -> None:
        """A run that is deleted while it is followed raises nothing."""
        self.write(tmp_path, self.rows[:4])
        index = self._open(tmp_path)
        index.refresh()
        before = [*index.steps]
        for path in _files(tmp_path):
            path.unlink()
        index.refresh()
        index.has_ended()
        _check([*index.steps] == before, "steps were lost")

    # -- reading -----------------------------------------------------------------------------

    def _whole(self, parent: Path) -> Path:
        """Write the run into a folder of its own, and return it."""
        folder = parent / "whole"
        folder.mkdir()
        self.write(folder, self.rows)
        return folder

    def _recognize(self, folder: Path) -> list[Recognized]:
        items = self.source_format.recognize(source_folder(self.store(folder), ""))
        return [item for item in items if isinstance(item, Recognized)]

    def _open(self, folder: Path, actual: Path | None = None) -> SourceIndex:
        """Open a run that was recognised in one folder, in another one with the same files."""
        return self._opened(self.store(actual or folder), self._recognize(folder))

    def _opened(self, store: TrialStore, items: Sequence[Recognized]) -> SourceIndex:
        return open_sources(store, [(self.source_format, item) for item in items])

    def _read(self, folder: Path) -> SourceIndex:
        index = self._open(folder)
        index.refresh()
        index.finish()
        return index

    def _cuts(self, whole: Path, folder: Path) -> Iterator[Path]:
        """Yield folders with the files of a run as they are at some point while it is written."""
        files = _files(whole)
        sizes = [path.stat().st_size for path in files]
        for number in range(self.cuts):
            rest = sum(sizes) * number // self.cuts
            cut = folder / str(number)
            cut.mkdir(parents=True, exist_ok=True)
            for path, size in zip(files, sizes, strict=True):
                length = min(rest, size) if self.in_turn else size * number // self.cuts
                rest -= length
                if length:
                    target = cut / path.relative_to(whole)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(path.read_bytes()[:length])
            yield cut


def _content(index: SourceIndex, *, ignore: bool = False) -> Content:
    """Return all values of a trial; `ignore` those that cannot be read."""
    content: Content = {}
    for step in index.steps:
        for part, file in index.files[step].items():
            for name in file.entries:
                try:
                    values = index.tensors.value(name, step, part).reshape(-1)
                except SMDebugError:
                    if not ignore:
                        raise
                else:
                    content[file.mode.name, name, step] = [float(value) for value in values]
    return content


def _number(index: SourceIndex, name: str, step: int) -> float:
    """Return the number of a tensor at a step."""
    for part, file in (index.files.get(step) or {}).items():
        if name in file.entries:
            return float(index.tensors.value(name, step, part).reshape(-1)[0])
    raise AssertionError(f"{name!r} is absent at step {step}")


def _same(values: Sequence[float], others: Sequence[float] | None) -> bool:
    return others is not None and repr(list(values)) == repr(list(others))


def _compare(content: Content, other: Content, name: str, other_name: str) -> None:
    _check(
        content.keys() == other.keys(),
        f"{name} has {sorted(content.keys() - other.keys())} alone, "
        f"{other_name} has {sorted(other.keys() - content.keys())} alone",
    )
    for key, values in content.items():
        _check(_same(values, other[key]), f"{key} is {values} {name}, {other[key]} {other_name}")


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _check(condition: bool, message: str) -> None:
    if not condition:
        raise AssertionError(message)
