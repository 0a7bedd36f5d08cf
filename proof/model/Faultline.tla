----------------------------- MODULE Faultline -----------------------------
(* Workers, jobs and one PostgreSQL with a standby, under crashes, freezes, lost replies, lying clocks and failover.

   One action is one transaction of one SQL function, or one thing that happens to a process. Workers hold beliefs
   (`leases`) that the database does not know of; a worker may act on a belief at any time, however late. `Faults` says
   what may go wrong and `FaultsMost` how often; `Broken` takes mechanisms away, one by one: each of these configurations must
   fail with the invariant that its first line names, or the model would prove nothing. *)
EXTENDS Job, FiniteSets

CONSTANTS
  Workers, Jobs,
  Most,          (* max_attempts *)
  Verbs,         (* how handlers may end an attempt: complete fail crash bury snooze release drop *)
  Acts,          (* what people may do: cancel replay *)
  ActsMost,      (* how often people act, and how often an attempt is given back *)
  Faults,        (* crash freeze reply clock failover stop *)
  FaultsMost,
  Sync,          (* the standby has every commit that was answered *)
  Poison,        (* jobs whose handler always takes its worker with it *)
  Twins,         (* all jobs come from one request, asked for again when its reply was lost *)
  Broken,        (* mechanisms taken away *)
  ClaimsMost     (* a bound on the model, never met in a configuration that must hold *)

