/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Planted bugs: mistakes that people really make in programs of this kind. The
 * simulator must keep finding them. They exist only in the simulator's build
 * (GAVEL_PLANTED). Elsewhere PLANTED() is a constant 0 and leaves no trace, which
 * a test checks in the binaries.
 */
#ifndef BASE_PLANTED_H
#define BASE_PLANTED_H

/* clang-format off */
#define PLANTED_CANDIDATE_MAP(X)                                                                              \
    X(DEADLINE_FROM_ANSWER,    "deadline-from-answer",    "the lease is counted from the answer, not the send") \
    X(EPOCH_RESTARTS,          "epoch-restarts",          "a release forgets the epoch")                      \
    X(NO_NONCE_CHECK,          "no-nonce-check",          "a record with my id is taken for my own claim")    \
    X(EARLY_TAKEOVER,          "early-takeover",          "a take-over waits for half a lease only")          \
    X(SEEN_FROM_SEND,          "seen-from-send",          "the standby's wait starts when its read was sent") \
    X(TRUST_STORE_CLOCK,       "trust-store-clock",       "the store's clock alone decides")                  \
    X(WALL_CLOCK,              "wall-clock",              "expiry compares the wall clocks of two machines")  \
    X(IS_LEADER_WITHOUT_CLOCK, "is-leader-without-clock", "is_leader() does not look at the clock")           \
    X(PREFERRED_BLOCKS,        "preferred-blocks",        "the others wait for the preferred candidate")      \
    X(BLIND_RETRY,             "blind-retry",             "a claim without an answer is taken as won")        \
    X(RELEASE_BEFORE_STOP,     "release-before-stop",     "the mandate is released while the work still runs") \
    X(RECLAIM_WHILE_STOPPING,  "reclaim-while-stopping",  "a lapsed leader does not wait for its work to stop") \
    X(NO_DRIFT,                "no-drift",                "clock rates are taken as equal and margins dropped") \
    X(CLAIM_IGNORES_VERSION,   "claim-ignores-version",   "the store lets a claim overwrite any record")      \
    X(CLAIM_KNOWN_AGAIN,       "claim-known-again",       "the store takes a claim that arrived late for the one that came after it") \
    X(CLOCK_SET_BACK_BLOCKS,   "clock-set-back-blocks",   "a store whose clock was set back says for long that a lease runs") \
    X(RENEW_ANY_EPOCH,         "renew-any-epoch",         "the store renews for a former holder")             \
    X(FLAPPING,                "flapping",                "a better candidate takes over without preemption") \
    X(BREAKER_STAYS_OPEN,      "breaker-stays-open",      "an open breaker never tries again")                \
    X(OWN_LEASE_LENGTH,        "own-lease-length",        "the standby waits its own lease, not the holder's") \
    X(FENCE_ACCEPTS_OLD,       "fence-accepts-old",       "a resource takes writes of older epochs")            \
    X(LATE_RELEASE,            "late-release",            "a release without an answer can end the next mandate") \
    X(HANDOVER_TO_THE_DEAD,    "handover-to-the-dead",    "a better candidate gets the gavel even if it is silent") \
    X(CLAIM_IGNORES_DONE,      "claim-ignores-done",      "a group that is done is claimed like any other that is free") \
    X(FINISH_ANY_MANDATE,      "finish-any-mandate",      "who took over meanwhile is closed together with the group") \
    X(FINISH_BLINDLY,          "finish-blindly",          "a success whose record was not answered is taken as recorded") \
    X(OBSERVER_IGNORED,        "observer-ignored",        "at a cold start nobody waits for a better candidate that still observes") \
    X(LIST_FROM_BEFORE,        "list-from-before",        "a cold start chooses among those that were there when it began") \
    X(STAGGER_FROM_SIGHT,      "stagger-from-sight",      "at a cold start the ranks wait from when the vacancy was first seen") \
    X(PREEMPT_FIRST_HEARD,     "preempt-first-heard",     "a leader hands over to the best candidate that it has heard of so far") \
    X(BREAKER_OLD_ANSWER,      "breaker-old-answer",      "a breaker is closed by an answer that was under way when it opened") \
    X(BREAKER_RESET_ONLY,      "breaker-reset-only",      "an open breaker waits for its reset time although nobody leads") \
    X(LOSS_AS_HANDOVER,        "loss-as-handover",        "a release on behalf of the dead is taken for a hand-over") \
    X(SESSION_FROM_ANSWER,     "session-from-answer",     "the deadline of a session is counted from the answer to a keep-alive") \
    X(MANDATE_OUTLIVES_SESSION, "mandate-outlives-session", "a leader goes on when another session is open than that of its mandate") \
    X(OLD_PUSH_ELECTS,         "old-push-elects",         "a push that is late brings back a mandate that was given up") \
    X(STANDS_WHILE_OBSERVING,  "stands-while-observing",  "a candidate that still observes may be granted the mandate") \
    X(PATIENCE_KEPT,           "patience-kept",           "who waits before it replaces a lost leader waits for ever") \
    X(PATIENCE_GONE,           "patience-gone",           "who has once waited for its takeover delay never waits again") \
    X(SUPERSEDED_IGNORED,      "superseded-ignored",      "a leader goes on although its store shows another one")    \
    X(RELEASE_SENT_ONCE,       "release-sent-once",       "a mandate whose release was lost stays with its session")  \
    X(FORMER_SESSION_RELEASED, "former-session-released", "a mandate is released in another session than it was granted to") \
    X(FORMER_DEADLINE_OLD, "former-deadline-old", "the work of a session that is lost must stop by a deadline of long ago") \
    X(LAST_OF_VERSION, "last-of-version", "of two records with one version the one that comes last counts") \
    X(RELEASE_STAYS, "release-stays", "a leader that stops is granted the mandate again before it has left") \
    X(ORPHAN_KEPT, "orphan-kept", "a mandate that is shown as its own but that it may not take up stays as it is") \
    X(FORMER_SELF_FOLLOWED, "former-self-followed", "a candidate takes up what was granted to a former one with its id and session") \
    X(STANDS_WITHOUT_TIME, "stands-without-time", "a candidate is granted the mandate although its session is shorter than its stop") \
    X(DONE_UNSEEN, "done-unseen", "a store that says OK is believed to have closed the group") \
    X(WISH_KEPT, "wish-kept", "a leader hands over for a wish that its store has shown to be over") \
    X(RIVAL_OUTLIVED, "rival-outlived", "a candidate ends for good since the session of a dead one with its id lasts longer than its own lease") \
    X(RESIGNATION_UNDONE, "resignation-undone", "a leader that resigns while it asks for a new epoch goes on with that")

