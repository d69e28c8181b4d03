"""The program itself: the group of all commands, and what it does without one."""
