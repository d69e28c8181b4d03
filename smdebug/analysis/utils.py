"""no_refresh and refresh, which control what a trial shows; parsing of parameters."""

from rule_core.trials.refresh import (
    no_refresh as no_refresh,
    parse_bool as parse_bool,
    parse_list_from_str as parse_list_from_str,
    refresh as refresh,
)
from rule_core.trials.snapshot_view import Refreshing as Refreshing
