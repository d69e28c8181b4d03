"""The fields of lines, written after public logs: not run with the real writers."""

import pytest
from source_files import Content, read

from rule_core.model.segments import SEGMENT_STEPS
from rule_core.sources.rows.line_fields import line_fields
from rule_core.sources.rows.text_log import FORMAT

LINES: dict[str, tuple[str, Content]] = {
    "megatron": (
        (
            "[2024-05-01 10:00:00]  iteration      100/  500000 | consumed samples:        25600 | "
            "elapsed time per iteration (ms): 512.3 | learning rate: 1.500E-04 | "
            "global batch size:   256 | lm loss: 7.812345E+00 | loss scale: 4294967296.0 | "
            "grad norm: nan | number of skipped iterations:   0 | number of nan iterations:   1 |"
        ),
        {
            "consumed samples": [("100", 25600.0)],
            "elapsed time per iteration (ms)": [("100", 512.3)],
            "learning rate": [("100", 1.5e-4)],
            "global batch size": [("100", 256.0)],
            "lm loss": [("100", 7.812345)],
            "loss scale": [("100", 4294967296.0)],
            "grad norm": [("100", float("nan"))],
            "number of skipped iterations": [("100", 0.0)],
            "number of nan iterations": [("100", 1.0)],
        },
    ),
    "megatron-validation": (
        (
            " validation loss at iteration 1000 on validation set | lm loss value: 2.5E+00 | "
            "lm loss PPL: 1.2E+01 | "
        ),
        {
            "validation/lm loss value": [("1000", 2.5)],
            "validation/lm loss PPL": [("1000", 12.0)],
        },
    ),
    "megatron-test": (
        " validation loss at iteration 1000 on test set | lm loss value: 2.5E+00 |",
        {"test/lm loss value": [("1000", 2.5)]},
    ),
    "deepspeed-loss": (
        "steps: 10 loss: 8.1250 iter time (s): 0.512 samples/sec: 31.250",
        {"loss": [("10", 8.125)], "iter time (s)": [("10", 0.512)], "samples/sec": [("10", 31.25)]},
    ),
    "nanogpt": (
        "iter 10: loss 4.1234, time 123.45ms, mfu 12.34%",
        {"loss": [("10", 4.1234)], "time": [("10", 123.45)], "mfu": [("10", 12.34)]},
    ),
    "nanogpt-validation": (
        "step 250: train loss 3.1000, val loss nan",
        {"train loss": [("250", 3.1)], "val loss": [("250", float("nan"))]},
    ),
    "modded-nanogpt": (
        "step:126/1000 train_loss:4.5123 train_time:1000ms step_avg:10.00ms",
        {
            "train_loss": [("126", 4.5123)],
            "train_time": [("126", 1000.0)],
            "step_avg": [("126", 10.0)],
        },
    ),
    "modded-nanogpt-validation": (
        "step:125/1000 val_loss:3.2801 train_time:1000ms step_avg:10.00ms",
        {
            "val_loss": [("125", 3.2801)],
            "train_time": [("125", 1000.0)],
            "step_avg": [("125", 10.0)],
        },
    ),
    "fairseq": (
        (
            "2021-01-01 00:00:00 | INFO | train_inner | epoch 001:    100 / 1000 loss=9.5, "
            "nll_loss=9.3, ppl=640.5, num_updates=100, lr=1e-05, gnorm=2.5, wall=15"
        ),
        {
            "loss": [("100", 9.5)],
            "nll_loss": [("100", 9.3)],
            "ppl": [("100", 640.5)],
            "lr": [("100", 1e-05)],
            "gnorm": [("100", 2.5)],
            "wall": [("100", 15.0)],
        },
    ),
    "fairseq-epoch": (
        (
            "2021-01-01 00:00:00 | INFO | train | epoch 001 | loss 8.5 | ppl 280.1 | "
            "num_updates 1000 | lr 1e-05 | gnorm inf"
        ),
        {
            "loss": [("1000", 8.5)],
            "ppl": [("1000", 280.1)],
            "lr": [("1000", 1e-05)],
            "gnorm": [("1000", float("inf"))],
        },
    ),
    "fairseq-validation": (
        (
            "2021-01-01 00:00:00 | INFO | valid | epoch 001 | valid on 'valid' subset | loss 7.5 | "
            "num_updates 1000 | best_loss 7.5"
        ),
        {"valid/loss": [("1000", 7.5)], "valid/best_loss": [("1000", 7.5)]},
    ),
    "fairseq-json": (
        (
            '2021-01-01 00:00:00 | INFO | train_inner | {"epoch": 1, "update": 0.1, "loss": "9.5", '
            '"ppl": "640.5", "num_updates": "100", "lr": "1e-05", "gnorm": "2.5"}'
        ),
        {
            "loss": [("100", 9.5)],
            "ppl": [("100", 640.5)],
            "lr": [("100", 1e-05)],
            "gnorm": [("100", 2.5)],
        },
    ),
}


