"""What one caller may take of the server: calls a second, bytes on their way, time, large documents."""
