"""test and record: unit tests of rules, from tables of steps and expected findings."""