@pytest.mark.parametrize("name", LINES)
def test_lines(name: str) -> None:
    line, expected = LINES[name]
    assert repr(read(FORMAT, f"noise\n{line}\nmore noise\n".encode())) == repr(expected)


def test_a_line_of_deepspeed_after_one_with_a_loss() -> None:
    line = (
        b"[2023-04-13 10:00:00,123] [INFO] [logging.py:96] [Rank 0] step=10, skipped=2, "
        b"lr=[9.65e-06, 9.65e-06], mom=[(0.9, 0.95)]\n"
    )
    assert read(FORMAT, b"step=5 loss=2\n" + line) == {
        "loss": [("5", 2.0)],
        "skipped": [("10", 2.0)],
        "lr": [("10", 9.65e-06)],
        "mom": [("10", 0.9)],
    }
    assert not read(FORMAT, line)


NAMED_AROUND_COUNTERS: dict[str, tuple[str, Content]] = {
    "is": ("Score loss at iteration 10 is 2.47", {"Score loss": [("10", 2.47)]}),
    "after": ("Loss after epoch 3: 1913.77", {"Loss": [("3", 1913.77)]}),
    "no word": ("Train loss 7 0.85 Grad Norm 0.89", {"Train loss": [("7", 0.85)]}),
    "fraction": ("training it 24/60 of epoch 0, 11.0 ms/it, loss 0.52", {"loss": [("24", 0.52)]}),
    "epoch and batch": ("epoch: 1, 11/25 44%, lr: 0.1, loss: 2", {"loss": [("11", 2.0)]}),
    "sentences": (
        "step 2 took 3.1 s at 100 records/second. Loss is 2.5",
        {"Loss": [("2", 2.5)]},
    ),
    "pairs": ("episode: 9 statistics: [('average_loss', 0.125)]", {"average_loss": [("9", 0.125)]}),
    "Julia": ("Epoch: 4 Train: (loss = 1.5f-2, acc = 2f0)", {"loss": [("4", 0.015)]}),
    "Fortran": ("step 4 loss= 2.5D-01", {"loss": [("4", 0.25)]}),
    "a number in the name": (
        "Training loss (for 1 batch) at step 4: 0.5",
        {"Training loss": [("4", 0.5)]},
    ),
    "an article": ("At epoch 4 the loss is 0.5", {"loss": [("4", 0.5)]}),
    "batches of an epoch": (
        "| epoch   3 |   200/ 2640 batches | lr 20.00 | loss  7.34",
        {"loss": [("5480", 7.34)]},
    ),
    "a bar behind the count": ("970 | loss 1.5 | lr 1e-4", {"loss": [("970", 1.5)]}),
    "an index variable": ("i=40  total_loss=1.5", {"total_loss": [("40", 1.5)]}),
    "a mode and parentheses": ("train (3/25) loss: 1.5 | lr: 0.5", {"loss": [("3", 1.5)]}),
    "an index in the name": (
        "step 3 class 0 accuracy: 0.25 class 1 accuracy: 0.5",
        {"class 0 accuracy": [("3", 0.25)], "class 1 accuracy": [("3", 0.5)]},
    ),
    "a range in the name": (
        "step 9 | mAP@0.5: 0.75 | mAP@0.50:0.95: 0.5",
        {"mAP@0.5": [("9", 0.75)], "mAP@0.50:0.95": [("9", 0.5)]},
    ),
    "a hyphen": ("Epoch-4 loss: 0.5", {"loss": [("4", 0.5)]}),
    "an initial": (
        "E166/500 | Loss:0.5 | TrF1:45.5% | mAP50:0.25",
        {"Loss": [("166", 0.5)], "TrF1": [("166", 45.5)], "mAP50": [("166", 0.25)]},
    ),
    "a number before the epoch": (
        "[     302 Epoch:[ 1/25] [   1/300] time: 14.3, d_loss: 0.5",
        {"d_loss": [("1", 0.5)]},
    ),
    "a hash": ("[NEW BEST] Epoch #170: loss=0.5", {"loss": [("170", 0.5)]}),
    "an escaped tabulator": ("Epoch[4] Batch [7]#011loss=0.5", {"loss": [("7", 0.5)]}),
    "the logger": ("INFO:tensorflow:[  40] | gnorm  1.5 | loss  0.5", {"loss": [("40", 0.5)]}),
    "a path": ("Epoch 4: 'a/train.log' loss 0.5", {"loss": [("4", 0.5)]}),
    "a warning": (
        f"iter 10 || Loss: 0.5 || /lib/torch/tensor.py:44: UserWarning: {'mask is wrong, ' * 9}",
        {"Loss": [("10", 0.5)]},
    ),
    "cross-validation": ("CV step 4 loss 0.5", {"eval/loss": [("4", 0.5)]}),
}


