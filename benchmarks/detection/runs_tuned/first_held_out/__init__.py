"""Runs that were the first held-out part until they were judged; rules have been mended since."""
