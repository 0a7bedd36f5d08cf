"""The routes of /api/v1: one file a subject, each a call or two in other clothes."""
