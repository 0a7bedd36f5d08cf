"""The checks of every request before its route: keys, heads, bodies, rates."""
