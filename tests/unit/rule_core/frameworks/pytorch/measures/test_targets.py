"""What is counted of targets, and what the rule says of it."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from judging import judge, save

torch = pytest.importorskip("torch", reason="torch is not installed.")

from torch.nn import functional

from builtin_rules import MaskedOrShiftedLabels
from rule_core.frameworks.pytorch.measures.targets import TargetCounts

ROWS, LENGTH, WORDS, END = 4, 12, 20, 1
IGNORED = -100
WHOLE = slice(None)


def tokens(seed: int = 0) -> Any:
    """Return tokens, all above 3."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(4, WORDS, (ROWS, LENGTH), generator=generator)


def cross_entropy(targets: Any, **options: Any) -> Any:
    """Return a cross entropy with targets of any shape."""
    scores = torch.randn(targets.numel(), WORDS, requires_grad=True)
    return functional.cross_entropy(scores, targets.reshape(-1), **options)


def shifted_inside(labels: Any, **options: Any) -> Any:
    """Return a loss as models of Transformers compute it: they shift labels themselves."""
    return cross_entropy(functional.pad(labels, (0, 1), value=IGNORED)[:, 1:], **options)


def masked(labels: Any, rows: Any, columns: Any = WHOLE) -> Any:
    """Return labels of which some are ignored."""
    labels = labels.clone()
    labels[rows, columns] = IGNORED
    return labels


def padded(seed: int = 0, *, pad: int = END, is_left: bool = False, ending: int = END) -> Any:
    """Return rows that end at different places with an end token, and their mask."""
    x, mask = tokens(seed), torch.ones(ROWS, LENGTH, dtype=torch.long)
    for row, length in enumerate((6, 8, 10, 12)):
        x[row, length - 1], x[row, length:], mask[row, length:] = ending, pad, 0
        if is_left:
            x[row], mask[row] = x[row].roll(LENGTH - length), mask[row].roll(LENGTH - length)
    return x, mask


def shifted_twice(seed: int) -> Any:
    x = tokens(seed)
    return x[:, :-1], None, shifted_inside(x[:, 1:])


def sliced_twice(seed: int) -> Any:
    x = tokens(seed)
    inputs, labels = x[:, :-1], x[:, 1:]
    return inputs, None, cross_entropy(labels[:, 1:])


def all_ignored(seed: int) -> Any:
    x = tokens(seed)
    return x, None, shifted_inside(masked(x, WHOLE))


def all_of_another_index(_: int) -> Any:
    return None, None, cross_entropy(torch.zeros(8, dtype=torch.long), ignore_index=0)


def end_ignored(seed: int, **options: Any) -> Any:
    x, mask = padded(seed, **options)
    return x, mask, shifted_inside(x.where(x != END, IGNORED))


FAULTS: Mapping[str, tuple[Callable[[int], Any], str]] = {
    "twice": (shifted_twice, "Labels are shifted twice"),
    "sliced-twice": (sliced_twice, "Labels are shifted twice"),
    "ignored": (all_ignored, "No label counts"),
    "another-index": (all_of_another_index, "No label counts"),
    "end": (end_ignored, "The end token is padding too"),
    "end-left": (lambda seed: end_ignored(seed, is_left=True), "The end token is padding too"),
}


def sliced(seed: int) -> Any:
    x = tokens(seed)
    return x[:, :-1], None, cross_entropy(x[:, 1:])


def prompt_ignored(seed: int) -> Any:
    x = tokens(seed)
    return x, None, shifted_inside(masked(x, WHOLE, slice(8)))


def answer_of_one_token(seed: int) -> Any:
    x = tokens(seed)
    labels = masked(x, WHOLE, slice(11))
    labels[:, -1] = 4
    return x, None, shifted_inside(labels)


def masked_language(seed: int) -> Any:
    x = tokens(seed)
    is_hidden = torch.arange(LENGTH) % 3 == seed % 3
    return x.where(~is_hidden, 2), None, cross_entropy(x.where(is_hidden, IGNORED))


def repeated(seed: int) -> Any:
    x = tokens(seed)[:, :1].expand(-1, LENGTH)
    return x, None, shifted_inside(x)


