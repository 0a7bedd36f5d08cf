"""Generated from proto/: `make proto` makes it anew, `make proto-check` says whether it is current."""
