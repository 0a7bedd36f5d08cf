"""The first questions to a server: can this program use it, and does it have our schema?"""

from typing import Any

from faultline import errors
from faultline.store.sql_files import LATEST

POSTGRES_MIN = 150000

# Our schema may not exist yet, so the question names none of our objects. It reads the catalog: a role
# without rights on the schema may not use to_regclass, and the error has to say what that role lacks.
QUESTION = """
select current_setting('server_version_num')::int,
       current_setting('transaction_read_only') = 'on' or pg_is_in_recovery(),
       exists (
         select from pg_class where relnamespace = to_regnamespace('faultline') and relname = 'migrations'),
       to_regnamespace('faultline') is not null
         and has_schema_privilege(to_regnamespace('faultline')::oid, 'usage'),
       current_user
"""


def judge(version: int, read_only: bool, installed: bool, allowed: bool, role: str) -> None:
    """Refuse a server that this program cannot use, with the reason and the remedy."""
    if version < POSTGRES_MIN:
        raise errors.DatabaseError(
            f"the server is PostgreSQL {version // 10000}; Faultline needs 15 or newer, use a newer server"
        )
    if read_only:
        raise errors.ReadOnlyServer(
            "the server is read-only (a standby, or default_transaction_read_only is on); "
            "connect to the primary"
        )
    if not installed:
        raise errors.SchemaMissing(
            "this database has no Faultline schema; run `faultline migrate` on it first"
        )
    if not allowed:
        raise errors.PermissionDenied(
            f"the role {role!r} may not use the schema faultline; "
            f"put it in a group that `faultline roles create` made (grant faultline_worker to {role}), "
            f"or, as the schema's owner: grant usage on schema faultline to {role}; "
            f"grant execute on all functions in schema faultline to {role}"
        )


def judge_schema(row: tuple[Any, ...] | None) -> None:
    """Refuse a schema that is older than this program, or too new for it."""
    latest, oldest_client = row or (0, 1)
    if latest < LATEST:
        raise errors.SchemaOutdated(
            f"the database's schema is at {latest}, this program needs {LATEST}; run `faultline migrate`"
        )
    if oldest_client > LATEST:
        raise errors.SchemaTooNew(
            f"the database's schema needs clients that know {oldest_client}, this one knows {LATEST}; "
            "upgrade faultline-queue"
        )
