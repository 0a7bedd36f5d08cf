"""Mutants of the backend of `django.tasks`: what it commits, and when."""

from proof.mutants.mutant import Mutant, Patch

FOLDER = "integrations/django"
BACKEND = "tests/integrations/django/test_backend.py"
CONNECTIONS = "tests/integrations/django/test_connections.py"

MUTANTS = (
    Mutant(
        "a Django task is enqueued beside its transaction",
        "G3",
        f"{BACKEND}::test_a_task_is_enqueued_with_its_transaction_and_not_without",
        (
            Patch(
                f"{FOLDER}/backend.py",
                "            found.append(enqueued(carrier, new))\n",
                "            found.append(enqueued(DjangoCarrier(connections[database_alias()].copy()), new))\n",
            ),
        ),
    ),
    Mutant(
        "the success of a Django task is recorded after its rows are committed",
        "G3",
        f"{CONNECTIONS}::test_a_task_that_lost_its_job_commits_nothing",
        (
            Patch(
                f"{FOLDER}/task_backend/handlers.py",
                "            run.job.complete_in(connections[alias], result=value)\n",
                "",
            ),
        ),
    ),
    Mutant(
        "the text of an error names a module to import",
        "G15",
        f"{BACKEND}::test_the_text_of_an_error_imports_nothing",
        (Patch(f"{FOLDER}/task_backend/results.py", "    return LedgerError(", "    return TaskError("),),
    ),
    Mutant(
        "a broken connection of Django stays with its thread",
        "G10",
        f"{CONNECTIONS}::test_a_broken_connection_is_not_kept_for_the_next_task",
        (
            Patch(
                f"{FOLDER}/handler_connections.py",
                "        return call()\n    finally:\n        close_old_connections()\n",
                "        return call()\n    finally:\n        pass\n",
            ),
            Patch(
                f"{FOLDER}/handler_connections.py",
                '    """Around plain handlers: connections of this thread that are too old, or broken, are closed."""\n'
                "    close_old_connections()\n",
                '    """Around plain handlers."""\n',
            ),
        ),
    ),
)
