"""The layer between a call and the wire: connections, prepared calls, arrays, SQLSTATEs, notifications."""