VARIABLES
  db,        (* the primary: rows, ledger, effects, the sequence of tokens *)
  standby,   (* what has reached the standby, or with `stop` the disk *)
  timeline,  (* the server's timeline: one more with each promotion *)
  leases,    (* what workers believe they hold *)
  wire,      (* writes whose sender has given up on the reply: the server may still execute them *)
  expired,   (* jobs whose lease has run out by the server's clock *)
  health,    (* of each worker: well, frozen, down *)
  looked,    (* jobs a broken reaper has looked at and will take by their ids alone *)
  asked,     (* of each request: no, unknown, yes (acknowledged) *)
  left,      (* faults and acts that may still happen *)
  seen       (* history: what was issued, whether a token failed to grow, a zombie wrote, a worker lied *)

vars == <<db, standby, timeline, leases, wire, expired, health, looked, asked, left, seen>>

Requests     == IF Twins THEN {CHOOSE j \in Jobs : TRUE} ELSE Jobs
RequestOf(j) == IF Twins THEN CHOOSE r \in Requests : TRUE ELSE j
Intact(mechanism) == mechanism \notin Broken

Init ==
  /\ db = [row |-> [j \in Jobs |-> NoJob], ledger |-> {}, effects |-> {}, sequence |-> 0]
  /\ standby = db
  /\ timeline = 1
  /\ leases = {} /\ wire = {} /\ expired = {} /\ looked = {}
  /\ health = [w \in Workers |-> "well"]
  /\ asked = [r \in Requests |-> "no"]
  /\ left = [faults |-> FaultsMost, acts |-> ActsMost]
  /\ seen = [issued |-> [j \in Jobs |-> 0], claims |-> 0, grew |-> TRUE, zombie |-> FALSE, lied |-> FALSE]

-----------------------------------------------------------------------------
(* Budgets. *)

MayGoWrong(fault) == fault \in Faults /\ left.faults > 0
GoesWrong == left' = [left EXCEPT !.faults = @ - 1]
MayAct(act) == act \in Acts /\ left.acts > 0
Acted == left' = [left EXCEPT !.acts = @ - 1]

-----------------------------------------------------------------------------
(* Enqueue, and the producer whose reply is lost: with a key it may ask again. *)

Made(r) == {j \in Jobs : RequestOf(j) = r /\ db.row[j].state # "none"}

Insert(r) ==
  IF Intact("key") /\ Made(r) # {} THEN db' = db
  ELSE \E j \in Jobs :
         /\ RequestOf(j) = r /\ db.row[j].state = "none"
         /\ \E fresh \in Fresh : db' = [db EXCEPT !.row[j] = fresh]

Enqueue(r) ==
  /\ asked[r] \in {"no", "unknown"}
  /\ Insert(r)
  /\ asked' = [asked EXCEPT ![r] = "yes"]
  /\ UNCHANGED <<standby, timeline, leases, wire, expired, health, looked, left, seen>>

EnqueueUnanswered(r) ==
  /\ MayGoWrong("reply") /\ asked[r] = "no"
  /\ Insert(r) \/ db' = db
  /\ asked' = [asked EXCEPT ![r] = "unknown"]
  /\ GoesWrong
  /\ UNCHANGED <<standby, timeline, leases, wire, expired, health, looked, seen>>

-----------------------------------------------------------------------------
(* Claim: the only thing that raises a token. A claim id is random, so no two claims ever have the same one. *)

Epoch == IF Intact("epoch") THEN (timeline - 1) * 100 ELSE 0
Greater(a, b) == IF a > b THEN a ELSE b

NextToken(j) ==
  IF Intact("token") THEN Greater(Epoch + db.sequence + 1, db.row[j].token + 1) ELSE Greater(db.row[j].token, 1)

Grant(w, j, token, claim) ==
  /\ IF Intact("token") THEN Claimable(db.row[j], token, Most)
     ELSE db.row[j].state = "queued" /\ db.row[j].attempt < Most
  /\ db' = [db EXCEPT !.row[j] = Claimed(@, token, claim), !.sequence = @ + 1]
  /\ seen' = [seen EXCEPT !.claims = claim, !.issued[j] = Greater(@, token),
                          !.grew = @ /\ token > seen.issued[j]]
  /\ expired' = expired \ {j}

Claim(w, j) ==
  /\ health[w] = "well" /\ seen.claims < ClaimsMost
  /\ LET token == NextToken(j)  claim == seen.claims + 1 IN
       /\ Grant(w, j, token, claim)
       /\ leases' = leases \cup {[worker |-> w, job |-> j, token |-> token, claim |-> claim, phase |-> "works"]}
  /\ UNCHANGED <<standby, timeline, wire, health, looked, asked, left>>

(* The reply is lost and the worker does not ask again: no worker knows of the lease until it runs out. *)
ClaimUnanswered(w, j) ==
  /\ MayGoWrong("reply") /\ health[w] = "well" /\ seen.claims < ClaimsMost
  /\ Grant(w, j, NextToken(j), seen.claims + 1)
  /\ GoesWrong
  /\ UNCHANGED <<standby, timeline, leases, wire, health, looked, asked>>

-----------------------------------------------------------------------------
(* The end of a lease, by the worker that believes in it. *)

Passes(l, verb) ==
  LET row == db.row[l.job] IN
  /\ CASE ~Intact("guard") /\ verb = "fail" -> row.state # "none"
       [] ~Intact("fence")   -> TRUE
       [] ~Intact("owner")   -> row.state = "running" /\ \E b \in leases : b.worker = l.worker /\ b.claim = row.claim
       [] ~Intact("claim")   -> row.state = "running" /\ row.token = l.token
       [] ~Intact("release") -> row.token = l.token /\ row.claim = l.claim
       [] OTHER              -> Holds(row, l.token, l.claim)
  /\ Intact("no clock") \/ l.job \notin expired

Outcome(l, verb) ==
  CASE verb = "complete" -> "succeeded"
    [] verb \in {"fail", "crash"} -> Failure(db.row[l.job], Most)
    [] verb = "bury"     -> "dead"
    [] verb = "snooze"   -> "snoozed"
    [] verb = "release"  -> "released"
    [] verb = "drop"     -> "cancelled"

(* A broken end leaves the claim on the row: then only the state tells that it is over. *)
LeftBy(row, next) == IF Intact("release") THEN next ELSE [next EXCEPT !.claim = row.claim]

Entry(l, outcome) == [job |-> l.job, token |-> l.token, claim |-> l.claim, outcome |-> outcome]
Effect(l) == [job |-> l.job, token |-> l.token, claim |-> l.claim]

Write(l, verb) ==
  LET row == db.row[l.job]  outcome == Outcome(l, verb) IN
  /\ \E next \in After(row, outcome, Most) :
       /\ next.crashes = row.crashes + (IF verb = "crash" THEN 1 ELSE 0)
       /\ next.state = "later" \/ outcome \notin {"snoozed", "released"}
       /\ db' = [db EXCEPT !.row[l.job] = LeftBy(row, next),
                           !.ledger = @ \cup {Entry(l, outcome)},
                           !.effects = IF verb = "complete" /\ Intact("one transaction") THEN @ \cup {Effect(l)} ELSE @]
  /\ seen' = [seen EXCEPT !.zombie = @ \/ ~Holds(row, l.token, l.claim)]

Settles(l, verb) == IF Passes(l, verb) THEN Write(l, verb) ELSE UNCHANGED <<db, seen>>

Works(l) == l.phase = "works" /\ health[l.worker] = "well"
GivesBack(verb) == verb \in {"snooze", "release"}
Allowed(l, verb) == verb \in Verbs /\ (l.job \in Poison => GivesBack(verb)) /\ (GivesBack(verb) => left.acts > 0)
Spend(verb) == IF GivesBack(verb) THEN Acted ELSE UNCHANGED left

(* Answered: through, or refused; either way the belief is over. *)
Finish(l) == \E verb \in Verbs :
  /\ Works(l) /\ Allowed(l, verb)
  /\ Intact("one transaction") \/ verb # "complete"
  /\ Intact("one statement") \/ verb # "complete"
  /\ Settles(l, verb)
  /\ Spend(verb)
  /\ leases' = leases \ {l}
  /\ UNCHANGED <<standby, timeline, wire, expired, health, looked, asked>>

(* The connection breaks: the write has happened, or may still happen, or never will. The sender cannot tell which. *)
FinishUnanswered(l) ==
  /\ MayGoWrong("reply") /\ Works(l) /\ "complete" \in Verbs /\ l.job \notin Poison
  /\ Intact("one transaction") /\ Intact("one statement")
  /\ \/ Settles(l, "complete") /\ wire' = wire
     \/ UNCHANGED <<db, seen>> /\ wire' = wire \cup {[l EXCEPT !.phase = "wire"]}
     \/ UNCHANGED <<db, seen>> /\ wire' = wire
  /\ leases' = (leases \ {l}) \cup {[l EXCEPT !.phase = "unknown"]}
  /\ GoesWrong
  /\ UNCHANGED <<standby, timeline, expired, health, looked, asked>>

Deliver(l) ==
  /\ wire' = wire \ {l}
  /\ Settles(l, "complete")
  /\ UNCHANGED <<standby, timeline, leases, expired, health, looked, asked, left>>

(* outcome.sql: `running` lets it try again; an entry of its own says how it ended; anything else says it is lost. *)
Ask(l) ==
  /\ l.phase = "unknown" /\ health[l.worker] = "well"
  /\ LET again == {[l EXCEPT !.phase = "works"]} IN
       IF Intact("ask")
       THEN /\ leases' = (leases \ {l}) \cup (IF Holds(db.row[l.job], l.token, l.claim) THEN again ELSE {})
            /\ UNCHANGED seen
       ELSE /\ leases' = leases \ {l}   (* it says that the attempt failed, whatever became of it *)
            /\ seen' = [seen EXCEPT !.lied = @ \/ Entry(l, "succeeded") \in db.ledger]
  /\ UNCHANGED <<db, standby, timeline, wire, expired, health, looked, asked, left>>

(* Without one transaction: the handler commits its own rows, and the success follows when it can. *)
EffectApart(l) ==
  /\ ~Intact("one transaction") /\ Works(l) /\ "complete" \in Verbs
  /\ Passes(l, "complete") /\ Effect(l) \notin db.effects
  /\ db' = [db EXCEPT !.effects = @ \cup {Effect(l)}]
  /\ UNCHANGED <<standby, timeline, leases, wire, expired, health, looked, asked, left, seen>>

FinishApart(l) ==
  /\ ~Intact("one transaction") /\ Works(l) /\ Effect(l) \in db.effects
  /\ Settles(l, "complete")
  /\ leases' = leases \ {l}
  /\ UNCHANGED <<standby, timeline, wire, expired, health, looked, asked, left>>

(* Without one statement: the fence is a look, and the write comes later and asks nothing. *)
Check(l) ==
  /\ ~Intact("one statement") /\ Works(l) /\ Passes(l, "complete")
  /\ leases' = (leases \ {l}) \cup {[l EXCEPT !.phase = "checked"]}
  /\ UNCHANGED <<db, standby, timeline, wire, expired, health, looked, asked, left, seen>>

WriteChecked(l) ==
  /\ l.phase = "checked" /\ health[l.worker] = "well"
  /\ Write(l, "complete")
  /\ leases' = leases \ {l}
  /\ UNCHANGED <<standby, timeline, wire, expired, health, looked, asked, left>>

-----------------------------------------------------------------------------
(* The pacemaker, and time. A lease that a worker in good health keeps does not run out, unless clocks lie. *)

Beat(l) ==
  /\ Works(l)
  /\ IF Holds(db.row[l.job], l.token, l.claim)
     THEN expired' = expired \ {l.job} /\ UNCHANGED leases
     ELSE leases' = leases \ {l} /\ UNCHANGED expired      (* lost, or cancelled: the handler is stopped *)
  /\ UNCHANGED <<db, standby, timeline, wire, health, looked, asked, left, seen>>

Beating(w) == health[w] = "well" \/ (health[w] = "frozen" /\ ~Intact("frozen lose"))
Kept(j) == \E l \in leases : l.job = j /\ Holds(db.row[j], l.token, l.claim) /\ Beating(l.worker)

Expire(j) ==
  /\ db.row[j].state = "running" /\ j \notin expired
  /\ ~Kept(j) \/ "clock" \in Faults \/ ~Intact("pacemaker")
  /\ expired' = expired \cup {j}
  /\ UNCHANGED <<db, standby, timeline, leases, wire, health, looked, asked, left, seen>>

-----------------------------------------------------------------------------
(* The watchdog. *)

Holder(j) == [worker |-> "", job |-> j, token |-> db.row[j].token, claim |-> db.row[j].claim]

TakeBack(j) ==
  LET row == db.row[j]
      outcome == Crash(row, Most)
      counted == [Left(row, IF outcome = "dead" THEN "dead" ELSE "later") EXCEPT !.crashes = @ + 1]
      next == IF Intact("count") THEN counted ELSE GivenBack(Left(row, "later")) IN
  /\ ~Intact("count") \/ next \in After(row, outcome, Most)
  /\ db' = [db EXCEPT !.row[j] = LeftBy(row, next), !.ledger = @ \cup {Entry(Holder(j), outcome)}]
  /\ expired' = expired \ {j}

Reap(j) ==
  /\ Intact("watchdog") /\ Intact("look and lock")
  /\ j \in expired /\ db.row[j].state = "running"
  /\ TakeBack(j)
  /\ UNCHANGED <<standby, timeline, leases, wire, health, looked, asked, left, seen>>

Look(j) ==
  /\ ~Intact("look and lock") /\ j \in expired /\ db.row[j].state = "running"
  /\ looked' = looked \cup {j}
  /\ UNCHANGED <<db, standby, timeline, leases, wire, expired, health, asked, left, seen>>

ReapLooked(j) ==
  /\ j \in looked /\ looked' = looked \ {j}
  /\ TakeBack(j)
  /\ UNCHANGED <<standby, timeline, leases, wire, health, asked, left, seen>>

Promote(j) ==
  /\ db.row[j].state = "later"
  /\ db' = [db EXCEPT !.row[j] = Promoted(@)]
  /\ UNCHANGED <<standby, timeline, leases, wire, expired, health, looked, asked, left, seen>>

-----------------------------------------------------------------------------
(* People. *)

Cancel(j) ==
  /\ MayAct("cancel") /\ db.row[j].state \in Waiting \cup {"running"}
  /\ db' = [db EXCEPT !.row[j] = LeftBy(@, Left(@, "cancelled")), !.ledger = @ \cup {Entry(Holder(j), "cancelled")}]
  /\ expired' = expired \ {j}
  /\ Acted
  /\ UNCHANGED <<standby, timeline, leases, wire, health, looked, asked, seen>>

Replay(j) ==
  /\ MayAct("replay") /\ db.row[j].state = "dead"
  /\ db' = [db EXCEPT !.row[j] = Replayed(@)]
  /\ Acted
  /\ UNCHANGED <<standby, timeline, leases, wire, expired, health, looked, asked, seen>>

-----------------------------------------------------------------------------
(* What goes wrong. *)

Lose(w) == leases' = {l \in leases : l.worker # w}
Vanish(w) ==
  db' = [db EXCEPT !.row = [j \in Jobs |->
           IF \E l \in leases : l.worker = w /\ Holds(db.row[j], l.token, l.claim) THEN NoJob ELSE db.row[j]]]

