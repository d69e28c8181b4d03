"""Rules over weights."""
