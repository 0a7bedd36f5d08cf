"""Where the database is: one address for the shop's tables and for Faultline's, FAULTLINE_DSN."""

import os

from psycopg.conninfo import conninfo_to_dict


def dsn_parts() -> dict[str, str]:
    """Host, port, user, password and database of FAULTLINE_DSN."""
    parts = conninfo_to_dict(os.environ["FAULTLINE_DSN"])
    return {name: str(value) for name, value in parts.items() if value is not None}
