"""A lease proves itself to the database alone."""

from uuid import uuid4

from faultline.lease import Lease

LEASE = Lease(7, 3, uuid4(), lease_for=15.0, taken_at=100.0)


def test_a_lease_never_shows_its_claim():
    for shown in (repr(LEASE), str(LEASE), f"{LEASE}", repr([LEASE])):
        assert str(LEASE.claim) not in shown
        assert LEASE.claim.hex not in shown


def test_the_proof_of_a_lease_is_job_token_and_claim():
    assert LEASE.proof == {"job_id": 7, "token": 3, "claim": LEASE.claim}


def test_a_lease_is_counted_from_before_the_claim_was_sent():
    assert LEASE.runs_out_at == 115.0
