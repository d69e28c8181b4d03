"""Train XGBoost on scikit-learn's breast cancer data, and save what it learns to a folder."""

import sys

import xgboost
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import smdebug.xgboost as smd

points, labels = load_breast_cancer(return_X_y=True)
parts = train_test_split(points, labels, random_state=0)
train = xgboost.DMatrix(parts[0], label=parts[2])
validation = xgboost.DMatrix(parts[1], label=parts[3])
params = {"objective": "binary:logistic", "max_depth": 3, "seed": 0}
hook = smd.Hook(
    sys.argv[1],
    save_config=smd.SaveConfig(save_interval=5),
    include_collections=["losses", "predictions", "labels", "feature_importance", "trees"],
    hyperparameters=params,
    train_data=train,
    validation_data=validation,
)
sets = [(train, "train"), (validation, "validation")]
with hook:
    xgboost.train(params, train, 50, evals=sets, callbacks=[hook], verbose_eval=False)