@pytest.mark.parametrize("line", NAMED_AROUND_COUNTERS)
def test_names_around_counters(line: str) -> None:
    text, expected = NAMED_AROUND_COUNTERS[line]
    content = read(FORMAT, f"{text}\n".encode())
    assert {name: content.get(name) for name in expected} == expected


@pytest.mark.parametrize(
    "line",
    [
        "cfg.steps=50000 (50K)",
        "{'epochs': 10000, 'lr': 0.1, 'loss': 'mse'}",
        "epochs=50, n=3",
        "set=test best-epoch=3 auc=0.5",
        "Loaded the model from epoch 168 (val_loss=0.5)",
        "batch: 64",
    ],
)
def test_settings_are_no_counters(line: str) -> None:
    assert not line_fields(line).counts


def test_a_device_is_no_number() -> None:
    pairs = line_fields("step 10 loss 0.5], device='cuda:0', grad_fn=<Norm>)").pairs
    assert [pair.name for pair in pairs] == ["loss"]


def test_validations_of_fairseq_in_json() -> None:
    line = b'| valid | {"epoch": 1, "valid_loss": "7.5", "valid_num_updates": "1000"}\n'
    assert read(FORMAT, line) == {"valid_loss": [("1000", 7.5)]}


def test_training_and_validation_of_one_step_are_one_segment() -> None:
    log = (
        b"step 0: train loss 4.2, val loss 4.3\niter 0: loss 4.2, time 1.0ms, mfu -100.00%\n"
        b"iter 1: loss 4.1, time 1.0ms, mfu 1.00%\nstep 1: train loss 4.1, val loss 4.2\n"
    )
    assert {step for values in read(FORMAT, log).values() for step, _ in values} == {"0", "1"}
    log = (
        b"| train_inner | epoch 001: 1 / 2 loss=3, num_updates=2, lr=1\n"
        b"| valid | epoch 1 | loss 2 | num_updates 2\n| train | epoch 1 | loss 3 | num_updates 2\n"
    )
    assert {step for values in read(FORMAT, log).values() for step, _ in values} == {"2"}


def test_a_rounded_count_with_separators() -> None:
    (count,) = line_fields("step: 4,800K loss 0.5").counts
    assert (count.value, count.rounding) == (4_800_000, 500)


def test_a_total_of_any_length() -> None:
    (count,) = line_fields(f"step 3/{'9' * 400} loss 0.5").counts
    assert (count.value, count.total) == (3, SEGMENT_STEPS)


@pytest.mark.parametrize(
    ("line", "pairs"),
    [
        ("Pi loss 1.28305806Val V loss 0.5", [("Pi loss", "1.28305806"), ("Val V loss", "0.5")]),
        ("Time: 2.4709106sReturn: 5.0", [("Time", "2.4709106"), ("Return", "5.0")]),
        ("0 | model | Adversarial | 26.8 K | train | 0", []),
        ("| epoch 1 | loss 0.5 | ppl 3.2 |", [("loss", "0.5"), ("ppl", "3.2")]),
        ("| valid | loss | 0.5", [("loss", "0.5")]),
        ("epoch | 1 | loss | 0.5", [("epoch", "1"), ("loss", "0.5")]),
        ("layer 0.5Conv 3DConv", []),
        ("===== Training Loss (Thu Sep  4 01:02:03 2020) =====", []),
        ("Tue Apr 26: loss 0.5", [("loss", "0.5")]),
        ("'val/acc' reached 0.162, saving 'val_acc=0.1620.ckpt'", [("val/acc", "0.162")]),
    ],
)
def test_where_names_and_numbers_touch_or_are_cells(
    line: str, pairs: list[tuple[str, str]]
) -> None:
    assert [(pair.name, pair.digits) for pair in line_fields(line).pairs] == pairs