Die(w) ==
  /\ health[w] # "down" /\ health' = [health EXCEPT ![w] = "down"]
  /\ Lose(w)
  /\ IF Intact("row stays") THEN UNCHANGED db ELSE Vanish(w)
  /\ UNCHANGED <<standby, timeline, wire, expired, looked, asked, seen>>

CrashOf(w) == MayGoWrong("crash") /\ (\E l \in leases : l.worker = w) /\ Die(w) /\ GoesWrong
Poisoned(w) == (\E l \in leases : l.worker = w /\ Works(l) /\ l.job \in Poison) /\ Die(w) /\ UNCHANGED left

Restart(w) ==
  /\ health[w] = "down" /\ health' = [health EXCEPT ![w] = "well"]
  /\ UNCHANGED <<db, standby, timeline, leases, wire, expired, looked, asked, left, seen>>

Freeze(w) ==
  /\ MayGoWrong("freeze") /\ health[w] = "well" /\ health' = [health EXCEPT ![w] = "frozen"]
  /\ GoesWrong
  /\ UNCHANGED <<db, standby, timeline, leases, wire, expired, looked, asked, seen>>

Thaw(w) ==
  /\ health[w] = "frozen" /\ health' = [health EXCEPT ![w] = "well"]
  /\ UNCHANGED <<db, standby, timeline, leases, wire, expired, looked, asked, left, seen>>

