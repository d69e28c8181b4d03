"""Hook: saves what an XGBoost training job learns, round by round, as a callback of XGBoost."""

from rule_core.frameworks.xgboost.hook import Hook

__all__ = ["Hook"]
