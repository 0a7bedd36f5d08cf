"""The routes of /api/v1: one file a subject, each a thin layer over a call or two."""
