"""The patterns of lines in text logs, by the name of what writes them.

They were written after public logs and sources, not run with the real writers.
"""

from typing import Final, NamedTuple

NUMBER: Final = r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|(?i:nan|inf(?:inity)?))"


class LinePattern(NamedTuple):
    """A kind of line.

    Attributes
    ----------
    name
        The name of the pattern.
    pattern
        A regular expression that is searched for in a line, with the group ``step``. The other
        named groups are numbers.
    marks
        Texts that a line with the pattern contains; they spare the search.
    pairs
        A regular expression with the groups ``name`` and ``value`` that is searched for after the
        match, repeatedly; "" for none.
    prefix
        Precedes the names.
    """

    name: str
    pattern: str
    marks: tuple[str, ...] = ()
    pairs: str = ""
    prefix: str = ""


_BARS: Final = rf"(?P<name>[A-Za-z_][^|:]*?)\s*:\s*(?P<value>{NUMBER})\s*(?:\||$)"
_EQUALS: Final = rf"(?P<name>[A-Za-z_][\w/-]*)=(?P<value>{NUMBER})(?=[,\s]|$)"
_SPACES: Final = rf"\|\s*(?P<name>[A-Za-z_][\w/-]*) (?P<value>{NUMBER})\s*(?=\||$)"
_JSON: Final = rf"\"(?P<name>[^\"]+)\": \"?(?P<value>{NUMBER})\"?(?=[,}}\s])"

PATTERNS: Final = (
    # iteration      100/  500000 | consumed samples: 25600 | ... | lm loss: 7.8E+00 | ...
    LinePattern(
        "megatron",
        r"\biteration\s+(?P<step>\d+)/\s*\d+\s*\|",
        ("iteration", "|", ":"),
        _BARS,
    ),
    # validation loss at iteration 1000 | lm loss value: 2.5E+00 | lm loss PPL: 1.2E+01 |
    LinePattern(
        "megatron-validation",
        r"\bvalidation loss at iteration (?P<step>\d+)(?: on validation set)?\s*\|",
        ("validation loss at iteration",),
        _BARS,
        "validation/",
    ),
    LinePattern(
        "megatron-test",
        r"\bvalidation loss at iteration (?P<step>\d+) on test set\s*\|",
        ("validation loss at iteration", "test set"),
        _BARS,
        "test/",
    ),
    # steps: 10 loss: 8.1250 iter time (s): 0.512 samples/sec: 31.250
    LinePattern(
        "deepspeed-loss",
        rf"\bsteps: (?P<step>\d+) loss: (?P<loss>{NUMBER})"
        rf"(?: iter time \(s\): (?P<iter_time_s>{NUMBER}))?",
        ("steps: ", "loss: "),
    ),
    # [Rank 0] step=10, skipped=2, lr=[9.65e-06, 9.65e-06], mom=[(0.9, 0.95)]
    LinePattern(
        "deepspeed-lr",
        rf"\bstep=(?P<step>\d+), skipped=(?P<skipped>\d+), lr=\[(?P<lr>{NUMBER})",
        ("step=", "skipped="),
    ),
    # iter 10: loss 4.1234, time 123.45ms, mfu 12.34%
    LinePattern(
        "nanogpt",
        rf"\biter (?P<step>\d+): loss (?P<loss>{NUMBER})"
        rf"(?:, time (?P<time_ms>{NUMBER})ms)?(?:, mfu (?P<mfu>{NUMBER})%)?",
        ("iter ", ": loss "),
    ),
    # step 250: train loss 3.1000, val loss 3.2000
    LinePattern(
        "nanogpt-validation",
        rf"\bstep (?P<step>\d+): train loss (?P<train_loss>{NUMBER}), "
        rf"val loss (?P<val_loss>{NUMBER})",
        (": train loss ", "val loss "),
    ),
    # step:126/1000 train_loss:4.5123 train_time:1000ms step_avg:10.00ms
    LinePattern(
        "modded-nanogpt",
        rf"\bstep:(?P<step>\d+)/\d+ (?:train_loss|loss):(?P<train_loss>{NUMBER})"
        rf"(?:.*?\bstep_avg:(?P<step_avg_ms>{NUMBER})ms)?",
        ("step:", "loss:"),
    ),
    # step:125/1000 val_loss:3.2801 train_time:1000ms step_avg:10.00ms
    LinePattern(
        "modded-nanogpt-validation",
        rf"\bstep:(?P<step>\d+)/\d+ val_loss:(?P<val_loss>{NUMBER})",
        ("step:", "val_loss:"),
    ),
    # | INFO | train_inner | epoch 001:    100 / 1000 loss=9.5, ppl=640, num_updates=100, lr=1e-05
    LinePattern(
        "fairseq",
        r"\| epoch \d+:\s+\d+ / \d+ (?=.*\bnum_updates=(?P<step>\d+))",
        ("| epoch ", "num_updates="),
        _EQUALS,
    ),
    # | INFO | train | epoch 001 | loss 8.5 | ppl 280 | num_updates 1000 | lr 1e-05 | gnorm 2.5
    LinePattern(
        "fairseq-epoch",
        r"\| train \| epoch \d+ (?=.*\| num_updates (?P<step>\d+))",
        ("| train | epoch ", "| num_updates "),
        _SPACES,
        "train/",
    ),
    # | INFO | valid | epoch 001 | valid on 'valid' subset | loss 7.5 | ppl 128 | num_updates 1000
    LinePattern(
        "fairseq-validation",
        r"\| valid \| epoch \d+ (?=.*\| num_updates (?P<step>\d+))",
        ("| valid | epoch ", "| num_updates "),
        _SPACES,
        "valid/",
    ),
    # | INFO | train_inner | {"epoch": 1, "loss": "9.5", "num_updates": "100", "lr": "1e-05"}
    LinePattern(
        "fairseq-json",
        r"\| (?:train_inner|train|valid) \| (?=\{.*\"(?:\w+_)?num_updates\": \"?(?P<step>\d+))",
        ("| {", 'num_updates": '),
        _JSON,
    ),
)
