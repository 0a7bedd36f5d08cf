"""`make image-check`: the Dockerfile's image is built, and compose.yaml is run with it, for real."""
