------------------------------- MODULE Lease -------------------------------
(* One run of rota, its lease, its fence, and workers that may be slow, dead, or not told what became of their words.   *)
(* One step = one committed transaction: each of them locks the ready row, the lease, or whatever else holds the run    *)
(* first, so transactions that touch one run are serial. What is inside them is the subject of tests/explorer.          *)
(* A run may be handed over to somebody outside (`outside`: the same fence, a deadline), or be done by replicas, which  *)
(* are runs of their own (`conduct`). `Lose`: the database loses its last commits (a failover, a restore).              *)
EXTENDS Naturals, Sequences, FiniteSets
CONSTANTS Workers, MaxAttempts,
          Faults,      \* how often something bad may happen: a crash, a hand-back, a lost answer, a lease that runs out
          Losses, K,   \* how often commits are lost, and how many of the last ones at most
          Repair,      \* fences after a loss begin "none": at fence + 1 | "counted": above those of the last epoch that the
                       \* database knows | "clock": where the time says | "late": the same, but noticed later
          Kinds,       \* which more happens to runs: "outside", "conduct", "snooze"
          Plants       \* planted faults; {}: none
Base == 100            \* of an epoch: more than a run ever has claims in one
VARIABLES db,     \* the run: where it is, fence, attempt, whose lease (and, for the checker, of which claim), recorded ends;
                  \* and the floor of the epoch, which is lost with the last commits like everything else
          past,   \* the last committed states of db, newest first: what a loss may go back to
          w,      \* what each worker believes: doing what, under which fence, of which claim
          out,    \* what those outside were told, for ever: <<fence, claim>>. They may say anything, at any time, twice
          given,  \* ghost: <<fence, claim>> of all claims that were ever committed, lost or not
          bad,    \* ghost: what was accepted though it was stale
          budget, losses
vars == <<db, past, w, out, given, bad, budget, losses>>
Nobody == "nobody"
Idle == [does |-> "idle", fence |-> 0, claim |-> 0, says |-> "-"]
Init == /\ db = [at |-> "none", fence |-> 0, attempt |-> 0, holder |-> Nobody, claim |-> 0, old |-> FALSE,
                 cancel |-> FALSE, state |-> "-", told |-> {}, floor |-> 0]       \* told: {<<fence, outcome>>}, as rota_attempt
        /\ past = <<>> /\ w = [x \in Workers |-> Idle] /\ out = {}
        /\ given = {} /\ bad = {} /\ budget = Faults /\ losses = 0
Commit(new) == /\ db' = new
               /\ past' = IF K = 0 THEN <<>> ELSE SubSeq(<<db>> \o past, 1, IF Len(past) < K THEN Len(past) + 1 ELSE K)
Spend == budget > 0 /\ budget' = budget - 1
Greater(a, b) == IF a > b THEN a ELSE b
NextFence == IF "claimKeeps" \in Plants THEN db.fence ELSE Greater(db.fence + 1, db.floor)
Raise == IF "takenKeeps" \in Plants THEN db.fence ELSE db.fence + 1
Ended(state, fence, told) == [db EXCEPT !.at = "final", !.state = state, !.fence = fence, !.told = @ \cup told, !.holder = Nobody]
Again(attempt, fence, told) == [db EXCEPT !.at = "ready", !.fence = fence, !.attempt = attempt, !.told = @ \cup told, !.holder = Nobody]
Quiet == UNCHANGED <<w, out, given, bad, budget, losses>>

Enqueue == \* of a schedule that retries, the next plan time's run may begin with an attempt that is counted already
  db.at = "none" /\ (\E attempt \in {0, 1} : Commit([db EXCEPT !.at = "ready", !.attempt = attempt])) /\ Quiet
Refuse == \* a limit, its schedule, or what it was to follow, says so: never begun
  db.at = "none" /\ (\E state \in {"skipped", "cancelled"}, fence \in {0, 1} : Commit(Ended(state, fence, {}))) /\ Quiet
