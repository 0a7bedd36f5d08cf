"""The whole suite, many times: beside busy cores, under other monotonic clocks, in random order."""
