"""The report on a profiled job: what it gathers, and the page, data and notebook it writes."""
