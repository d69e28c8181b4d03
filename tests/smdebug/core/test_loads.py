"""Loads: the elements asked for, in order, a few loads ahead and no more, whoever reads them."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import numpy as np
import pytest

from smdebug.core import loads
from smdebug.core.loads import Ahead, Elements, Memory, Part, grouped, needed, read
from smdebug.core.record_layout import FOOTER, RecordLayout
from smdebug.exceptions import SMDebugError
from smdebug.storage.local import LocalStore
from smdebug.storage.memory import MemoryFile

CONTENT = bytes(range(200))
LAYOUT = RecordLayout(200, 0, 200, np.dtype("u1"), (200,), 0, 0)


class Counting(MemoryFile):
    """Counts reads, and fails at one of them."""

    def __init__(self, fails_at: int = -1) -> None:
        super().__init__(memoryview(CONTENT))
        self.reads = 0
        self.fails_at = fails_at
        self.came = Event()

    def read_into(self, start: int, buffers: "list[memoryview]") -> int:  # type: ignore[override]
        self.reads += 1
        if self.reads == loads.AHEAD:
            self.came.set()
        if self.reads == self.fails_at:
            msg = "No more."
            raise SMDebugError(msg)
        return super().read_into(start, buffers)


def part(opened: MemoryFile, start: int, size: int = 10) -> Part:
    return Part(opened, start, 0, size, 0, LAYOUT)


def plain(elements: Elements) -> list[bytes | None]:
    return [None if one is None else one.tobytes() for one in elements]


def test_neighbours_are_read_at_once_and_others_apart() -> None:
    file, other = Counting(), Counting()
    parts = [part(file, 0), part(file, 10), part(file, 30), part(other, 40), part(file, 40)]
    found = read(parts, Memory().take(needed(parts)))
    assert plain(found) == [CONTENT[one.start : one.start + 10] for one in parts]
    assert (file.reads, other.reads) == (3, 1)


def test_what_is_cut_off_is_none_and_so_are_its_neighbours() -> None:
    file = Counting()
    parts = [part(file, 180), part(file, 190, 11), part(file, 50)]
    found = read(parts, Memory().take(needed(parts)))
    assert plain(found) == [None, None, CONTENT[50:60]]


def test_elements_are_aligned_and_cannot_be_written_to() -> None:
    parts = [part(Counting(), 3, 5), part(Counting(), 8, 7)]
    for one in read(parts, Memory().take(needed(parts))):
        assert one is not None
        assert one.__array_interface__["data"][0] % 16 == 0
        assert not one.flags.writeable


@pytest.mark.parametrize("count", [loads.MOST_PARTS, loads.MOST_PARTS + 1, 5000])
def test_a_system_that_takes_so_many_buffers_at_once_is_given_no_more(
    count: int, tmp_path: Path
) -> None:
    size = 12
    layout = RecordLayout(size, 1, size - 4, np.dtype("u1"), (size - 5,), 0xFF, 7)
    content = b"\7elements".ljust(size - 4, b".")[: size - 4] + FOOTER
    (tmp_path / "file").write_bytes(content * count)
    with LocalStore(tmp_path).opened("file") as opened:
        parts = [Part(opened, size * at, 1, size - 5, 4, layout) for at in range(count)]
        found = read(parts, Memory().take(needed(parts)))
    assert plain(found) == [content[1:-4]] * count


@pytest.mark.parametrize(
    ("limit", "expected"), [(10, [1, 1, 1, 1]), (20, [2, 1, 1]), (45, [4]), (1, [1, 1, 1, 1])]
)
def test_units_are_grouped_up_to_a_limit(limit: int, expected: list[int]) -> None:
    file = Counting()
    units = [(part(file, 10 * at),) for at in range(2)] + [(part(file, 20, 15),), (part(file, 0),)]
    assert [len(group) for group in grouped(units, limit)] == expected


def test_memory_is_used_again() -> None:
    memory = Memory()
    first = memory.take(10)
    memory.give(first)
    assert memory.take(10) is first
    assert memory.take(10) is not first


def test_ahead_reads_a_few_loads_only_and_gives_all_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loads, "LOAD_BYTES", 10)
    file = Counting()
    units = [(part(file, 10 * at),) for at in range(20)]
    ahead = Ahead(units, Memory())
    with ThreadPoolExecutor(1) as pool:
        over = pool.submit(ahead.run)
        file.came.wait(60)
        assert (file.reads, over.done()) == (loads.AHEAD, False)
        assert [plain(one) for one in ahead] == [
            [CONTENT[at : at + 10]] for at in range(0, 200, 10)
        ]


def test_ahead_that_is_closed_reads_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loads, "LOAD_BYTES", 10)
    file = Counting()
    ahead = Ahead([(part(file, 10 * at),) for at in range(20)], Memory())
    with ThreadPoolExecutor(1) as pool:
        over = pool.submit(ahead.run)
        file.came.wait(60)
        ahead.close()
        over.result(60)
    assert file.reads == loads.AHEAD


def test_what_the_thread_meets_meets_the_one_who_uses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loads, "LOAD_BYTES", 10)
    file = Counting(fails_at=2)
    ahead = Ahead([(part(file, 10 * at),) for at in range(4)], Memory())
    with ThreadPoolExecutor(1) as pool:
        pool.submit(ahead.run).result(60)
    found = iter(ahead)
    assert plain(next(found)) == [CONTENT[:10]]
    with pytest.raises(SMDebugError, match="No more"):
        next(found)
