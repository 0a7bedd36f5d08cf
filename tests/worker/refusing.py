"""A database whose verbs refuse: each with an SQLSTATE of the test's choice, for all jobs or for one."""

from collections.abc import Iterable

from faultline.store.pool import Store
from tests.support import state_of
from tests.worker.harness import eventually, execute, rows

CLASSES = (
    "01000", "02000", "03000", "08000", "08006", "08P01", "09000", "0A000", "0B000", "0F000", "0L000",
    "0LP01", "0P000", "0Z000", "20000", "21000", "22000", "22003", "22P02", "23000", "23502", "23505",
    "23514", "24000", "25000", "25001", "25006", "25P02", "26000", "27000", "28000", "28P01", "2B000",
    "2BP01", "2D000", "2F000", "2F003", "34000", "38000", "38003", "39000", "3B000", "3D000", "3F000",
    "40000", "40001", "40P01", "42000", "42501", "42601", "42703", "42704", "42883", "42P01", "42P05",
    "44000", "53000", "53100", "53200", "53300", "54000", "54001", "55000", "55006", "55P03", "57000",
    "57014", "57P01", "57P03", "58000", "58030", "58P01", "72000", "F0000", "HV000", "P0000", "P0001",
    "P0002", "XX000", "XX001", "XX002", "ZZ999",
)  # fmt: skip
"""Every class of PostgreSQL's appendix A that an error can have, its best known codes, and one unknown."""

SETUP = """
create table public.refusing (verb text, job_id bigint, state text);
create sequence public.refusals_said;
create function public.refuse_verb(verb text, ids bigint[]) returns void
language plpgsql security definer as $$
declare said text;
begin
  select state into said from public.refusing as r
  where r.verb = refuse_verb.verb and (r.job_id is null or r.job_id = any (ids)) limit 1;
  if found then
    perform nextval('public.refusals_said');
    raise exception 'refused by the test' using errcode = said;
  end if;
end $$;
grant execute on function public.refuse_verb to public;
"""

BODY = (
    "select proargnames, pg_get_functiondef(oid) from pg_proc"
    " where proname = %s and pronamespace = 'faultline'::regnamespace"
)


class Refusing:
    """Its verbs ask a table whether to refuse; the answer is counted, though the transaction rolls back."""

    def __init__(self, dsn: str, *verbs: str) -> None:
        self.dsn = dsn
        execute(dsn, SETUP)
        for verb in verbs:
            for names, body in rows(dsn, BODY, verb):
                named = (
                    f"array[{verb}.job_id]"
                    if "job_id" in names
                    else f"{verb}.ids"
                    if "ids" in names
                    else "null"
                )
                asks = f"\nbegin\n  perform public.refuse_verb('{verb}', {named});\n"
                assert "\nbegin\n" in body, body
                execute(dsn, body.replace("\nbegin\n", asks, 1))

    def refuse(self, state: str, *verbs: str, job: int | None = None) -> None:
        for verb in verbs:
            execute(self.dsn, "insert into public.refusing values (%s, %s, %s)", verb, job, state)

    def refuse_each(self, states: dict[int, str], *verbs: str) -> None:
        for job, state in states.items():
            self.refuse(state, *verbs, job=job)

    def relent(self) -> None:
        execute(self.dsn, "truncate public.refusing")

    @property
    def said(self) -> int:
        (((last, called),)) = rows(self.dsn, "select last_value, is_called from public.refusals_said")
        return last if called else 0

    def wait_said(self, more: int = 1) -> None:
        """Until so many more calls have been refused."""
        before = self.said
        eventually(lambda: self.said >= before + more)


def all_of(outcomes: Iterable[list[str]]) -> set[str]:
    return {outcome for ended in outcomes for outcome in ended}


def succeeded(store: Store, job: int) -> bool:
    return state_of(store, job) == "succeeded"
