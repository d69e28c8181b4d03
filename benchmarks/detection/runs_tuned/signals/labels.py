"""Cross entropies under `rule-runner train`: labels shifted twice, masked, and right ones."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from training.consequences import UNTAUGHT, WORSE
from training.language import Gpt
from training.learnt_data import images, sentences
from training.scripts import END, IGNORED, bert, chosen, gpt2, learn, llama, padded, rows
from training.small_networks import Cnn, Recurrent
from training.under_train import under_train
from training_runs import faulty, healthy

LABELS = {"MaskedOrShiftedLabels"}
MAY = UNTAUGHT | WORSE | {"ExplodingTensor": "the mean of no losses is NaN"}


@faulty("a GPT-2", "next words are given as labels", LABELS, may=MAY, kind="language_model")
@under_train
def next_words_as_labels() -> None:
    model = gpt2()
    learn(model, (model(input_ids=x[:, :-1], labels=x[:, 1:]).loss for x in rows()))


@faulty("a GPT", "data and loss shift the words", LABELS, may=MAY, kind="language_model")
@under_train
def shifted_by_data_and_loss() -> None:
    torch.manual_seed(0)
    model = Gpt()

    def losses() -> Iterator[Any]:
        for words in rows():
            x, y = words[:, :-1], words[:, 1:]
            logits = model(x).transpose(1, 2)[:, :-1]
            yield functional.cross_entropy(logits.reshape(-1, 48), y[:, 1:].reshape(-1))

    learn(model, losses())


@faulty("a Llama", "padding is the end, and masked with it", LABELS, may=MAY, kind="language_model")
@under_train
def ends_masked_as_padding() -> None:
    model = llama()

    def losses() -> Iterator[Any]:
        for words in rows():
            x, mask = padded(words, END)
            yield model(
                input_ids=x, attention_mask=mask, labels=x.masked_fill(x == END, IGNORED)
            ).loss

    learn(model, losses())


@faulty(
    "a Llama", "the template of the answers is never found", LABELS, may=MAY, kind="language_model"
)
@under_train
def template_not_found() -> None:
    model = llama()
    nothing = lambda x: torch.full_like(x, IGNORED)
    learn(model, (model(input_ids=x, labels=nothing(x)).loss for x in rows()))


@healthy("a Llama on packed words", kind="language_model")
@under_train
def packed_by_llama() -> None:
    model = llama()
    learn(model, (model(input_ids=x, labels=x).loss for x in rows()))


@healthy("a Llama, questions masked, padding of its own", kind="language_model")
@under_train
def questions_masked() -> None:
    model = llama()

    def losses() -> Iterator[Any]:
        for words in rows():
            x, mask = padded(words, 51)
            labels = x.masked_fill(mask == 0, IGNORED)
            labels[:, :4] = IGNORED
            yield model(input_ids=x, attention_mask=mask, labels=labels).loss

    learn(model, losses())


@healthy("a GPT-2 in bfloat16, batches accumulated", kind="language_model")
@under_train
def accumulated_in_bfloat16() -> None:
    model = gpt2()
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    for number, x in enumerate(rows(8, 160), 1):
        with torch.autocast("cpu", torch.bfloat16):
            loss = model(input_ids=x, labels=x).loss / 4
        loss.backward()
        if number % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()


@healthy("words by an LSTM, each next one", kind="language_model")
@under_train
def next_words_by_lstm() -> None:
    torch.manual_seed(0)
    words, cell, head = nn.Embedding(48, 24), nn.LSTM(24, 32, batch_first=True), nn.Linear(32, 48)
    both = nn.ModuleList([words, cell, head])
    loss = lambda x: functional.cross_entropy(
        head(cell(words(x[:, :-1]))[0]).flatten(0, 1), x[:, 1:].flatten()
    )
    learn(both, (loss(x) for x in rows()))


@healthy("a BERT that tells two kinds of sentences", kind="language_model")
@under_train
def kinds_of_sentences() -> None:
    model = bert("SequenceClassification", num_labels=2)
    learn(model, (model(input_ids=x, labels=y).loss for x, y in chosen(sentences(), 16)))


@healthy("digits, maps of bright pixels, edges are ignored")
@under_train
def maps_of_bright_pixels() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 2, 1))
    criterion = nn.CrossEntropyLoss(ignore_index=255)

    def losses() -> Iterator[Any]:
        for x, _ in chosen(images()):
            y = (x[:, 0] > 0).long()
            y[:, 0] = y[:, -1] = 255
            yield criterion(model(x), y)

    learn(model, losses())


@healthy("digits by convolutions, unequal weights of classes")
@under_train
def unequal_weights() -> None:
    torch.manual_seed(0)
    model, criterion = Cnn(), nn.CrossEntropyLoss(weight=torch.linspace(0.5, 1.5, 10))
    learn(model, (criterion(model(x), y) for x, y in chosen(images())))


@healthy("sentences by a GRU, some labels not known")
@under_train
def some_labels_not_known() -> None:
    torch.manual_seed(0)
    model = Recurrent(nn.GRU, 2)
    known = lambda y: torch.where(torch.rand(len(y)) < 0.3, IGNORED, y)
    learn(
        model, (functional.cross_entropy(model(x), known(y)) for x, y in chosen(sentences())), 0.01
    )


@healthy("a GPT-2 on one word again and again", kind="language_model")
@under_train
def one_word_again() -> None:
    model = gpt2()
    again = (x[:, :1].expand(-1, 17).contiguous() for x in rows())
    learn(model, (model(input_ids=x, labels=x).loss for x in again))


@healthy("a Llama, half of the rows are padded with their end, which counts", kind="language_model")
@under_train
def half_of_the_rows_padded() -> None:
    model = llama()

    def losses() -> Iterator[Any]:
        for words in rows():
            x, mask = padded(words, END)
            half = (torch.arange(len(x)) % 2 == 0)[:, None]
            x, mask = torch.where(half, words, x), torch.where(half, 1, mask)
            yield model(
                input_ids=x, attention_mask=mask, labels=x.masked_fill(mask == 0, IGNORED)
            ).loss

    learn(model, losses())
