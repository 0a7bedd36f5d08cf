"""The processes of a drill."""
