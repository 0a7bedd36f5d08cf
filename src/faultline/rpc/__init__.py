"""Generated from proto/: `make proto` generates it, `make proto-check` says whether it is current."""
