"""A worker and its watchdog in one process: the start, the event loop, reports to systemd, the end."""
