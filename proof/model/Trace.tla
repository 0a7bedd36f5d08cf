------------------------------ MODULE Trace ------------------------------
(* Histories of real jobs, walked along the relation of Job.tla. TLC prints the number of each that comes to its end.

   `Histories` is a generated module: tokens, claims and moments are ranks, since only their order and identity matter. A claim
   is 0 where no worker held the job. *)
EXTENDS Job, Sequences, TLC, Histories

VARIABLES which, at, job, used, moment, over

vars == <<which, at, job, used, moment, over>>

Of    == Histories[which]
Entry == Of.entries[at + 1]
More  == at < Len(Of.entries)

Init ==
  /\ which \in 1..Len(Histories)
  /\ at = 0 /\ job \in Fresh /\ used = {} /\ moment = 0 /\ over = FALSE

(* Steps that the ledger does not know. *)
Unseen ==
  /\ \/ job.state = "later" /\ job' = Promoted(job)
     \/ job.state = "dead" /\ job' = Replayed(job)
  /\ UNCHANGED <<which, at, used, moment, over>>

Take ==
  /\ More /\ Entry.claim # NoClaim /\ Entry.claim \notin used
  /\ Claimable(job, Entry.token, Of.most)
  /\ Entry.attempt = job.attempt + 1
  /\ Entry.claimed_at >= moment
  /\ job' = Claimed(job, Entry.token, Entry.claim)
  /\ used' = used \cup {Entry.claim}
  /\ moment' = Entry.claimed_at
  /\ UNCHANGED <<which, at, over>>

Settle ==
  /\ More /\ Entry.claim # NoClaim
  /\ Holds(job, Entry.token, Entry.claim)
  /\ Entry.settled_at >= moment
  /\ \E next \in After(job, Entry.outcome, Of.most) : next.crashes = Entry.crashes /\ job' = next
  /\ at' = at + 1 /\ moment' = Entry.settled_at
  /\ UNCHANGED <<which, used, over>>

CancelWaiting ==
  /\ More /\ Entry.claim = NoClaim /\ Entry.outcome = "cancelled" /\ job.state \in Waiting
  /\ Entry.token = job.token /\ Entry.attempt = job.attempt /\ Entry.crashes = job.crashes
  /\ Entry.settled_at >= moment
  /\ job' = Left(job, "cancelled")
  /\ at' = at + 1 /\ moment' = Entry.settled_at
  /\ UNCHANGED <<which, used, over>>

Same(row) ==
  row.state = job.state /\ row.token = job.token /\ row.claim = job.claim /\ row.attempt = job.attempt /\ row.crashes = job.crashes

Stands ==
  CASE Len(Of.rows) = 0 -> job.state \in Ended \/ (~Of.kept /\ job.state = "queued")
    [] Len(Of.rows) > 1 -> FALSE
    [] Of.rows[1].state = "running" ->
         LET row == Of.rows[1] IN
         /\ row.claim # NoClaim /\ row.claim \notin used /\ Claimable(job, row.token, Of.most)
         /\ row.attempt = job.attempt + 1 /\ row.crashes = job.crashes
    [] OTHER -> Same(Of.rows[1])

Committed ==
  /\ \A i \in 1..Len(Of.effects) : job.state = "succeeded" /\ Of.effects[i].token = job.token
  /\ \A i, k \in 1..Len(Of.effects) : i # k => Of.effects[i].name # Of.effects[k].name
  /\ job.state = "succeeded" => Len(Of.effects) > 0

Arrive ==
  /\ ~More /\ ~over /\ Stands /\ (Of.watched => Committed)
  /\ over' = TRUE
  /\ PrintT(<<"legal", which>>)
  /\ UNCHANGED <<which, at, job, used, moment>>

Spec == Init /\ [][Unseen \/ Take \/ Settle \/ CancelWaiting \/ Arrive]_vars
=============================================================================