#define PLANTED_RAFT_MAP(X)                                                                                   \
    X(VOTE_NOT_PERSISTED,        "vote-not-persisted", "a vote is given without being made durable") \
    X(TWO_VOTES,                 "two-votes", "a voter forgets that it has voted in this term") \
    X(LOG_NOT_COMPARED,          "log-not-compared", "a vote is given to a candidate with an older log") \
    X(PRE_VOTE_RESETS_TIMER,     "pre-vote-resets-timer", "being asked for a pre-vote puts off the own election") \
    X(PRE_VOTE_AS_VOTE,          "pre-vote-as-vote", "an answer to a pre-vote is counted as a vote") \
    X(COUNTS_LEARNER,            "counts-learner", "a candidate counts the vote of a learner") \
    X(PRIORITY_VETO,             "priority-veto", "a vote is refused to a candidate of lower priority") \
    X(VOTE_WHILE_WORKING,        "vote-while-working", "a former leader votes while its work still runs") \
    X(WINDOWED_CHECK_QUORUM,     "windowed-check-quorum", "a leader looks for its majority only now and then") \
    X(LEASE_FROM_ACK,            "lease-from-ack", "the lease is counted from the acknowledgement, not the send") \
    X(LEASE_WITHOUT_DRIFT,       "lease-without-drift", "the lease takes clock rates as equal and the margin is dropped") \
    X(PROMISE_FORGOTTEN,         "promise-forgotten", "a promise does not survive a restart") \
    X(OLD_LEASE_EPOCH,           "old-lease-epoch", "an aborted transfer goes on with the lease epoch that it gave up") \
    X(TERM_WHILE_PROMISED,       "term-while-promised", "a promised follower adopts a higher term that it only heard of") \
    X(RELEASE_EARLY,             "release-early", "a transfer hands over while the work still runs") \
    X(OBITUARY_ANY_INCARNATION,  "obituary-any-incarnation", "an obituary clears the promise to a newer incarnation") \
    X(CERTIFICATE_UNCHECKED,     "certificate-unchecked", "a certificate counts without a look at its mac") \
    X(CLAIM_WITHOUT_NOOP,        "claim-without-noop", "leadership is claimed before anything of the term is committed") \
    X(WITNESS_CLAIMS,            "witness-claims", "a witness that leads begins the work") \
    X(WITNESS_TRUNCATES,         "witness-truncates", "a witness gives up its newest entries so that another can win") \
    X(COMMITS_OLD_TERM,          "commits-old-term", "an entry of an older term is committed by counting") \
    X(TRUNCATES_COMMITTED,       "truncates-committed", "a reordered append makes a follower drop entries that it had") \
    X(COMMIT_BEYOND_MATCH,       "commit-beyond-match", "a follower commits entries that the leader did not vouch for") \
    X(REPLY_BEFORE_SYNC,         "reply-before-sync", "a follower acknowledges entries that are not durable") \
    X(COUNTS_OWN_UNSYNCED,       "counts-own-unsynced", "a leader commits with entries that are not durable on itself") \
    X(NO_NOOP_GUARD,             "no-noop-guard", "members change one by one, without joint majorities and before the no-op") \
    X(JOINT_NEW_ONLY,            "joint-new-only", "in a joint configuration the new majority decides alone") \
    X(CONFIG_STAYS,              "config-stays", "a configuration stays in force though its entry was truncated") \
    X(FORCE_GOES_ON,             "force-goes-on", "a forced transfer that failed goes on in the same term") \
    X(LATE_VOTE_CLEARS,         "late-vote-clears", "a vote request that comes late or twice ends the promise to its winner") \
    X(TRANSFER_AGAIN,           "transfer-again", "a transfer begins while the work still stops for another that was given up") \
    X(FORCE_BEFORE_NOOP,        "force-before-noop", "a forced transfer before the leader knows all that is committed") \
    X(REMOVED_NEVER_STANDS,     "removed-never-stands", "whom an uncommitted configuration removes gives up at once") \
    X(HUNG_LEADS,                "hung-leads", "a leader whose disk hangs goes on leading") \
    X(ANY_TERM,                  "any-term", "a term that no number of elections can have led to is adopted") \
    X(DIRECTORY_UNCHECKED,      "directory-unchecked", "a voter is known by its name, whatever data directory it has") \
    X(ROLLED_BACK_HEARD,        "rolled-back-heard", "a voter whose log ends before what it has acknowledged is heard") \
    X(REFUSAL_NOT_WRITTEN,      "refusal-not-written", "that a directory is refused stays in the memory of the leader") \
    X(MET_FORGOTTEN,            "met-forgotten", "what is known of the directories of others is lost with a restart") \
    X(MET_ENDS_WITH_BINDING,    "met-ends-with-binding", "what is known of a directory is forgotten when its member is removed, or its binding truncated") \
    X(MET_UNBOUND_FORGOTTEN,    "met-unbound-forgotten", "what is known of a voter that no configuration binds yet is lost with a restart") \
    X(FOUNDING_UNCHECKED,       "founding-unchecked", "nodes that were emptied and founded again are taken for the cluster that they were") \
    X(DISOWNED_STANDS,          "disowned-stands", "who finds another directory under its own name stands and votes") \
    X(IDLE_WITHOUT_BACK_OFF,     "idle-without-back-off", "where nobody can hold a lease, elections go on as fast as ever") \
    X(IDLE_LEADER_STAYS,         "idle-leader-stays", "a leader that cannot hold a lease goes on leading without work") \
    X(CLAIMS_BRIEFLY,            "claims-briefly", "a leader claims with a lease that the next round cannot renew") \
    X(FAR_SUCCESSOR,             "far-successor", "a leader hands over to one that is too far away to hold a lease") \
    X(FAR_VOTER,                 "far-voter", "a voter is added with which nobody can hold a lease") \
    X(HANDS_OVER_BY_OWN_DISK,    "hands-over-by-own-disk", "a hand-over gives its target as much time as the leader's own disk would need") \
    X(PREFERS_FOR_EVER,          "prefers-for-ever", "a leader hands over for priority again and again in vain") \
    X(STANDS_WHILE_WRITING,      "stands-while-writing", "a node stands, or stands again, while its own state is on its way to disk") \
    X(NEW_TERM_EACH_TIME,        "new-term-each-time", "a candidate that nobody has refused begins a new term at each timeout") \
    X(PRE_VOTE_WHILE_VOTING,     "pre-vote-while-voting", "a voter whose vote is on its way to disk grants a pre-vote") \
    X(SILENT_WHILE_WRITING,      "silent-while-writing", "a follower says nothing to its leader while its disk writes its promise") \
    X(SNAPSHOT_AS_HEARTBEAT,     "snapshot-as-heartbeat", "a snapshot takes the place of a heartbeat, whose promise then waits for the disk") \
    X(NODE_SENDS_AT_ONCE,     "node-sends-at-once", "the node sends a message before the write is durable that it depends on") \
    X(NODE_FORGETS_HELD,      "node-forgets-held", "a message that waited for the disk is not sent when the write is durable") \
    X(NODE_SKIPS_AN_ENTRY,    "node-skips-an-entry", "of several entries that are committed together the first is not applied") \
    X(SNAPSHOT_BEYOND,        "snapshot-beyond", "a snapshot has entries from beyond the index that it is said to go up to") \
    X(SNAPSHOT_UNCHECKED,     "snapshot-unchecked", "a snapshot that lacks an entry is used, because nobody compares its digest") \
    X(SNAPSHOT_NOT_TAKEN,     "snapshot-not-taken", "a node that takes the leader's snapshot goes on with the table that it had") \
    X(SNAPSHOT_GOES_BACK,     "snapshot-goes-back", "a snapshot is used although the log begins after it already") \
    X(ORDER_WAITS_FOR_EVER,   "order-waits-for-ever", "an order is not answered when its time is up") \
    X(TRANSFER_TOLD_EARLY,    "transfer-told-early", "an order to hand over is told as done as soon as its node leads no more") \
    X(STEP_DOWN_TOLD_EARLY,   "step-down-told-early", "an order to step down is told as done while the work still stops") \
    X(MEMBERS_TOLD_EARLY,     "members-told-early", "a change of members is told as done before it is committed") \
    X(RECORD_OUTLIVES_MEMBER, "record-outlives-member", "a member is removed and its record stays, so it is added again") \
    X(DEMOTION_FORGOTTEN,     "demotion-forgotten", "a record that says learner leaves its member a voter") \
    X(ADDRESS_TAKEN_TWICE,    "address-taken-twice", "a member is added at the address of another") \
    X(OLD_FAILURE_COUNTS,     "old-failure-counts", "work of an earlier claim that failed ends the present one") \
    X(LEAVES_WHILE_WORKING,   "leaves-while-working", "a node that is asked to end does so while its work still runs") \
    X(UNCOMMITTED_UNBOUNDED,  "uncommitted-unbounded", "a leader takes proposals without limit while nothing is committed") \
    X(UNHEARD_KNOWS_ALL,      "unheard-knows-all", "a member that was never heard is taken for one that knows the newest rules of the table") \
    X(NEWER_VERSION_APPLIED,  "newer-version-applied", "a node goes on although the cluster uses rules of the table that it does not know") \
    X(VERSION_STAYS,          "version-stays", "the version of the table that a cluster uses first is the one that it uses for ever")

