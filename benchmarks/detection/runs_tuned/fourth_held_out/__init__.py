"""Runs that were the fourth held-out part until they were judged; rules have been mended since."""
