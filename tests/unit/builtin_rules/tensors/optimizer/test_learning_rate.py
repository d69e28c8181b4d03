"""LearningRate: rates of zero, negative rates, jumps, and schedules that miss the run."""

from collections.abc import Sequence

import numpy as np
import pytest
from judging_rows import first_of, judge_rows, rows_of, verdicts

from builtin_rules import LearningRate
from smdebug.core.modes import ModeKeys
from smdebug.rules.extensions import Severity

ERROR, WARNING, NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE
ROWS = 200
AT = np.arange(ROWS)
COSINE = 1e-3 * (1 + np.cos(np.pi * AT / (ROWS - 1))) / 2
WARM_UP = np.minimum(1.0, AT / 20)
FALLING = 2.0 * 0.98**AT
BY_EPOCH = AT // 20  # ten epochs


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        pytest.param([1e-3] * ROWS, [], id="constant"),
        pytest.param(COSINE, [], id="cosine-to-zero"),
        pytest.param(COSINE * WARM_UP, [], id="warm-up-from-zero"),
        pytest.param(np.round(COSINE / 100, 7), [], id="a-printed-tail-of-zeros"),
        pytest.param(1e-3 * np.minimum(WARM_UP, (ROWS - 1 - AT) / 40), [], id="wsd"),
        pytest.param(np.tile(COSINE[::4] + 1e-9, 4), [], id="restarts"),
        pytest.param(1e-1 * 0.1 ** (AT // 60), [], id="staircase"),
        pytest.param(0.1 * (1 + np.cos(np.pi * BY_EPOCH / 10)), [], id="cosine-by-epoch"),
        pytest.param(1e-3 * np.minimum(1, (1 + BY_EPOCH) / 5), [], id="warm-up-by-epoch"),
        pytest.param(1e-8 * 10.0 ** (AT / 20), [], id="range-test"),
        pytest.param(1e-8 * 10.0 ** (AT[:12]), [], id="sparse-warm-up"),
        pytest.param([0.0] * 39, [(38, ERROR)], id="zero-in-a-short-run"),
        pytest.param([0.0] * 9, [], id="zero-in-nine-rows"),
        pytest.param([0.0] * 50, [(39, ERROR)], id="zero"),
        pytest.param([*[0.0] * 39, *[1e-3] * 20], [], id="zero-for-39-rows"),
        pytest.param([np.nan, *[1e-3] * 20], [], id="not-finite"),
        pytest.param([*[1.25e-3] * 41, *[0.0] * 20], [(51, WARNING)], id="goes-on-at-zero"),
        pytest.param([*[1.2e-3] * 41, *[0.0] * 20], [(51, NOTE)], id="two-digits-and-zero"),
        pytest.param([*[1.25e-3, 1e-4] * 20, *[0.0] * 20], [(50, WARNING)], id="ten-units"),
        pytest.param([*[1.25e-3, 9e-5] * 20, *[0.0] * 20], [(50, NOTE)], id="nine-units"),
        pytest.param(
            np.round(COSINE * np.clip((120 - AT) / 100, 0, 1), 6), [(150, NOTE)], id="six-decimals"
        ),
        pytest.param(COSINE * np.clip((120 - AT) / 100, 0, 1), [(150, WARNING)], id="ends-at-120"),
        pytest.param([*[1e-3] * 30, *[0.0] * 9], [], id="nine-rows-at-zero"),
        pytest.param([*[1e-3] * 80, *[0.0] * 20], [(99, NOTE)], id="a-fifth-at-zero"),
        pytest.param([*[1.25e-3] * 79, *[0.0] * 20], [(98, WARNING)], id="more-than-a-fifth"),
        pytest.param([*[1e-3] * 41, *[9.9e-10] * 20], [(51, WARNING)], id="a-millionth"),
        pytest.param([*[1e-3] * 41, *[1.1e-9] * 20], [], id="more-than-a-millionth"),
        pytest.param([*[1e-3] * 25, -1e-6, 1e-3], [(25, ERROR)], id="negative"),
        pytest.param([*[1e-3] * 25, 1e-2, 1e-2], [(25, WARNING)], id="jump"),
        pytest.param([*[1e-3] * 25, 9.9e-3, 9.9e-3], [], id="a-small-jump"),
        pytest.param([*[1e-3] * 19, 1e-2], [], id="jump-in-the-first-rows"),
        pytest.param([*[1e-2] * 5, *[1e-4] * 25, 1e-2], [], id="back-to-the-highest"),
        pytest.param(
            0.1 * (1 + np.cos(np.pi * BY_EPOCH / 500)), [(199, WARNING)], id="never-moves"
        ),
        pytest.param(
            1e-3 * np.minimum(1, (1 + BY_EPOCH) / 500), [(199, WARNING)], id="warms-up-for-ever"
        ),
        pytest.param(0.1 * (1 + np.cos(np.pi * AT / 9999)), [], id="stopped-early-by-batch"),
        pytest.param(
            0.1 * (1 + np.cos(np.pi * AT / 80)), [(97, WARNING)], id="half-cosine-that-goes-on"
        ),
        pytest.param(0.1 * (1 - np.cos(np.pi * AT / 50)), [], id="cyclic"),
    ],
)
def test_verdicts(rates: Sequence[float], expected: list[tuple[int, Severity]]) -> None:
    assert verdicts(judge_rows(LearningRate, rows_of(lr=rates)))[:1] == expected


