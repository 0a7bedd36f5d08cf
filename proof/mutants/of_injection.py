"""Mutants of what stands around a handler: its injected transaction, its resources, middleware and hooks."""

from proof.mutants.mutant import Mutant, worker

INJECTED = "tests/worker/test_injected_transactions.py"
MIDDLEWARE = "tests/worker/test_middleware.py"
PROVIDED = "tests/worker/test_provided_transactions.py"
RESOURCES = "tests/worker/test_resources.py"
HOOKS = "tests/worker/test_hooks.py"

CALL = """\
    async with block as tx:
        value = _kept(await spec.handler(*args, tx, **kwargs))
        block.set_result(value)
    return value
"""
ERROR_OF_THE_HANDLER_SWALLOWED = """\
    async with block as tx:
        try:
            value = _kept(await spec.handler(*args, tx, **kwargs))
        except Exception:
            value = None
        block.set_result(value)
    return value
"""
ERROR_OF_THE_END_SWALLOWED = """\
    value: Any = None
    try:
        async with block as tx:
            value = _kept(await spec.handler(*args, tx, **kwargs))
            block.set_result(value)
    except Exception as error:
        if not type(error).__module__.startswith("psycopg"):
            raise
    return value
"""

MUTANTS = (
    Mutant(
        "an exception in an injected handler still commits", "G7",
        f"{INJECTED}::test_an_exception_rolls_everything_back_and_fails_the_job",
        (worker("handlers/injected_transactions", CALL, ERROR_OF_THE_HANDLER_SWALLOWED),),
    ),
    Mutant(
        "a database error that an injected handler swallowed is a success", "G7",
        f"{INJECTED}::test_a_database_error_that_the_handler_swallowed_is_no_success",
        (worker("handlers/injected_transactions", CALL, ERROR_OF_THE_END_SWALLOWED),),
    ),
    Mutant(
        "an outcome that an injected handler returns commits its rows", "G7",
        f"{INJECTED}::test_another_outcome_rolls_everything_back_and_is_recorded",
        (worker("handlers/injected_transactions", "        raise value\n", "        return None\n"),),
    ),
    Mutant(
        "an error that middleware swallows is a success without its rows", "G7",
        f"{MIDDLEWARE}::test_an_error_that_middleware_swallows_makes_no_success_without_its_rows",
        (worker("handlers/handler_calls", "            raise self._failure\n", "            return returned\n"),),
    ),
    Mutant(
        "an error that a resource swallows is a success", "G7",
        f"{RESOURCES}::test_a_resource_that_swallows_the_handlers_error_makes_no_success_of_it",
        (worker(
            "handlers/handler_calls",
            "        raise failure or _swallowed()  # a resource that swallowed it would make a success of a failure\n", "",
        ),),
    ),
    Mutant(
        "a transaction in another database is not refused", "G7",
        f"{PROVIDED}::test_a_provider_of_another_database_is_refused_by_name",
        (worker("handlers/database_check", "        if theirs != self._ours:\n", "        if False:\n"),),
    ),
    Mutant(
        "a session that its handler committed is completed apart from its rows", "G7",
        f"{PROVIDED}::test_a_handler_that_commits_the_session_itself_is_told_by_name",
        (
            worker("handlers/injected_transactions", "            if await carrier.was_ended():\n", "            if False:\n"),
            worker("handlers/injected_transactions", "            if carrier.was_ended():\n", "            if False:\n"),
        ),
    ),
    Mutant(
        "a job is completed a second time inside an app's own transaction", "G7",
        f"{PROVIDED}::test_a_second_way_to_complete_the_job_is_refused_inside",
        (worker("handlers/injected_transactions", "        attempt.phase = AttemptPhase.IN_TRANSACTION\n", "        pass\n"),),
    ),
    Mutant(
        "a hook's error ends the worker", "G9",
        f"{HOOKS}::test_a_hook_that_fails_or_hangs_breaks_no_job_and_no_other_hook",
        (worker(
            "handlers/outcome_hooks",
            'log.error("hook %s of job %d failed: %s", named, event.job_id, describe_error(error))', "raise",
        ),),
        red_by=("RuntimeError",),
    ),
    Mutant(
        "events for hooks wait without a bound", "G9",
        f"{HOOKS}::test_events_past_the_bound_are_left_out_and_that_is_told",
        (worker("handlers/outcome_hooks", "asyncio.Queue(WAITING_MAX)", "asyncio.Queue()"),),
    ),
)  # fmt: skip
