"""One file a drill."""
