"""Fit a small Keras 3 model to scikit-learn's digits, and save what it computes to a folder."""

import os
import sys

os.environ.setdefault("KERAS_BACKEND", "torch")  # the one whose gradients the hook sees
import keras
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import smdebug.keras as smd

keras.utils.set_random_seed(0)
points, labels = load_digits(return_X_y=True)
x, x_test, y, y_test = train_test_split(points / 16, labels, random_state=0)
model = keras.Sequential(
    [keras.layers.Dense(32, activation="relu"), keras.layers.Dense(10, activation="softmax")]
)
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
with smd.KerasHook(
    sys.argv[1],
    save_config=smd.SaveConfig(save_interval=10),
    include_collections=["weights", "biases", "gradients", "relu_output"],
) as hook:
    model.fit(x, y, epochs=5, callbacks=[hook], verbose=0)
    model.evaluate(x_test, y_test, batch_size=len(y_test), callbacks=[hook], verbose=0)
