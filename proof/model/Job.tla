------------------------------- MODULE Job -------------------------------
(* The next-state relation of one job: what its row may become, and by which end of a lease.

   The model of the whole system (Faultline.tla), the check of real ledgers (Trace.tla) and the Python copy for long
   histories (relation.py) stand on this one page. Each operator is the effect of one SQL function, without its locks: a
   function holds its row's lock to the end of its transaction, so for one job they happen one after the other. *)
EXTENDS Naturals

CONSTANT NoClaim   (* the claim of a row that no worker holds *)

Ended   == {"succeeded", "cancelled"}
Waiting == {"queued", "later"}
Over    == Ended \cup {"dead"}

New    == [state |-> "queued", token |-> 0, claim |-> NoClaim, attempt |-> 0, crashes |-> 0]
NoJob  == [New EXCEPT !.state = "none"]

(* enqueue.sql: due now, or later. *)
Fresh == {New, [New EXCEPT !.state = "later"]}

(* The fence: all three values, on a row that is leased. *)
Holds(job, token, claim) == job.state = "running" /\ job.token = token /\ job.claim = claim

(* claim.sql *)
Claimable(job, token, most) == job.state = "queued" /\ token > job.token /\ job.attempt < most
Claimed(job, token, claim) ==
  [job EXCEPT !.state = "running", !.token = token, !.claim = claim, !.attempt = @ + 1]

Left(job, state) == [job EXCEPT !.state = state, !.claim = NoClaim]
Crashed(job)     == [job EXCEPT !.crashes = @ + 1]
GivenBack(job)   == [job EXCEPT !.attempt = IF @ > 0 THEN @ - 1 ELSE 0]

(* Every row that a lease may leave behind when it ends so; none when it cannot end so. A failure and a crash of the last
   attempt are written down as `dead`, and so is a handler's own wish (bury.sql). A crash that its worker lived to tell is a
   failure that is counted as a crash. *)
After(job, outcome, most) ==
  CASE outcome \in Ended                   -> {Left(job, outcome)}
    [] outcome = "dead"                    -> {Left(job, "dead"), Crashed(Left(job, "dead"))}
    [] outcome = "failed"                  -> IF job.attempt < most THEN {Left(job, "later"), Crashed(Left(job, "later"))} ELSE {}
    [] outcome = "expired"                 -> IF job.attempt < most THEN {Crashed(Left(job, "later"))} ELSE {}
    [] outcome \in {"snoozed", "released"} -> {GivenBack(Left(job, "queued")), GivenBack(Left(job, "later"))}
    [] OTHER                               -> {}

(* How a failed attempt, or a crashed one, is written down. *)
Failure(job, most)  == IF job.attempt < most THEN "failed" ELSE "dead"
Crash(job, most)    == IF job.attempt < most THEN "expired" ELSE "dead"

(* promote.sql, retry_now.sql, replay.sql: they end no lease, so the ledger does not know them. *)
Promoted(job) == [job EXCEPT !.state = "queued"]
Replayed(job) == [job EXCEPT !.state = "queued", !.attempt = 0, !.crashes = 0]
=============================================================================
