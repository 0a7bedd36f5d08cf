"""What enqueueing costs."""
