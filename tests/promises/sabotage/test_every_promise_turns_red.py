"""Each mechanism is taken away once, and the test of its promise must fail."""

import inspect

import pytest

from faultline import errors
from tests.promises.rewriting import rewrite
from tests.promises.sabotage import of_crashes, of_ownership, of_the_commit, of_the_fence, of_time
from tests.promises.sabotage.mutant import sabotage

MUTANTS = [
    *of_ownership.MUTANTS,
    *of_the_fence.MUTANTS,
    *of_time.MUTANTS,
    *of_the_commit.MUTANTS,
    *of_crashes.MUTANTS,
]
RED = (AssertionError, pytest.fail.Exception, errors.FaultlineError)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_promise_turns_red_when(database, request, mutant):
    sabotage(database, mutant)
    for need in mutant.needs:
        request.getfixturevalue(need)
    wanted = [name for name in inspect.signature(mutant.promise).parameters if name not in mutant.given]
    arguments = {name: request.getfixturevalue(name) for name in wanted}

    with pytest.raises(RED) as red:
        mutant.promise(**arguments, **mutant.given)

    # A mutant that does not run at all would be red for the wrong reason.
    assert not isinstance(red.value, errors.DatabaseError)


def test_a_rewriting_that_does_not_fit_is_loud(database):
    with pytest.raises(LookupError, match="0 times"):
        rewrite(database, "complete", "words that are not there", "")
    with pytest.raises(LookupError, match="times, not once"):
        rewrite(database, "complete", "job", "")
