"""Jobs that are enqueued while a call is under way go together, with one call."""
