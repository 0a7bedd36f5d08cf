"""Text that people write and read: durations, and what a mistyped name may have meant."""
