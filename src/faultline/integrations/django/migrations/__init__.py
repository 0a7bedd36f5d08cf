"""Django's migrations: of its models alone, and not of the schema."""