Return == \* claimed and handed back in one transaction: a limit, or its next part, says so
  db.at = "ready" /\ Commit([db EXCEPT !.fence = NextFence + 1]) /\ Spend /\ UNCHANGED <<w, out, given, bad, losses>>
Prune == db.at = "final" /\ Commit([db EXCEPT !.at = "gone"]) /\ Quiet
Claim(x, heard) == \* heard = FALSE: committed, but its answer is lost; the worker knows that it does not know
  /\ db.at = "ready" /\ w[x].does = "idle"
  /\ LET claim == Cardinality(given) + 1 IN
     /\ Commit([db EXCEPT !.at = "lease", !.fence = NextFence, !.attempt = @ + 1, !.holder = x, !.claim = claim, !.old = FALSE])
     /\ given' = given \cup {<<NextFence, claim>>}
     /\ w' = [w EXCEPT ![x] = IF heard THEN [does |-> "works", fence |-> NextFence, claim |-> claim, says |-> "-"]
                                     ELSE [Idle EXCEPT !.does = "unsure"]]
  /\ IF heard THEN UNCHANGED budget ELSE Spend
  /\ UNCHANGED <<bad, out, losses>>
Mine(x) == db.at = "lease" /\ ("byName" \in Plants \/ db.fence = w[x].fence)  \* workers are slots of one process: one name
Heartbeat(x) == \* an expired lease that nobody has taken away is still good; else the worker is told, and stops
  /\ w[x].does = "works"
  /\ IF Mine(x) THEN db.old /\ Commit([db EXCEPT !.old = FALSE]) /\ UNCHANGED w
                ELSE w' = [w EXCEPT ![x] = Idle] /\ UNCHANGED <<db, past>>
  /\ bad' = IF Mine(x) /\ db.claim # w[x].claim THEN bad \cup {"heartbeat"} ELSE bad
  /\ UNCHANGED <<given, budget, out, losses>>
Dead == ~\E x \in Workers : w[x].does # "idle" /\ w[x].claim = db.claim
Expires == /\ db.at \in {"lease", "outside"} /\ ~db.old /\ db' = [db EXCEPT !.old = TRUE]  \* time, no commit
           /\ UNCHANGED <<past, w, given, bad, out, losses>>
RunsOut == (Dead \/ db.at = "outside") /\ Expires /\ UNCHANGED budget  \* certain, if nobody renews it
Slow == ~Dead /\ db.at = "lease" /\ Expires /\ Spend                   \* its holder is frozen, or cut off
Reap == \* what has expired, or whose grace after a cancel is over. A run that must not begin again (`on_lost`) expires at once
  /\ db.at \in {"lease", "outside"} /\ "noReap" \notin Plants /\ (db.old \/ db.cancel \/ "eager" \in Plants)
  /\ LET told == {<<db.fence, "lost">>} IN
     \/ Commit(IF db.cancel THEN Ended("cancelled", Raise, told)
               ELSE IF db.attempt >= MaxAttempts THEN Ended(IF db.at = "outside" THEN "timed_out" ELSE "expired", Raise, told)
               ELSE Again(db.attempt, Raise, told))
     \/ ~db.cancel /\ Commit(Ended(IF db.at = "outside" THEN "timed_out" ELSE "expired", Raise, told))
  /\ Quiet
TakeAway == \* by somebody who restricts the run to other workers: as if it had been handed back
  /\ db.at = "lease" /\ ~db.cancel /\ Commit(Again(db.attempt - 1, Raise, {<<db.fence, "back">>}))
  /\ Spend /\ UNCHANGED <<w, out, given, bad, losses>>
Decide(says) == \* core/runs/outcome.after_report; of a run that must not begin again, a hand-back is its end
  LET told == {<<db.fence, says>>} IN
  CASE says = "ok" -> {Ended("succeeded", db.fence, told)}
    [] says = "back" -> IF db.cancel THEN {Ended("cancelled", Raise, told)}
                        ELSE {Again(db.attempt - 1, Raise, told), Ended("expired", Raise, told)}
    [] says \in {"snooze", "part"} -> IF db.cancel THEN {Ended("cancelled", db.fence, told)} ELSE {Again(db.attempt - 1, db.fence, told)}
    [] OTHER -> IF db.cancel THEN {Ended("cancelled", db.fence, told)}
                ELSE IF db.attempt >= MaxAttempts THEN {Ended(state, db.fence, told) : state \in {"failed", "timed_out"}}
                ELSE {Again(db.attempt, db.fence, told)} \cup {Ended("failed", db.fence, told)}  \* `Fail`: not to be tried again
