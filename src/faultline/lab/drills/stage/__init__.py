"""What a drill plays with: its database, its barriers, its standby."""
