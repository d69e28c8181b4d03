"""Hook: saves tensors of an XGBoost training job in each round, as a callback of XGBoost."""

from rule_core.frameworks.xgboost.hook import Hook as Hook
