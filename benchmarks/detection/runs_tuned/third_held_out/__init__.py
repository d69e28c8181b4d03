"""Runs that were the third held-out part until they were judged; rules have been mended since."""
