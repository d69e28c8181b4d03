from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed.")

from torch.nn import functional

from rule_core.frameworks.pytorch.measures.loss_graph import compared_classes, spreads


def scores(*shape: int) -> Any:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(*shape, generator=generator).requires_grad_()


def lists(loss: Any) -> tuple[list[int], list[int]] | None:
    found = compared_classes(loss)
    return None if found is None else (found.labels.tolist(), found.predictions.tolist())


LABELS = torch.tensor([1, 0, 2, 2])


@pytest.mark.parametrize(
    "loss",
    [
        pytest.param(lambda at: functional.cross_entropy(at, LABELS), id="cross-entropy"),
        pytest.param(lambda at: functional.nll_loss(at.log_softmax(1), LABELS), id="nll"),
        pytest.param(lambda at: torch.nn.CrossEntropyLoss()(at, LABELS) / 4 + 1, id="scaled"),
        pytest.param(
            lambda at: functional.cross_entropy(at, LABELS) + 0.1 * at.pow(2).mean(), id="sum"
        ),
    ],
)
def test_classes_are_those_that_a_cross_entropy_compares(loss: Any) -> None:
    at = scores(4, 3)
    assert lists(loss(at)) == (LABELS.tolist(), at.argmax(1).tolist())


def test_ignored_labels_are_left_out() -> None:
    at = scores(4, 3)
    labels = torch.tensor([1, -100, 2, -100])
    expected = [1, 2], at.argmax(1)[::2].tolist()
    assert lists(functional.cross_entropy(at, labels)) == expected


@pytest.mark.parametrize("shape", [(4,), (4, 1)])
def test_scores_of_one_class_are_cut_at_zero(shape: tuple[int, ...]) -> None:
    at = scores(*shape)
    labels = torch.tensor([1.0, 0.0, 0.0, 1.0]).reshape(shape)
    loss = functional.binary_cross_entropy_with_logits(at, labels)
    assert lists(loss) == ([1, 0, 0, 1], (at.reshape(-1) > 0).int().tolist())


@pytest.mark.parametrize(
    "loss",
    [
        pytest.param(lambda: scores(4, 3).pow(2).mean(), id="no-classes"),
        pytest.param(
            lambda: functional.cross_entropy(scores(4, 65), LABELS), id="more-than-64-classes"
        ),
        pytest.param(
            lambda: functional.cross_entropy(scores(4, 4), torch.arange(4)), id="contrastive"
        ),
        pytest.param(
            lambda: functional.cross_entropy(scores(2, 3, 5), torch.zeros(2, 5).long()),
            id="positions",
        ),
        pytest.param(
            lambda: functional.binary_cross_entropy_with_logits(scores(4, 3), torch.ones(4, 3)),
            id="several-labels-a-row",
        ),
        pytest.param(lambda: torch.zeros(()), id="no-graph"),
    ],
)
def test_what_has_no_classes(loss: Any) -> None:
    assert compared_classes(loss()) is None


def test_a_graph_that_was_freed_has_no_classes() -> None:
    loss = functional.cross_entropy(scores(4, 3), LABELS)
    loss.backward()
    assert compared_classes(loss) is None


def test_spread_is_one_for_even_rows_and_zero_for_equal_ones() -> None:
    even, equal = scores(512, 64), scores(1, 64).expand(16, 64)
    loss = functional.cosine_similarity(even * 1, (even * 1).roll(1, 0)).mean()
    assert [float(spread) for spread in spreads(loss)] == pytest.approx([1.0, 1.0], abs=0.05)
    (spread,) = spreads(functional.normalize(equal * 1, dim=1).sum())
    assert float(spread) == pytest.approx(0.0, abs=1e-6)


def test_norms_of_columns_and_of_a_penalty_are_no_embeddings() -> None:
    rows = scores(16, 16) * 1
    for loss in (
        functional.normalize(rows, dim=0).sum(),
        (rows.norm(2, dim=1) - 1).square().mean(),
        (rows / 2).norm(),
    ):
        assert [*spreads(loss)] == []
    assert len([*spreads((rows / rows.norm(dim=-1, keepdim=True)).sum())]) == 1


def test_parameters_targets_and_short_batches_are_no_embeddings() -> None:
    fixed = torch.ones(16, 16)
    for rows in (scores(16, 16), scores(7, 16) * 1, scores(16, 7) * 1, scores(8, 8, 8) * 1):
        loss = functional.normalize(rows, dim=1).sum() + functional.normalize(fixed, dim=1).sum()
        assert [*spreads(loss)] == []
