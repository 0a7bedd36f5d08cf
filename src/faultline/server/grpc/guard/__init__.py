"""The checks of every call before its message counts: keys, limits, connections, sizes."""
