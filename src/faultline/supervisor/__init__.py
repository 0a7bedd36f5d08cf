"""Several worker processes under one small supervisor, which listens for all of them."""