Lossy == ~Sync \/ ~Intact("durable")

Replicate ==
  /\ Lossy /\ left.faults > 0 /\ Faults \cap {"failover", "stop"} # {} /\ standby # db
  /\ standby' = db
  /\ UNCHANGED <<db, timeline, leases, wire, expired, health, looked, asked, left, seen>>

Failover ==
  /\ MayGoWrong("failover")
  /\ db' = IF Sync THEN db ELSE standby
  /\ standby' = db'
  /\ timeline' = timeline + 1
  /\ wire' = {} /\ expired' = {} /\ looked' = {}
  /\ GoesWrong
  /\ UNCHANGED <<leases, health, asked, seen>>

(* The server stops at once and starts again: the same timeline, and what was not flushed is gone. *)
Stop ==
  /\ MayGoWrong("stop")
  /\ db' = IF Intact("durable") THEN db ELSE standby
  /\ standby' = db'
  /\ wire' = {} /\ expired' = {} /\ looked' = {}
  /\ GoesWrong
  /\ UNCHANGED <<timeline, leases, health, asked, seen>>

-----------------------------------------------------------------------------
Progress ==
  \/ \E r \in Requests : Enqueue(r)
  \/ \E w \in Workers, j \in Jobs : Claim(w, j)
  \/ \E l \in leases : Finish(l) \/ Ask(l) \/ EffectApart(l) \/ FinishApart(l) \/ Check(l) \/ WriteChecked(l)
  \/ \E j \in Jobs : Expire(j) \/ Reap(j) \/ Look(j) \/ ReapLooked(j) \/ Promote(j)
  \/ \E w \in Workers : Restart(w) \/ Poisoned(w)

