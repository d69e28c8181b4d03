"""`rule-runner watch --once --config FILE` without long pauses, for tests that kill it."""

import sys

from rule_runner.commands.watch import watch
from rule_runner.fleet.watch.controller import Intervals
from rule_runner.logs import configure

configure(1)
sys.exit(watch([], sys.argv[1], None, once=True, intervals=Intervals(restart=0.1)))
