"""Inputs: pictures far from mean 0, and texts of which most tokens are 0."""

from pathlib import Path

import numpy as np
import torch
from training_runs import faulty
from transformers import BertConfig, BertForSequenceClassification

from runs_held_out.data_and_trees.shared.consequences import ILL_SCALED, UNTELLABLE
from runs_held_out.data_and_trees.shared.loops import (
    adamw,
    held_back,
    learn,
    shuffled,
    warm_then_line,
)
from runs_held_out.data_and_trees.shared.networks import (
    BagOfWords,
    ConvNext,
    HuggingFace,
    Recurrent,
    mobile,
    vgg,
)
from runs_held_out.data_and_trees.shared.pictures import calls, cloths, parts, signs
from runs_held_out.data_and_trees.shared.texts import VOCABULARY, filled, tickets


@faulty(
    "six signs in colours, separable convolutions, Adam",
    "statistics are taken of pictures that were centred before, and used for others: the mean is 0",
    {"CheckInputImages"},
    may=ILL_SCALED,
)
def statistics_of_centred_pictures(root: Path) -> int:
    torch.manual_seed(841)
    data = parts(*signs(2000, 8041), 400).of(lambda x: x / 255)
    centred = data.x - data.x.mean((0, 2, 3), keepdim=True)
    mean, deviation = (part((0, 2, 3), keepdim=True) for part in (centred.mean, centred.std))
    data = data.of(lambda x: (x - mean) / deviation)
    model = mobile(3, 6)
    return learn(
        root,
        model,
        shuffled(data, 32, 841),
        held_back(data),
        torch.optim.Adam(model.parameters(), 3e-3),
        epochs=4,
        save_every=3,
    )


@faulty(
    "birds' calls as spectrograms, plain convolutions without norms, momentum",
    "decibels from -80 to 0 are given as they are: neither a mean nor a scale is taken out",
    {"CheckInputImages"},
    may=ILL_SCALED,
)
def raw_decibels(root: Path) -> int:
    torch.manual_seed(842)
    data, model = parts(*calls(2000, 8042), 400), vgg(1, 5, 10)
    return learn(
        root,
        model,
        shuffled(data, 32, 842),
        held_back(data),
        torch.optim.SGD(model.parameters(), 0.01, momentum=0.9),
        epochs=4,
        clip=5.0,
        save_every=3,
    )


@faulty(
    "four kinds of cloth, a small ConvNeXt, AdamW",
    "pictures of 12 bits are divided by 255 as if they were bytes: pixels are about 9",
    {"CheckInputImages"},
    may=ILL_SCALED,
)
def twelve_bits_by_255(root: Path) -> int:
    torch.manual_seed(843)
    data = parts(*cloths(1900, 8043), 300).of(lambda x: x / 255)
    model = ConvNext(1, 4)
    return learn(
        root,
        model,
        shuffled(data, 40, 843),
        held_back(data),
        adamw(model, 2e-3, 0.05),
        epochs=4,
        save_every=4,
    )


@faulty(
    "tickets of 12 to 24 words, a small BERT, AdamW, warm-up and a line",
    "the tokenizer is called with padding='max_length', max_length=96: four of five are padding",
    {"NLPSequenceRatio"},
    may=ILL_SCALED,
)
def padded_to_max_length(root: Path) -> int:
    torch.manual_seed(844)
    texts, queue = tickets(1500, 8044)
    data = parts(filled(texts, 96), queue, 300)
    model = HuggingFace(
        BertForSequenceClassification(
            BertConfig(
                vocab_size=VOCABULARY,
                hidden_size=32,
                num_hidden_layers=2,
                num_attention_heads=4,
                intermediate_size=64,
                max_position_embeddings=96,
                num_labels=5,
            )
        )
    )
    optimizer = adamw(model, 2e-3)
    return learn(
        root,
        model,
        shuffled(data, 40, 844),
        held_back(data),
        optimizer,
        epochs=2,
        each_step=warm_then_line(optimizer, 6, 60),
        clip=1.0,
        save_every=4,
    )


@faulty(
    "tickets of five queues, a bag of words, AdamW; 0 is the unknown word",
    "the vocabulary is built with min_freq=300, as for a corpus a hundred times as large",
    {"NLPSequenceRatio"},
    may=ILL_SCALED | UNTELLABLE,
)
def words_too_rare_to_know(root: Path) -> int:
    torch.manual_seed(845)
    texts, queue = tickets(2400, 8045, shortest=16, longest=24)
    counts = np.bincount(np.concatenate(texts[:-400]), minlength=VOCABULARY)
    known = [np.where(counts[text] >= 300, text, 0) for text in texts]
    data = parts(filled(known), queue, 400)
    model = BagOfWords(VOCABULARY, 5)
    return learn(
        root,
        model,
        shuffled(data, 40, 845),
        held_back(data),
        torch.optim.AdamW(model.parameters(), 5e-3),
        epochs=4,
    )


@faulty(
    "tickets of 12 to 24 words, a GRU in both directions, Adam, clipped",
    "all are filled up to the longest of the data, and someone has pasted a log of 110 words",
    {"NLPSequenceRatio"},
    may=ILL_SCALED,
)
def as_long_as_a_pasted_log(root: Path) -> int:
    torch.manual_seed(846)
    texts, queue = tickets(1500, 8046)
    pasted = np.random.default_rng(8046).integers(2, VOCABULARY, 110)
    data = parts(filled([pasted, *texts[1:]]), queue, 300)
    model = Recurrent(VOCABULARY, 5)
    return learn(
        root,
        model,
        shuffled(data, 32, 846),
        held_back(data),
        torch.optim.Adam(model.parameters(), 5e-3),
        epochs=2,
        clip=1.0,
        save_every=4,
    )