Next ==
  \/ Progress
  \/ \E r \in Requests : EnqueueUnanswered(r)
  \/ \E w \in Workers, j \in Jobs : ClaimUnanswered(w, j)
  \/ \E l \in leases : FinishUnanswered(l) \/ Beat(l)
  \/ \E l \in wire : Deliver(l)
  \/ \E j \in Jobs : Cancel(j) \/ Replay(j)
  \/ \E w \in Workers : CrashOf(w) \/ Freeze(w) \/ Thaw(w)
  \/ Replicate \/ Failover \/ Stop

(* Fair: a process in good health goes on. Not fair: faults, people, thawing, the lost write that may still arrive. *)
Fair ==
  /\ WF_vars(\E r \in Requests : Enqueue(r))
  /\ WF_vars(\E w \in Workers, j \in Jobs : Claim(w, j))
  /\ WF_vars(\E l \in leases : Finish(l) \/ Ask(l) \/ EffectApart(l) \/ FinishApart(l) \/ Check(l) \/ WriteChecked(l))
  /\ WF_vars(\E j \in Jobs : Expire(j))
  /\ WF_vars(\E j \in Jobs : Reap(j) \/ Look(j) \/ ReapLooked(j))
  /\ WF_vars(\E j \in Jobs : Promote(j))
  /\ WF_vars(\E w \in Workers : Restart(w))
  /\ WF_vars(\E w \in Workers : Poisoned(w))

