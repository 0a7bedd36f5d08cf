"""Running handlers, and stopping them."""
