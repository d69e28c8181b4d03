"""no_refresh, refresh, snapshot: what a trial shows inside a block; and parameter parsing."""

from rule_core.trials.refresh import (
    Refreshing,
    no_refresh,
    parse_bool,
    parse_list_from_str,
    refresh,
)

__all__ = ["Refreshing", "no_refresh", "parse_bool", "parse_list_from_str", "refresh"]
