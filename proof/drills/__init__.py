"""Every drill, and for each a sabotage that its verdict must notice: `make drills ARGS=--sabotage`."""
