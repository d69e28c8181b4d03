"""Boosted trees of XGBoost, faulty and healthy."""
