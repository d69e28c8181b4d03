"""Rules over losses."""
