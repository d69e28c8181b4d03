"""no_refresh and refresh, which control what a trial shows; parsing of parameters."""

from rule_core.trials.refresh import (
    Refreshing,
    no_refresh,
    parse_bool,
    parse_list_from_str,
    refresh,
)

__all__ = ["Refreshing", "no_refresh", "parse_bool", "parse_list_from_str", "refresh"]
