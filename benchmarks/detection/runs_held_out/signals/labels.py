"""Cross entropies under `rule-runner train`: wrong labels of language models, and healthy ones."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from training.consequences import UNTAUGHT, WORSE
from training.language import Gpt, corpus
from training.learnt_data import images
from training.scripts import (
    END,
    IGNORED,
    bert,
    by_lightning,
    chosen,
    gpt2,
    learn,
    llama,
    padded,
    rows,
)
from training.small_networks import Cnn
from training.under_train import under_train
from training_runs import faulty, healthy

LABELS = {"MaskedOrShiftedLabels"}
MAY = UNTAUGHT | WORSE
WORDS = 48


@faulty(
    "a Llama on windows of words",
    "the data set makes next words, and the model shifts them again",
    LABELS,
    may=MAY,
    kind="language_model",
)
@under_train
def next_words_shifted_again() -> None:
    model = llama()
    learn(model, (model(input_ids=x[:, :-1], labels=x[:, 1:]).loss for x in rows()))


@faulty(
    "a GPT-2 on questions and answers",
    "windows are cut before the answers, so all labels are masked",
    LABELS,
    may=MAY | {"ExplodingTensor": "the mean of no losses is NaN"},
    kind="language_model",
)
@under_train
def answers_cut_off() -> None:
    model = gpt2()

    def losses() -> Iterator[Any]:
        for x in rows():
            labels = x.clone()
            labels[:, :14] = IGNORED
            yield model(input_ids=x[:, :12], labels=labels[:, :12]).loss

    learn(model, losses())


@healthy("a GPT-2 on packed words", kind="language_model")
@under_train
def packed_words() -> None:
    model = gpt2()
    learn(model, (model(input_ids=x, labels=x).loss for x in rows()))


@healthy("a GPT that the script shifts itself", kind="language_model")
@under_train
def shifted_by_the_script() -> None:
    torch.manual_seed(0)
    model = Gpt()
    learn(model, (functional.cross_entropy(model(x[:, :-1]), x[:, 1:]) for x in rows()))


@healthy("a Llama that answers, questions and padding masked", kind="language_model")
@under_train
def answers_alone() -> None:
    model = llama()

    def losses() -> Iterator[Any]:
        for words in rows():
            x, mask = padded(words, 0)
            labels = x.masked_fill(mask == 0, IGNORED)
            labels[:, :5] = IGNORED
            yield model(input_ids=x, attention_mask=mask, labels=labels).loss

    learn(model, losses())


@healthy("a Llama padded with its end on the left, masked by attention", kind="language_model")
@under_train
def padded_on_the_left() -> None:
    model = llama()

    def losses() -> Iterator[Any]:
        for words in rows():
            x, mask = padded(words, END, left=True)
            labels = x.masked_fill(mask == 0, IGNORED)
            yield model(input_ids=x, attention_mask=mask, labels=labels).loss

    learn(model, losses())


@healthy("a GPT-2 padded with its end, whose first end counts", kind="language_model")
@under_train
def first_end_counts() -> None:
    model = gpt2()

    def losses() -> Iterator[Any]:
        for words in rows():
            x, mask = padded(words, END)
            labels = x.masked_fill(mask == 0, IGNORED)
            yield model(input_ids=x, attention_mask=mask, labels=labels).loss

    learn(model, losses())


@healthy("a BERT that fills in 15 % of the words", kind="language_model")
@under_train
def words_filled_in() -> None:
    model = bert("MaskedLM")

    def losses() -> Iterator[Any]:
        for x in rows(32):
            hidden = torch.rand(x.shape) < 0.15
            labels = x.masked_fill(~hidden, IGNORED)
            yield model(input_ids=x.masked_fill(hidden, 63), labels=labels).loss

    learn(model, losses())


@healthy("a T5 that copies words backwards", kind="language_model")
@under_train
def words_backwards_again() -> None:
    from transformers import T5Config, T5ForConditionalGeneration

    torch.manual_seed(0)
    config = T5Config(
        vocab_size=64,
        d_model=32,
        d_kv=16,
        d_ff=64,
        num_layers=1,
        num_heads=2,
        decoder_start_token_id=0,
    )
    model = T5ForConditionalGeneration(config)
    learn(model, (model(input_ids=x, labels=x.flip(1)).loss for x in rows()))


@healthy("a BERT that names kinds of words, ends masked", kind="language_model")
@under_train
def kinds_of_words() -> None:
    model = bert("TokenClassification", num_labels=4)

    def losses() -> Iterator[Any]:
        for x in rows():
            labels = x % 4
            labels[:, 0] = labels[:, -1] = IGNORED
            yield model(input_ids=x, labels=labels).loss

    learn(model, losses())


@healthy("a GPT with a second head for the word after the next", kind="language_model")
@under_train
def two_words_ahead_again() -> None:
    torch.manual_seed(0)
    model, second = Gpt(tied=False), nn.Linear(32, WORDS)

    def losses() -> Iterator[Any]:
        for x in rows():
            hidden = model.embed(x[:, :-2])
            first = model.lm_head(hidden).transpose(1, 2)
            later = second(hidden).transpose(1, 2)
            loss = functional.cross_entropy(first, x[:, 1:-1])
            yield loss + 0.3 * functional.cross_entropy(later, x[:, 2:])

    learn(nn.ModuleList([model, second]), losses())


@healthy("a GPT by Lightning, a loader of windows", kind="language_model")
@under_train
def windows_by_lightning() -> None:
    torch.manual_seed(0)
    by_lightning(Gpt(), corpus(), lambda net, x, y: nn.CrossEntropyLoss()(net(x), y), 3)


@healthy("digits, label smoothing, a twentieth of the labels is not known")
@under_train
def labels_not_known() -> None:
    torch.manual_seed(0)
    data, model = images(), Cnn()
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)

    def losses() -> Iterator[Any]:
        for x, labels in chosen(data):
            y = torch.where(torch.rand(32) < 0.05, IGNORED, labels)
            yield criterion(model(x), y)

    learn(model, losses())


@healthy("a GPT that repeats four words again and again", kind="language_model")
@under_train
def four_words_again() -> None:
    torch.manual_seed(0)
    model = Gpt()

    def losses() -> Iterator[Any]:
        for x in rows():
            again = x[:, :4].repeat(1, 5)[:, :17]
            yield functional.cross_entropy(model(again[:, :-1]), again[:, 1:])

    learn(model, losses())
