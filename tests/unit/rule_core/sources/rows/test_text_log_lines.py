"""Free text: spellings of one run, lines that belong to no training, and texts without one."""

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from source_files import Content, Followed, read

from rule_core.sources.rows.text_log import FORMAT, what_counts

ROWS: Sequence[tuple[int, float, float]] = [(20, 2.5, 0.25), (40, 1.75, 0.5), (60, 0.875, 0.75)]
Spelling = Callable[[int, float, float], str]
SPELLINGS: dict[str, Spelling] = {
    "colons": lambda step, loss, acc: f"step: {step}, loss: {loss}, acc: {acc}",
    "equals": lambda step, loss, acc: f"step={step} loss={loss} acc={acc}",
    "blanks": lambda step, loss, acc: f"step {step} loss {loss} acc {acc}",
    "bars": lambda step, loss, acc: f"step {step} | loss {loss} | acc {acc}",
    "dashes": lambda step, loss, acc: f"step:{step} - loss:{loss} - acc:{acc}",
    "dict": lambda step, loss, acc: f"{{'step': {step}, 'loss': {loss}, 'acc': '{acc}'}}",
    "json after a prefix": lambda step, loss, acc: (
        f'[train] {{"step": {step}, "loss": {loss}, "acc": {acc}}}'
    ),
    "averages": lambda step, loss, acc: (
        f"Step [{step}/60]\tloss {loss} ({loss + 1})\tacc {acc} ({acc / 2})"
    ),
    "total": lambda step, loss, acc: f"[step {step}/60] loss: {loss:e} acc: {acc}",
    "logger": lambda step, loss, acc: (
        f"2026-01-02 03:04:05,678 - train.py:31 - INFO - step {step}: loss {loss}, acc {acc}"
    ),
    "rank": lambda step, loss, acc: f"[rank0]: step {step} loss {loss} acc {acc}",
    "bar": lambda step, loss, acc: (
        f"{step * 100 // 60}%|###  | {step}/60 [00:01<00:02, 3.2it/s, loss={loss}, acc={acc}]"
    ),
    "tensors": lambda step, loss, acc: (
        f"step {step} loss tensor({loss}, device='cuda:0') acc np.float64({acc})"
    ),
    "colours": lambda step, loss, acc: (
        f"\x1b[32mstep {step}\x1b[0m loss \x1b[1m{loss}\x1b[0m acc {acc}"
    ),
    "table": lambda step, loss, acc: (
        ("step    loss    acc\n" if step == 20 else "") + f"{step}    {loss}    {acc}"
    ),
    "box": lambda step, loss, acc: (
        f"------------\n| step | {step} |\n| loss | {loss} |\n| acc | {acc} |\n------------"
    ),
    "lines": lambda step, loss, acc: f"== step {step} ==\n  loss: {loss}\n  acc: {acc}",
    "parentheses": lambda step, loss, acc: f"[Train]({step}/60) loss: {loss}, acc: {acc}",
    "logger with lines": lambda step, loss, acc: (
        f"0:00 main:99 INFO [step={step}/60]\n    count=12\n    loss={loss}\n    acc={acc}"
    ),
    "full width": lambda step, loss, acc: f"step：{step}，loss：{loss}，acc：{acc}",  # noqa: RUF001 - looked for
    "decimal comma": lambda step, loss, acc: f"step {step}; loss {loss:.4f}; acc {acc:.4f}".replace(
        ".", ","
    ),
}
EXPECTED: Content = {
    "loss": [(str(step), loss) for step, loss, _ in ROWS],
    "acc": [(str(step), acc) for step, _, acc in ROWS],
}
NOISE = ("loading data", "", "Traceback (most recent call last):", "saved to /tmp/model.pt", "~~~")


def written(spelling: Spelling) -> list[str]:
    return [spelling(*row) for row in ROWS]


def series(text: str) -> Content:
    content = read(FORMAT, text.encode())
    return {name: content[name] for name in ("loss", "acc") if name in content}


def test_each_line_of_a_step_can_tell_of_a_training() -> None:
    rows = [f"my.train:99 [step={step}/60]\n  loss={0.5**step}" for step in range(1, 9)]
    assert what_counts("\n".join(["epoch 0 accuracy 0.5", *rows]))


@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS)
def test_spellings(spelling: Spelling) -> None:
    text = "\n".join(written(spelling)) + "\n"
    assert what_counts(text)
    assert series(text) == EXPECTED


@given(
    st.sampled_from([*SPELLINGS]),
    st.lists(st.sampled_from(NOISE), min_size=4, max_size=4),
    st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_what_stands_between_changes_nothing(name: str, noise: list[str], end: str) -> None:
    if name in {"table", "box", "lines"} and end == "\r":
        return
    lines = [
        line for pair in zip(noise, ["", *written(SPELLINGS[name])], strict=True) for line in pair
    ]
    assert series(end.join(lines).replace("\n", end if end != "\r" else "\n") + end) == EXPECTED


@given(st.sampled_from([*SPELLINGS]), st.integers(0, 400))
def test_a_cut_text_gives_a_prefix(name: str, cut: int) -> None:
    whole = "\n".join(written(SPELLINGS[name])).encode() + b"\n"
    log = Followed(FORMAT, "log")
    before = log.look(whole[: min(cut, len(whole))])
    for key, values in before.items():
        assert repr(EXPECTED.get(key, values)[: len(values)]) == repr(values)


@given(
    st.text()
    | st.lists(
        st.sampled_from(
            [
                "epoch",
                "1/3",
                "[",
                "]",
                "(",
                "nan",
                "loss",
                "=",
                "|",
                "%",
                "\t",
                "0.5",
                "-",
                ":",
                " ",
            ]
        )
    ).map("".join)
)
def test_any_text_is_read(text: str) -> None:
    what_counts(text)


@pytest.mark.parametrize(
    "text",
    [
        '10.0.0.1 - - [03/Feb/2026:10:00:00 +0000] "GET /epoch/3?step=5 HTTP/1.1" 200 512 rt=0.5\n'
        * 50,
        "".join(
            f"Collecting package{n}==1.{n}\n  Downloading ({n}.{n} MB)  {n}/50 MB 3.{n} MB/s\n"
            for n in range(40)
        ),
        "".join(
            f"[{n}.{n:06}] usb 1-{n}: new device number {n}, speed=480, loss=0\n" for n in range(40)
        ),
        "".join(f"tests/test_loss.py::test_train_loss[{n}] PASSED [{n:3}%]\n" for n in range(50)),
        "We trained for 30 epochs. After epoch 3 the loss was 0.5; at epoch 10 it fell to 0.25.\n"
        * 2,
        "".join(
            f"  {n * 1000}  {n}%   1.{n}MB/s    0:00:{n:02} (xfr#{n}, to-chk={n}/50)\n"
            for n in range(50)
        ),
        "".join(
            f"commit {n}abc\n {n} files changed, {n} insertions(+), {n} deletions(-)\n"
            for n in range(50)
        ),
        "".join(
            f"{n} packets, rtt min/avg/max = 0.{n}/1.{n}/2.{n} ms, 0% packet loss\n"
            for n in range(50)
        ),
    ],
    ids=["web", "pip", "kernel", "tests", "prose", "copy", "git", "ping"],
)
def test_texts_without_a_training(text: str) -> None:
    assert not what_counts(text)