#define PLANTED_SESSION_MAP(X)                                                                                \
    X(KEPT_FROM_ANSWER,       "kept-from-answer", "a session's deadline is counted from the answer to a keep-alive") \
    X(SILENCE_FROM_BEFORE,    "silence-from-before", "a new leader counts silence from before it led")       \
    X(KEPT_WHILE_ENDING,      "kept-while-ending", "a keep-alive is answered although the end of its session is proposed") \
    X(KEPT_BEFORE_MARK,       "kept-before-mark", "a keep-alive is answered before a majority knows of it")    \
    X(MARK_HELD_BY_ONE,       "mark-held-by-one", "a mark that only the leader holds counts as held by a majority") \
    X(MARK_MISSED,            "mark-missed", "a voter that has missed marks goes on as if it had them")       \
    X(OWN_MARKS_SUFFICE,      "own-marks-suffice", "a new leader believes its own marks, whatever newer ones a voter holds") \
    X(RESTART_KNOWS,          "restart-knows", "a voter that has restarted, and forgotten its marks, says that there were none") \
    X(UNMARKED_UNSEEN,        "unmarked-unseen", "a new leader believes marks of before another led without them") \
    X(SILENCE_UNUSED,         "silence-unused", "a new leader gives every session a whole time to live, whatever it could know") \
    X(KEPT_WITHOUT_LEASE,     "kept-without-lease", "a leader whose lease has lapsed answers keep-alives")    \
    X(SESSION_WITHOUT_DRIFT,  "session-without-drift", "a session takes clock rates as equal, on both sides") \
    X(APPLIED_AGAIN,          "applied-again", "a request that is repeated is carried out again")             \
    X(FORMER_REQUEST,         "former-request", "a request of an expired session is carried out in one that was opened anew under its id") \
    X(CARRIED_TWICE,          "carried-twice", "a write without a session is carried to the next leader, too") \
    X(LOST_IS_REFUSED,        "lost-is-refused", "a write whose leader was lost is told as not done")         \
    X(CLAIM_OVER_RENEWAL,     "claim-over-renewal", "whether a lease has run out is counted from its grant")  \
    X(LEASE_HALVED,           "lease-halved", "those with sessions wait for half a lease only")               \
    X(WISH_ENDS_AT_ONCE,      "wish-ends-at-once", "a wish ends the mandate while its holder still works")    \
    X(WISH_FOR_EVER,          "wish-for-ever", "a wish that is not obeyed is never taken back")               \
    X(EPOCH_AGAIN,            "epoch-again", "after a resignation the next mandate has the same epoch")       \
    X(GRANTS_INELIGIBLE,      "grants-ineligible", "a mandate is granted to who does not want it")            \
    X(QUEUE_BY_ID,            "queue-by-id", "the queue of a group is by id, not by who came first")          \
    X(LEAVER_FIRST,           "leaver-first", "who resigns and stays is granted the mandate again at once")   \
    X(FLOOR_FORGOTTEN,        "floor-forgotten", "a candidate that knows of a higher epoch is granted a lower one") \
    X(FINISH_KEEPS_OPEN,      "finish-keeps-open", "work that is done for good leaves its group to the next candidate") \
    X(DIED_UNCHECKED,         "died-unchecked", "a session is ended as dead whatever process a client has seen die") \
    X(STRANGERS_DEATH,        "strangers-death", "a session is ended as dead on the word of a client that cannot have seen it") \
    X(PATIENCE_FORGOTTEN,     "patience-forgotten", "a patient candidate replaces a lost leader at once")      \
    X(ANYBODYS_SESSION,       "anybodys-session", "who knows the id of a session may use it, whoever opened it") \
    X(PACED_KEEP_ALIVE_UNASKED, "paced-keep-alive-unasked", "keep-alives of a paced client go on although its caller takes nothing") \
    X(REOPENED_IS_OURS,       "reopened-is-ours", "a client goes on with a session that was opened anew under the id of its own") \
    X(RENEWED_FOR_ANY,        "renewed-for-any", "a mandate goes on under a new epoch although who asks does not lead with the one that it names") \
    X(WITHDRAWS_ANOTHER,      "withdraws-another", "the late withdrawal of a candidate withdraws the next one of its session") \
    X(OLD_NOTE,               "old-note", "a note is taken from a former leader")                             \
    X(NOTE_OVER_NEWER,        "note-over-newer", "a note is written over a newer one than was read")          \
    X(WATCH_TOO_LATE,         "watch-too-late", "on the next connection a watch goes on one revision too late") \
    X(WATCH_REPEATS,          "watch-repeats", "on the next connection a watch tells again what was told")    \
    X(SNAPSHOT_FORGETS,       "snapshot-forgets", "a snapshot leaves out the newest outcome of sessions") \
    X(ANSWERED_HALFWAY,       "answered-halfway", "a request that opens a session and campaigns is answered when it is proposed") \
    X(OPENING_UNHEARD,        "opening-unheard", "a session that a campaign has opened counts as silent since the leader began") \
    X(OPENED_FROM_ANSWER,     "opened-from-answer", "the deadline of a session that was opened by a campaign is counted from the answer") \
    X(JOINED_FOR_EVER,        "joined-for-ever", "a campaign that goes with the opening of its session waits without a limit for a leader of the cluster") \
    X(LOGGED_AS_ASKED,        "logged-as-asked", "an operation that the leader has decided anew stands in the log as it was asked for") \
    X(ENDED_BY_ANOTHER,       "ended-by-another", "a session is told as gone to its owner, because another client asked for it as well") \
    X(REMOVED_WHILE_JOINED,   "removed-while-joined", "a group is removed although somebody leads it, or takes part") \
    X(REMOVED_THOUGH_NEWER,   "removed-though-newer", "a group is removed although it has changed since it was looked at") \
    X(REMOVED_WHILE_RENEWED,  "removed-while-renewed", "how long nobody leads a group is counted from the grant of its lease") \
    X(ENDING_FORGOTTEN,       "ending-forgotten", "a session that has ended keeps the groups that it did not leave at once") \
    X(BALANCE_IGNORED,        "balance-ignored", "a vacant group of the policy balanced goes to who came first") \
    X(REMOVED_EARLY,          "removed-early", "an idle group is removed after a part of the retention time") \
    X(REMOVED_WITH_NOTES,     "removed-with-notes", "an idle group is removed after the retention time although it has notes") \
    X(REMOVAL_FORGETS_EPOCH,  "removal-forgets-epoch", "the epochs of a group that is made anew begin anew") \
    X(NODE_STAYS_OPEN,        "node-stays-open", "the front end goes on when the work must stop") \
    X(NODE_DROPS_OWN_ANSWERS, "node-drops-own-answers", "clients of the leader's own node get no answer") \
    X(NODE_FORGETS_CLIENTS,   "node-forgets-clients", "the answer that another leader gave is not told to the client") \
    X(NODE_FORGETS_LEADER,    "node-forgets-leader", "the forwarder is not told that another node leads") \
    X(NODE_PROPOSES_TWICE,    "node-proposes-twice", "a batch of commands that the log has taken is taken for refused")
/* clang-format on */

/* Runs of candidates catch the bugs of the candidate, runs of nodes those of the cluster, and runs of clients
 * those of sessions and the table. */
#define PLANTED_MAP(X) PLANTED_CANDIDATE_MAP(X) PLANTED_RAFT_MAP(X) PLANTED_SESSION_MAP(X)

#define PLANTED_ENUM(name, text, what) PLANTED_BUG_##name,
enum planted_bug { PLANTED_BUG_NONE, PLANTED_MAP(PLANTED_ENUM) PLANTED_BUG_COUNT };
#undef PLANTED_ENUM

#ifdef GAVEL_PLANTED
extern enum planted_bug planted_bug; /* defined by the simulator; set once before a run */
#define PLANTED(name) (planted_bug == PLANTED_BUG_##name)
#else
#define PLANTED(name) 0
#endif

#endif
