"""Sessions of workers: what they ask for, what they report, and what both forms of the protocol share."""