def test_parameters() -> None:
    assert judge_rows(LearningRate, rows_of(lr=[0.0] * 20), patience=15).met[0] == 14
    jump = rows_of(lr=[*[1e-3] * 25, 3e-3])
    assert judge_rows(LearningRate, jump, jump=3).met == [25]


def test_zero_with_a_falling_loss_is_printed_with_too_few_digits() -> None:
    rows = rows_of(lr=[0.0] * ROWS, loss=FALLING)
    assert verdicts(judge_rows(LearningRate, rows)) == [(39, NOTE)]
    rows = rows_of(lr=[0.0] * ROWS, loss=np.full(ROWS, 2.0))
    assert verdicts(judge_rows(LearningRate, rows))[0] == (39, ERROR)


def test_a_warm_up_by_epoch_is_no_fault_while_the_loss_falls() -> None:
    rates = 1e-3 * (1 + BY_EPOCH) / 500
    assert verdicts(judge_rows(LearningRate, rows_of(lr=rates, loss=FALLING))) == [(199, NOTE)]
    rising = rows_of(lr=rates, loss=FALLING[::-1])
    assert verdicts(judge_rows(LearningRate, rising)) == [(199, WARNING)]


def test_a_group_at_zero_beside_others_is_frozen() -> None:
    rows = rows_of(**{"lr/0": [0.0] * ROWS, "lr/1": [1e-3] * ROWS})
    assert verdicts(judge_rows(LearningRate, rows)) == [(39, NOTE)]
    both = rows_of(**{"lr/0": [0.0] * ROWS, "lr/1": [0.0] * ROWS})
    assert {finding.tensor for finding in judge_rows(LearningRate, both).findings} == {
        "lr/0",
        "lr/1",
    }
    thawed = rows_of(**{"lr/0": [1e-3] * ROWS, "lr/1": [*[1e-3] * 50, *[0.0] * 150]})
    assert judge_rows(LearningRate, thawed).met == []


def test_a_language_model_without_warm_up_is_a_note() -> None:
    rows = rows_of(lr=COSINE, num_input_tokens_seen=AT)
    assert verdicts(judge_rows(LearningRate, rows)) == [(19, NOTE)]
    assert verdicts(judge_rows(LearningRate, rows_of(lr=COSINE * WARM_UP, ppl=AT))) == []


