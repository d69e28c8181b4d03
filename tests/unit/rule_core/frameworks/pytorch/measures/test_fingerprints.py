"""Fingerprints tell rows apart, and recognize rows that occur again."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed.")

from rule_core.frameworks.pytorch.measures.fingerprints import batch_hashes, row_hashes, split_batch


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool])
def test_only_equal_rows_have_equal_hashes(dtype: torch.dtype) -> None:
    rows = (torch.arange(512).reshape(64, 8)[:, :, None] >> torch.arange(10)) % 2
    rows = rows.flatten(1).to(dtype)
    hashes = row_hashes(torch.cat([rows, rows.flip(0)]))
    assert hashes.dtype == torch.int64
    assert len(set(hashes.tolist())) == 64
    assert hashes[:64].tolist() == hashes[64:].flip(0).tolist()


def test_order_of_elements_and_long_rows_count() -> None:
    permuted = torch.tensor([[1.0, 2.0], [2.0, 1.0], [3.0, 0.0]])
    assert len(set(row_hashes(permuted).tolist())) == 3
    long = torch.zeros(2, 1 << 20)
    long[1, 1 << 19] = 1
    assert len(set(row_hashes(long).tolist())) == 2


def test_arguments_are_inputs_or_labels() -> None:
    tokens, labels = torch.arange(6).reshape(2, 3), torch.tensor([0, 1])
    inputs, hashed = batch_hashes(({"input_ids": tokens, "labels": labels},))
    assert inputs.tolist() == row_hashes(tokens).tolist()
    assert hashed.tolist() == row_hashes(labels).tolist()
    more, _ = batch_hashes((tokens, tokens + 1))
    assert more.tolist() != inputs.tolist()
    assert batch_hashes(("text", torch.tensor(1.0))) == (None, None)


def test_batches_of_loaders() -> None:
    assert split_batch((1, 2)) == (1, 2)
    assert split_batch((1, 2, 3)) == ((1, 2, 3), None)
