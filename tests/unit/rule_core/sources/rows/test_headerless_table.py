"""Numbers without a header: one a line, or after a count, in files called after a metric."""

import pytest
from memory_store import MemoryStore
from source_files import Content, Followed, read, recognized

from rule_core.sources.format import Recognized
from rule_core.sources.recognize import recognize, source_folder
from rule_core.sources.rows.headerless_table import FORMAT


@pytest.mark.parametrize(
    ("key", "content", "expected"),
    [
        ("train_loss.txt", b"0.75\n5e-1\n", {"train_loss": [("0", 0.75), ("1", 0.5)]}),
        ("acc.log", b"# by epoch\n75.5%\n80%\n", {"acc": [("0", 75.5), ("1", 80.0)]}),
        ("loss.txt", b"0.75,\n0.5,\n", {"loss": [("0", 0.75), ("1", 0.5)]}),
        ("loss.csv", b"0\n0.75\n0.5\n", {"loss": [("0", 0.75), ("1", 0.5)]}),  # by pandas
        ("rewards.txt", b"0\n5\n", {"rewards": [("0", 0.0), ("1", 5.0)]}),
        ("train_log.csv", b"0.75\n0.5\n", {"train_log": [("0", 0.75), ("1", 0.5)]}),
        (
            "loss_log.txt",
            b"0.75,-9.5\n0.5,-8.5\n",
            {"loss_log": [("0", 0.75), ("1", 0.5)], "column 2": [("0", -9.5), ("1", -8.5)]},
        ),
        ("val_acc.csv", b"0.75\n0.5\n", {"val_acc": [("0", 0.75), ("1", 0.5)]}),
        ("loss.csv", b"0,0.75\n1,0.5\n", {"loss": [("0", 0.75), ("1", 0.5)]}),
        (
            "loss.txt",
            b"1\t0.75\t9\n2\t0.5\t8\n1\t0.25\t7\n",
            {
                "loss": [("1", 0.75), ("2", 0.5), ("1 of segment 2", 0.25)],
                "column 3": [("1", 9.0), ("2", 8.0), ("1 of segment 2", 7.0)],
            },
        ),
        (
            "validation_log.txt",
            b" 0.00e+00  7.5e-01\n 1.00e+00  5.0e-01\n",
            {"column 2": [("0", 0.75), ("1", 0.5)]},
        ),
        ("loss/train.tsv", b"0.75\n0.5\n", {"loss/train": [("0", 0.75), ("1", 0.5)]}),
        (
            "loss.txt",
            b"tensor(0.75, device='a')\ntensor(0.5, device='a')\n",
            {"loss": [("0", 0.75), ("1", 0.5)]},
        ),
    ],
)
def test_files_that_say_what_their_numbers_are(key: str, content: bytes, expected: Content) -> None:
    folder, slash, _ = key.rpartition("/")
    store = MemoryStore({key: content})
    [item] = FORMAT.recognize(source_folder(store, folder + slash))
    assert isinstance(item, Recognized)
    assert read(FORMAT, content, key) == expected


@pytest.mark.parametrize(
    ("key", "content"),
    [
        ("loss.txt", b"0.75\nx\n0.5\n"),
        ("loss.md", b"0.75\n0.5\n"),
        ("x.csv", b"0.75\n0.5\n"),
        ("train.csv", b"0,0.75\n1,0.5\n"),
        ("loss.csv", b"0.75\n"),
        ("loss.csv", b"0,0.75,2\n1,0.5,1\n"),
        ("loss.csv", b"5.5,0.75\n1,0.5\n"),
        ("loss.csv", b"1,0.75\n0,0.5\n5,1\n3,0.5\n"),
        ("dice.txt", b"1\n5\n"),
        ("loss.txt", b"1;0,5;\n2,5;3;\n"),
        ("map.txt", b"0 1 0\n1 0 1\n"),
        ("loss.csv", b"1731000000,0.75\n1731000300,0.5\n"),
    ],
)
def test_numbers_without_a_name_or_a_count_are_not_read(key: str, content: bytes) -> None:
    assert recognized(FORMAT, {key: content}) == []


def test_a_file_that_does_not_say_what_its_numbers_are_is_reported() -> None:
    table = Followed(FORMAT, "x.txt", {"x.txt": b"0.5\n0.25\n"})
    assert table.end() == {}
    assert len(table.problems) == 1
    assert "Its first line names neither a column of steps" in table.problems[0]


def test_a_log_beside_numbers_is_read_instead() -> None:
    log = b"".join(b"Epoch %d, loss: 0.%d\n" % (epoch, 9 - epoch) for epoch in range(1, 6))
    store = MemoryStore({"train.log": log, "loss.txt": b"0.75\n0.5\n"})
    [run] = recognize(source_folder(store, "")).runs
    assert [item.key for _, item in run.sources] == ["train.log"]
    assert [item.key for item in run.set_aside] == ["loss.txt"]


def test_the_sets_of_numbers_are_one_run() -> None:
    store = MemoryStore({"train_loss.txt": b"0.75\n0.5\n", "val_loss.txt": b"0.75\n0.5\n"})
    [run] = recognize(source_folder(store, "")).runs
    assert [item.key for _, item in run.sources] == ["train_loss.txt", "val_loss.txt"]