Spec == Init /\ [][Next]_vars
FairSpec == Spec /\ Fair

-----------------------------------------------------------------------------
(* The promises, by the names that they have everywhere. *)

NoZombie == ~seen.zombie

(* What was committed: once for a request that succeeded, never for another; and by the lease that the ledger names. *)
EffectsOf(r) == {e \in db.effects : RequestOf(e.job) = r}
OneEffect ==
  /\ \A r \in Requests :
       Cardinality(EffectsOf(r)) = IF \E j \in Jobs : RequestOf(j) = r /\ db.row[j].state = "succeeded" THEN 1 ELSE 0
  /\ \A e \in db.effects : [job |-> e.job, token |-> e.token, claim |-> e.claim, outcome |-> "succeeded"] \in db.ledger

(* At most one belief passes the fence; none when no worker is at work. *)
OwnerIsOne == \A j \in Jobs :
  Cardinality({l \in leases : l.job = j /\ Passes(l, "complete")}) <= (IF db.row[j].state = "running" THEN 1 ELSE 0)

TerminalStays == [][\A j \in Jobs :
  db.row[j].state \in Ended => (db'.row[j].state = db.row[j].state \/ timeline' # timeline)]_vars

TokenGrows == seen.grew

(* What was acknowledged is there; and no job dies where nothing went wrong. *)
Calm == Faults = {} /\ Poison = {} /\ Verbs = {"complete"}
NothingLost ==
  /\ \A r \in Requests : asked[r] = "yes" => Made(r) # {}
  /\ Calm => \A j \in Jobs : db.row[j].state # "dead"

Drains == <>[](\A j \in Jobs : db.row[j].state \notin Waiting \cup {"running"})

(* Beside the seven: a worker says of no committed lease that it failed; and the model's own bound was not what held. *)
TruthTold == ~seen.lied
BoundNotMet == seen.claims < ClaimsMost

-----------------------------------------------------------------------------
(* Sometimes: what must happen in the unbroken model, or its promises would be kept by idleness. TLC is asked to refute each. *)

NeverStale   == \A l \in leases : Works(l) => Holds(db.row[l.job], l.token, l.claim)
NeverLate    == \A l \in leases : ~(Works(l) /\ l.job \in expired /\ Passes(l, "complete"))
NeverUnknown == \A l \in leases : ~(l.phase = "unknown" /\ Entry(l, "succeeded") \in db.ledger)
NeverSentTwice == \A l \in wire : ~\E again \in leases : again.claim = l.claim /\ again.phase = "works"
NeverOwnZombie == \A l, other \in leases : l # other /\ l.job = other.job => l.worker # other.worker
NeverForgotten == \A l \in leases :
  Holds(db.row[l.job], l.token, l.claim) \/ \E e \in db.ledger : e.job = l.job /\ e.token >= l.token
=============================================================================