def alternating(seed: int) -> Any:
    x = tokens(seed)[:, :2].repeat(1, LENGTH // 2)
    return x, None, shifted_inside(x)


def copied(seed: int) -> Any:
    x = tokens(seed)
    return x, None, cross_entropy(x)


def classified(seed: int) -> Any:
    x = tokens(seed)
    return x, None, cross_entropy(x[:, 2])


def corrupted(seed: int) -> Any:
    x = tokens(seed)
    noisy = x.clone()
    noisy[:, ::4] = 3
    return noisy, None, shifted_inside(x)


def several_tokens_ahead(seed: int) -> Any:
    x = tokens(seed)
    return x, None, shifted_inside(x) + cross_entropy(x[:, 2:])


def end_counted(seed: int) -> Any:
    x, mask = padded(seed)
    return x, mask, shifted_inside(x.where(mask == 1, IGNORED))


def end_counted_left(seed: int) -> Any:
    x, mask = padded(seed, is_left=True)
    return x, mask, shifted_inside(x.where(mask == 1, IGNORED))


def own_padding(seed: int) -> Any:
    x, mask = padded(seed, pad=0)
    return x, mask, shifted_inside(x.where(mask == 1, IGNORED))


def newline_after_the_end(seed: int) -> Any:
    x, mask = padded(seed, pad=0, ending=3)
    return x, mask, shifted_inside(x.where((mask == 1) & (x != 3), IGNORED))


def last_turn_ignored(seed: int) -> Any:
    x, mask = padded(seed)
    labels = x.where(x != END, IGNORED)
    for row, length in enumerate((6, 8, 10, 12)):
        labels[row, length - 3 :] = IGNORED
    return x, mask, shifted_inside(labels)


def begins_as_it_ends(seed: int) -> Any:
    x = tokens(seed)
    x[:, 0] = x[:, -1] = END
    return x, torch.ones_like(x), shifted_inside(x.where(x != END, IGNORED))


def cut_off(seed: int) -> Any:
    x = tokens(seed)
    return x, torch.ones_like(x), shifted_inside(x)


def ignored_now_and_then(seed: int) -> Any:
    return all_ignored(seed) if seed % 3 else sliced(seed)


def second_loss_ignored(seed: int) -> Any:
    x, mask, loss = sliced(seed)
    return x, mask, loss + shifted_inside(masked(tokens(seed), WHOLE), reduction="sum")


def pictures(seed: int) -> Any:
    del seed
    scores = torch.randn(ROWS, WORDS, 3, 4, requires_grad=True)
    return None, None, functional.cross_entropy(scores, torch.zeros(ROWS, 3, 4).long())


HEALTHY: Mapping[str, Callable[[int], Any]] = {
    "sliced": sliced,
    "prompt": prompt_ignored,
    "one-token": answer_of_one_token,
    "masked-language": masked_language,
    "repeated": repeated,
    "alternating": alternating,
    "copied": copied,
    "classified": classified,
    "corrupted": corrupted,
    "ahead": several_tokens_ahead,
    "end": end_counted,
    "end-left": end_counted_left,
    "own-padding": own_padding,
    "newline": newline_after_the_end,
    "last-turn": last_turn_ignored,
    "begins-as-it-ends": begins_as_it_ends,
    "cut-off": cut_off,
    "now-and-then": ignored_now_and_then,
    "second-loss": second_loss_ignored,
    "pictures": pictures,
}


def notes(root: Path, make: Callable[[int], Any]) -> list[str]:
    """Return what the rule says of three steps."""
    steps = {}
    for seed in range(3):
        targets = TargetCounts()
        x, mask, loss = make(seed)
        targets.note_inputs(({"attention_mask": mask, "input_ids": x},))
        targets.count(loss)
        steps[seed] = {name: count.numpy() for name, count in targets.counts.items()}
    return [str(one.note) for one in judge(MaskedOrShiftedLabels, save(root, steps)).findings]


@pytest.mark.parametrize(
    ("make", "expected"), [pytest.param(*case, id=name) for name, case in FAULTS.items()]
)
def test_wrong_labels_are_named(make: Callable[[int], Any], expected: str, tmp_path: Path) -> None:
    assert [note.partition(":")[0].partition(",")[0] for note in notes(tmp_path, make)] == [
        expected
    ]


@pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in HEALTHY.items()])
def test_healthy_labels(make: Callable[[int], Any], tmp_path: Path) -> None:
    assert notes(tmp_path, make) == []


def test_counts_of_several_losses_of_a_step_add_up() -> None:
    targets = TargetCounts()
    targets.note_inputs((tokens(),))
    for labels in (tokens(), masked(tokens(), WHOLE)):
        targets.count(shifted_inside(labels))
    assert targets.counts["targets/counted"] == ROWS * (LENGTH - 1)
    targets.begin_step()
    assert targets.counts == {}


def test_the_first_call_of_a_step_has_its_tokens() -> None:
    targets = TargetCounts()
    x, mask = padded()
    targets.note_inputs(({"input_ids": x, "attention_mask": mask},))
    targets.note_inputs(({"input_ids": tokens(1), "attention_mask": torch.ones_like(mask)},))
    targets.count(shifted_inside(x))
    assert targets.counts["targets/next_tokens"] == targets.counts["targets/compared"] > 0
    assert targets.counts["targets/end_tokens"] == ROWS - 1


def test_batches_of_other_sizes_are_not_compared() -> None:
    targets = TargetCounts()
    targets.note_inputs((tokens(),))
    targets.count(cross_entropy(tokens()[:3]))
    assert targets.counts.keys() == {"targets/counted"}


@pytest.mark.parametrize(
    ("loss", "predictions", "targets", "count"),
    [
        pytest.param(functional.mse_loss, (4, 1), (4,), 1, id="column-and-row"),
        pytest.param(functional.mse_loss, (4,), (4, 1), 1, id="row-and-column"),
        pytest.param(functional.smooth_l1_loss, (4, 1), (4,), 1, id="smooth"),
        pytest.param(torch.nn.HuberLoss(), (4, 1), (4,), 1, id="huber-module"),
        pytest.param(functional.mse_loss, (4, 1, 2), (4, 2), 1, id="two-numbers"),
        pytest.param(functional.mse_loss, (4, 1), (4, 1), 0, id="columns"),
        pytest.param(functional.mse_loss, (4,), (4,), 0, id="rows"),
        pytest.param(functional.mse_loss, (4, 3), (), 0, id="one-target"),
        pytest.param(functional.mse_loss, (4, 3), (3,), 0, id="one-target-a-column"),
        pytest.param(functional.mse_loss, (3,), (4, 3), 0, id="one-prediction"),
        pytest.param(functional.mse_loss, (4, 1), (6,), 0, id="all-pairs"),
        pytest.param(functional.mse_loss, (1, 1), (1,), 0, id="one-row"),
    ],
)
@pytest.mark.filterwarnings("ignore:Using a target size")
def test_broadcast_losses_are_counted(
    loss: Any, predictions: tuple[int, ...], targets: tuple[int, ...], count: int
) -> None:
    counts = TargetCounts()
    counts.count(loss(torch.ones(predictions, requires_grad=True), torch.zeros(targets)))
    assert counts.counts == {"targets/broadcast": count}