def test_each_worker_is_judged_by_itself() -> None:
    judged = judge_rows(LearningRate, rows_of(lr=[1e-3] * 40), rows_of(lr=[0.0] * 40))
    assert verdicts(judged) == [(39, ERROR)]


def test_steps_of_evaluation_are_skipped() -> None:
    judged = judge_rows(LearningRate, rows_of(lr=[-1.0] * 3), modes={0: ModeKeys.EVAL})
    assert (judged.findings, len(judged.skipped)) == ([], 3)


@pytest.mark.parametrize("rates", [[0.0] * 50, [*[1.25e-3] * 41, *[0.0] * 20]])
def test_the_numbers_of_steps_do_not_matter(rates: list[float]) -> None:
    rows = rows_of(lr=rates)
    renumbered = [(10 * step + 5, values) for step, values in rows]
    first = first_of(judge_rows(LearningRate, rows))
    assert first is not None
    assert first_of(judge_rows(LearningRate, renumbered)) == 10 * first + 5


SCHEDULES = [
    COSINE * WARM_UP,
    np.round(COSINE, 6),
    np.tile(COSINE[::4] + 1e-8, 4),
    1e-1 * 0.1 ** (AT // 60),
    1e-4 * np.minimum(AT / 60, 2 - AT / 100).clip(4e-2),  # one-cycle
    0.1 * (1 + np.cos(np.pi * BY_EPOCH / 10)),
]


@pytest.mark.parametrize("keep", [1, 2, 5, 10])
def test_healthy_schedules_are_not_accused(keep: int) -> None:
    accused = [
        at
        for at, rates in enumerate(SCHEDULES)
        if judge_rows(LearningRate, rows_of(lr=rates[::keep])).met
    ]
    assert accused == []


def test_rows_that_were_not_saved_count_too() -> None:
    steps = [*range(100), *range(100, 400, 10)]
    rates = [1.25e-3 if step < 200 else 0.0 for step in steps]
    rows = [(step, values) for step, (_, values) in zip(steps, rows_of(lr=rates), strict=True)]
    assert first_of(judge_rows(LearningRate, rows)) == 240


@pytest.mark.parametrize(
    ("columns", "back"),
    [
        pytest.param({"lr": [*[0.0] * 41, *[1e-3] * 20]}, [41], id="zero-at-first"),
        pytest.param({"lr": [0.0] * 60}, [], id="zero-for-ever"),
        pytest.param({"lr": [0.0] * 80, "loss": [*[2.0] * 50, *[1.0] * 30]}, [55], id="few-digits"),
        pytest.param({"lr": [*[1.25e-3] * 41, *[0.0] * 20, *[1.25e-3] * 9]}, [61], id="goes-on"),
        pytest.param({"lr": [*[1e-3] * 25, -1e-6, 1e-3]}, [26], id="negative"),
        pytest.param({"lr": [*[1e-3] * 25, 1e-2, 1e-2]}, [], id="jump"),
    ],
)
def test_a_rate_has_recovered_when_it_is_above_zero_or_explained(
    columns: dict[str, list[float]], back: list[int]
) -> None:
    findings = judge_rows(LearningRate, rows_of(**columns)).findings
    assert [each.step for each in findings if each.recovered_at is not None] == back


def test_a_rate_that_stays_negative_has_not_recovered_beside_one_that_moves() -> None:
    findings = judge_rows(LearningRate, rows_of(lr_0=[-1e-3] * 60, lr_1=[1e-3] * 60)).findings
    assert not any(each.recovered_at is not None for each in findings)


@pytest.mark.parametrize(("first", "met"), [(0, True), (199, True), (201, False)])
def test_the_schedule_of_a_run_that_was_resumed_late_is_not_known(first: int, met: bool) -> None:
    rates = 0.1 * (1 + np.cos(np.pi * BY_EPOCH / 500))
    rows = [(first + step, values) for step, values in rows_of(lr=rates)]
    assert bool(judge_rows(LearningRate, rows).met) is met
