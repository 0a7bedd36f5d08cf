"""What stands around the call of a handler: middleware, resources, an injected transaction; and hooks."""
