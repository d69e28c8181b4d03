"""`rule-runner watch --config FILE [--once]` without long pauses, for tests that kill it."""

import sys

from rule_runner.commands.watch import WatchRequest, watch
from rule_runner.logs import configure
from rule_runner.watch.options import Intervals

if __name__ == "__main__":  # processes of executors import this module
    configure(1)
    intervals = Intervals(refresh=0.5, growth=5.0, restart=0.1, reconnect=1.0, orphans=1.0)
    once = "--once" in sys.argv
    sys.exit(watch(WatchRequest(config=sys.argv[1]), once=once, intervals=intervals))