Costs(says) == says \in {"back", "snooze"}  \* no attempt: it must cost something
Words == {"ok", "fail", "back"} \cup (IF "snooze" \in Kinds THEN {"snooze"} ELSE {})
Report(x, says, heard) == \* also repeated, after an answer was lost: then it must say the same
  /\ w[x].does = "works" \/ (w[x].does = "repeats" /\ w[x].says = says)
  /\ IF Mine(x) \/ ("noLease" \in Plants /\ db.fence = w[x].fence)
       THEN (\E new \in Decide(says) : Commit(new)) /\ bad' = IF db.claim # w[x].claim THEN bad \cup {"report"} ELSE bad
       ELSE /\ UNCHANGED <<db, past>>  \* told before: the first answer; else refused. `attempt_outcomes`
            /\ bad' = IF <<w[x].fence, says>> \in db.told /\ \E g \in given : g[1] = w[x].fence /\ g[2] # w[x].claim
                      THEN bad \cup {"repeat"} ELSE bad  \* taken for the end that another claim told under this fence
  /\ w' = [w EXCEPT ![x] = IF heard THEN Idle ELSE [@ EXCEPT !.does = "repeats", !.says = says]]
  /\ IF heard /\ (~Costs(says) \/ w[x].does = "repeats") THEN UNCHANGED budget ELSE Spend
  /\ UNCHANGED <<given, out, losses>>
HandOver(x) == \* ctx.wait_for_external(): the fence goes to those outside, and the slot back
  /\ "outside" \in Kinds /\ w[x].does = "works" /\ Mine(x)
  /\ IF db.cancel THEN Commit(Ended("cancelled", db.fence, {<<db.fence, "over">>})) /\ UNCHANGED out
                  ELSE /\ Commit([db EXCEPT !.at = "outside", !.old = FALSE, !.holder = Nobody])
                       /\ out' = out \cup {<<w[x].fence, w[x].claim>>}
  /\ bad' = IF db.claim # w[x].claim THEN bad \cup {"hand over"} ELSE bad
  /\ w' = [w EXCEPT ![x] = Idle] /\ UNCHANGED <<given, budget, losses>>
FromOutside(g, says) == \* whoever has the fence; it costs nothing to be refused
  /\ db.at = "outside" /\ (db.fence = g[1] \/ "outsideAny" \in Plants)
  /\ \E new \in Decide(says) : Commit(new)
  /\ bad' = IF db.claim # g[2] THEN bad \cup {"outside"} ELSE bad
  /\ IF Costs(says) THEN Spend ELSE UNCHANGED budget
  /\ UNCHANGED <<w, out, given, losses>>
HandBackUnknown(x) == \* asks for leases under its boot id, hands back what it does not know
  /\ w[x].does = "unsure" /\ "forgets" \notin Plants /\ w' = [w EXCEPT ![x] = Idle]
  /\ IF db.at = "lease" /\ db.holder = x THEN \E new \in Decide("back") : Commit(new) ELSE UNCHANGED <<db, past>>
  /\ UNCHANGED <<given, bad, budget, out, losses>>
Crash(x) == w[x].does # "idle" /\ Spend /\ w' = [w EXCEPT ![x] = Idle] /\ UNCHANGED <<db, past, given, bad, out, losses>>
Conduct == \* its replicas are runs of their own; nobody has its fence
  /\ "conduct" \in Kinds /\ db.at = "ready" /\ db.fence = 0
  /\ Commit([db EXCEPT !.at = "conduct", !.fence = db.fence + 1, !.attempt = @ + 1]) /\ Quiet
