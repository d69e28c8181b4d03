"""Keras trainings: models of the detection suite on Keras's PyTorch backend, and their hook."""

import os
from pathlib import Path
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "torch")  # the one whose gradients the hook sees
import keras

import smdebug.keras as smd
from training.learnt_data import images

COLLECTIONS = ("weights", "biases", "gradients", "losses", "relu_input", "relu_output", "inputs")


def train(root: Path, model: Any, optimizer: Any, epochs: int) -> int:
    """Fit a model to digits of shape ``(n, 8, 8, 1)``, and evaluate it; return step 0."""
    data = images().of(lambda x: x.permute(0, 2, 3, 1))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss)
    saving = smd.SaveConfig(save_interval=4)
    with smd.KerasHook(
        root,
        save_config=saving,
        include_collections=COLLECTIONS,
        include_regex="input_image",
        on_error="raise",
    ) as hook:
        model.fit(
            data.x.numpy(),
            data.y.numpy(),
            32,
            epochs,
            validation_data=(data.test_x.numpy(), data.test_y.numpy()),
            validation_batch_size=450,
            callbacks=[hook],
            verbose=0,
        )
    return 0


def mlp(root: Path) -> int:
    """Train dense layers."""
    keras.utils.set_random_seed(0)
    layers = keras.layers
    model = keras.Sequential(
        [
            layers.Flatten(),
            layers.Dense(48, activation="relu"),
            layers.Dense(32, activation="relu"),
            layers.Dense(10),
        ]
    )
    return train(root, model, keras.optimizers.SGD(0.05, momentum=0.9), 5)


def cnn(root: Path) -> int:
    """Train convolutions, channels last."""
    keras.utils.set_random_seed(0)
    layers = keras.layers
    model = keras.Sequential(
        [
            layers.Conv2D(8, 3, padding="same"),
            layers.ReLU(),
            layers.MaxPooling2D(),
            layers.Conv2D(16, 3, padding="same", activation="relu"),
            layers.Flatten(),
            layers.Dense(10),
        ]
    )
    return train(root, model, keras.optimizers.Adam(5e-3), 4)
