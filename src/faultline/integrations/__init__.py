"""Other libraries: their connections as carriers of our calls, and what their users expect of a queue."""
