"""What a drill shows: timelines, traces, verdicts."""