Conducted == /\ db.at = "conduct" /\ Quiet
             /\ \E state \in {"succeeded", "failed", "cancelled"} : (state = "cancelled" => db.cancel) /\ Commit(Ended(state, db.fence + 1, {}))
Vain == \* what it waits for ended otherwise, or it waited too long
  db.at = "ready" /\ (\E state \in {"skipped", "expired"} : (state = "skipped" => db.fence = 0) /\ Commit(Ended(state, Raise, {}))) /\ Quiet
Cancel == /\ ~db.cancel /\ db.at \in {"ready", "lease", "outside", "conduct"} \cup (IF "cancelFinal" \in Plants THEN {"final"} ELSE {})
          /\ Commit(IF db.at \in {"ready", "final"} THEN Ended("cancelled", Raise, {}) ELSE [db EXCEPT !.cancel = TRUE])
          /\ Quiet
Lose == /\ losses < Losses /\ Len(past) > 0
        /\ \E n \in 1..Len(past) :
             /\ past[n].at # "none"
             /\ db' = [past[n] EXCEPT !.floor = CASE Repair = "counted" -> @ + Base [] Repair = "clock" -> (losses + 1) * Base [] OTHER -> @]
             /\ past' = SubSeq(past, n + 1, Len(past))
        /\ losses' = losses + 1 /\ UNCHANGED <<w, out, given, bad, budget>>
Notice == Repair = "late" /\ db.floor < losses * Base /\ Commit([db EXCEPT !.floor = losses * Base]) /\ Quiet
Done == db.at \in {"final", "gone"} /\ UNCHANGED vars
Step(x) == \/ Claim(x, TRUE) \/ Claim(x, FALSE) \/ Heartbeat(x) \/ HandBackUnknown(x) \/ Crash(x) \/ HandOver(x)
           \/ \E says \in Words, heard \in BOOLEAN : Report(x, says, heard)
Outsiders == \E g \in out, says \in Words : FromOutside(g, says)
Next == \/ \E x \in Workers : Step(x)
        \/ Outsiders
        \/ Enqueue \/ Refuse \/ Return \/ Prune \/ RunsOut \/ Slow \/ Reap \/ TakeAway \/ Conduct \/ Conducted \/ Vain \/ Cancel \/ Lose \/ Notice \/ Done
\* What must happen in the end: an enqueue, claims, honest ends (ok or fail), hand-backs of the unknown, replicas, and the reaper.
Fair == /\ WF_vars(Enqueue) /\ WF_vars(Reap) /\ WF_vars(RunsOut) /\ WF_vars(Conducted)
        /\ \A x \in Workers : WF_vars(Claim(x, TRUE)) /\ WF_vars(HandBackUnknown(x))
        /\ \A x \in Workers : WF_vars(Report(x, "ok", TRUE) \/ Report(x, "fail", TRUE)) /\ WF_vars(w[x].does = "repeats" /\ Report(x, w[x].says, TRUE))
Spec == Init /\ [][Next]_vars /\ Fair
----------------------------------------------------------------------------
FenceOnce == \A a, b \in given : a[1] = b[1] => a = b             \* never given twice (promises 3 and 26)
FencesGrow == \A a, b \in given : a[2] < b[2] => a[1] < b[1]      \* what another system that keeps the highest relies on
NoStale == bad = {}                                                \* promise 4
OneHolder == db.at = "lease" <=> db.holder # Nobody
Attempts == db.attempt <= MaxAttempts                              \* promise 7
SkippedNeverBegan == db.at = "final" /\ db.state = "skipped" /\ losses = 0 => given = {}
FinalStays == [][db.at = "final" => (db' = db \/ db'.at = "gone" \/ losses' # losses)]_db   \* promise 5; not across a loss
FinalEver == [][db.at = "final" => (db' = db \/ db'.at = "gone")]_db                        \* what a loss breaks, whatever the fence
NeverFalls == [][db'.fence >= db.fence \/ losses' # losses]_db
Ends == <>(db.at = "final")                                        \* promise 6: nothing is stuck
=============================================================================
