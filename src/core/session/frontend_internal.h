/* SPDX-License-Identifier: Apache-2.0 */

/* What the files of the frontend share. */
#ifndef CORE_SESSION_FRONTEND_INTERNAL_H
#define CORE_SESSION_FRONTEND_INTERNAL_H

#include "core/session/frontend.h"

#define FRONTEND_MESSAGE_MAX 320
/* Instead of the instant of a beat: its leaving is proposed, so the next beat goes to the log, behind it. */
#define FRONTEND_LEAVING (-1)

/* When something is done: on the clock of the node, and for people. */
struct frontend_moment {
    gavel_ns now;
    int64_t wall_ms;
};

/* What the leader says to one operation, before the log. */
struct frontend_verdict {
    enum gavel_status status; /* not OK: it is refused */
    uint64_t other_instance;  /* ERR_ID_IN_USE of Register and Campaign */
    uint64_t other_beats;
    char *message; /* owned; NULL: none, or there was no memory for it */
};

struct frontend_op;

/* A request as it was decoded, for as long as one of its commands waits. */
struct frontend_lent {
    unsigned users;
    Gavel__ClientFrame *frame;
    struct frontend_op *ops; /* those that were decided anew */
};

/* Operations for the log. */
struct frontend_ops {
    Gavel__Op *const *list;
    size_t count;
    /* As whoever asked has packed them, one for each; bytes NULL: it does not stand in the log like that.
     * NULL: of none it is known. Borrowed. */
    const struct table_packed *packed;
    struct frontend_lent *lent; /* what they are in; NULL: they are copied */
    bool is_cleaning;           /* the leader's own, but in nobody's hurry: behind all that waits */
};

/* One command on its way through the log. */
struct frontend_waiting {
    TAILQ_ENTRY(frontend_waiting) in_list;
    RB_ENTRY(frontend_waiting) by_request;
    bool has_asker;    /* somebody waits for the outcome */
    bool is_in_flight; /* counted in flight_ops */
    bool is_ours;      /* the leader's own: nobody has asked for it */
    bool is_cleaning;  /* counted in cleanings */
    struct frontend_ticket ticket;
    uint64_t tag; /* of the Request */
    uint64_t session;
    uint64_t id;
    uint64_t number; /* of this front end's, growing */
    uint64_t index;  /* 0: not proposed yet */
    uint64_t term;
    int64_t wall_ms;
    uint64_t after; /* the mark that the answer waits for; 0: none */
    uint8_t *bytes; /* of the command; NULL once it is proposed */
    size_t size;
    Gavel__Command *command;           /* as it stands in the log */
    struct frontend_lent *lent;        /* what its operations are in; NULL: they are its own */
    struct frontend_verdict *verdicts; /* one for each operation; NULL: none is refused here */

    /* Of a request that opens its session and campaigns: two commands, one right behind the other. */
    struct frontend_waiting *campaigns; /* of the opening: the other command */
    struct frontend_waiting *opening;   /* of the other: the opening, until it was applied */
    bool has_opening;                   /* of the other: its request has one operation more, the first */
    bool is_opened;                     /* what came of the opening is known: */
    struct table_result opened;
};

/* ---- frontend.c ---- */

/*
 * Puts a command in line for the next batch: verdicts are handed over, also on failure.
 * ERR_NO_MEMORY, ERR_INVALID (too large), ERR_STORE_UNAVAILABLE (too many are under way).
 */
GAVEL_CHECKED enum gavel_status frontend_draft(struct frontend *frontend,
                                               const struct frontend_moment *moment,
                                               const Gavel__Request *request, const struct frontend_ops *ops,
                                               struct frontend_verdict *verdicts,
                                               struct frontend_waiting **ret_waiting);
/* Puts the opening of its session right before a command that is in line. ERR_NO_MEMORY: nothing is in line
 * any more. */
GAVEL_CHECKED enum gavel_status frontend_draft_opening(struct frontend *frontend,
                                                       const struct frontend_moment *moment,
                                                       const struct frontend_ops *op,
                                                       struct frontend_waiting *waiting);
struct frontend_waiting *frontend_find_request(struct frontend *frontend, uint64_t session, uint64_t id);
void frontend_verdicts_free(struct frontend_verdict *verdicts, size_t count); /* safe on NULL */
void frontend_lent_release(struct frontend_lent *lent); /* one user less; safe on NULL */

/* ---- frontend_request.c ---- */

void frontend_request(struct frontend *frontend, const struct frontend_moment *moment,
                      struct frontend_ticket ticket, Gavel__ClientFrame **frame, struct table_packed packed);

/* ---- frontend_decide.c: what only the leader can decide ---- */

/* A copy of an operation that may be written to, without what it points to. */
union frontend_body {
    Gavel__Claim claim;
    Gavel__Release release;
    Gavel__Wish wish;
    Gavel__Register registration;
    Gavel__Campaign campaign;
    Gavel__Withdraw withdraw;
    Gavel__CloseSession close;
    Gavel__RemoveGroup remove;
    Gavel__Refused refused;
};
struct frontend_op {
    Gavel__Op op;
    union frontend_body body;
};

/* In whose name an operation is asked for. */
struct frontend_asker {
    uint64_t session; /* 0: none */
    bool is_opening;  /* by the same request: whether an id is in use is left to the table */
    size_t *parts;    /* candidates and notes that go with the groups which the same request removes */
};

/*
 * Decides one operation: *ret_op is what shall stand in the log, *ret_verdict whether it is refused. Borrows
 * from `op`. Whether it stands there as it was asked for.
 */
bool frontend_decide(struct frontend *frontend, gavel_ns now, const Gavel__Op *op,
                     struct frontend_asker asker, struct frontend_op *ret_op,
                     struct frontend_verdict *ret_verdict);

/* Makes silent candidates leave: before one registers, those of its group; before one campaigns, a
 * registration under its id that no longer beats. */
void frontend_forget(struct frontend *frontend, const struct frontend_moment *moment, const Gavel__Op *op);

/* ---- frontend_closing.c: what is proposed, and not applied yet ---- */

/* Its end, or a claim over it, is proposed, and the outcome is not known. */
bool frontend_is_closing(const struct frontend *frontend, const struct heard_closing *closing);
bool frontend_is_closing_session(const struct frontend *frontend, const struct table_session *session);
bool frontend_is_closing_group(const struct frontend *frontend, const struct table_group *group);
/* Whether that very end, of a session or a lease mandate, is under way already, or another one. */
bool frontend_is_under_way(const struct frontend *frontend, const Gavel__Op *op);
/* An operation of a command that goes to the log, and its outcome. */
void frontend_closing_begin(struct frontend *frontend, const Gavel__Op *op, uint64_t number);
void frontend_closing_end(struct frontend *frontend, const Gavel__Op *op, uint64_t term, uint64_t number);

/* ---- frontend_renew.c: what was heard of whom ---- */

gavel_ns frontend_heard_at(const struct frontend *frontend, const struct table_session *session);
gavel_ns frontend_beat_at(const struct frontend *frontend, const struct table_candidate *candidate);
gavel_ns frontend_granted_at(const struct frontend *frontend, const struct table_group *group);
/* When a session, or a lease mandate, has run out. */
gavel_ns frontend_session_ends_at(const struct frontend *frontend, const struct table_session *session);
gavel_ns frontend_lease_ends_at(const struct frontend *frontend, const struct table_group *group);

bool frontend_is_same_process(const struct table_process *process, const Gavel__Process *said);
/* When anything in a group last changed, as far as this node knows; never before it did. */
gavel_ns frontend_touched_at(const struct frontend *frontend, const struct table_group *group);

/* The session was heard now: the answer that is being made waits for the mark. False: no memory for that. */
bool frontend_note_heard(struct frontend *frontend, gavel_ns now, const struct table_session *session,
                         struct heard_session *heard);

/* Heartbeats of a candidate, as it says. */
uint64_t frontend_beats(const struct frontend *frontend, const struct table_candidate *candidate);

/* Whether the operation is a renewal or a heartbeat that changes nothing; if so frontend_renew() does it.
 * That is false if there is no memory. */
bool frontend_is_volatile(const struct frontend *frontend, const Gavel__Op *op);
GAVEL_CHECKED bool frontend_renew(struct frontend *frontend, const struct frontend_moment *moment,
                                  const Gavel__Op *op);
/* The operation goes to the log; it was applied: what it tells of somebody's life counts from now. False: no
 * memory. What was just applied then counts from when it was applied all the same. */
void frontend_hear_coming(struct frontend *frontend, const struct frontend_moment *moment,
                          const Gavel__Op *op);
bool frontend_hear(struct frontend *frontend, const struct frontend_moment *moment, const Gavel__Op *op,
                   enum gavel_status status);
/* The same when the outcome is told again; the request is the newest of its session. */
GAVEL_CHECKED bool frontend_hear_again(struct frontend *frontend, const struct frontend_moment *moment,
                                       const Gavel__Op *op, enum gavel_status status);
/* Whether somebody counts a deadline from the answer. */
bool frontend_extends(const Gavel__Op *op);

/* ---- frontend_keep.c ---- */

void frontend_keep_alive(struct frontend *frontend, gavel_ns now, struct frontend_ticket ticket,
                         const Gavel__KeepAlive *keep_alive);

/* ---- frontend_reply.c ---- */

/* Packs the answer and puts it in line; without memory it is lost. */
void frontend_reply_frame(struct frontend *frontend, struct frontend_ticket ticket,
                          const Gavel__ClientFrame *frame);

/* What waits for a mark is refused: there will be none. */
void frontend_refuse_held(struct frontend *frontend);

/* A Reply without results. */
void frontend_reply_status(struct frontend *frontend, struct frontend_ticket ticket, uint64_t tag,
                           enum gavel_status status, const char *message);

/*
 * A Reply with results: `ops` as they were asked for or stand in the log, in the name of `session`; verdicts
 * NULL: none.
 * ERR_NO_MEMORY: nothing was said.
 */
GAVEL_CHECKED enum gavel_status frontend_reply_results(struct frontend *frontend, gavel_ns now,
                                                       struct frontend_ticket ticket, uint64_t tag,
                                                       uint64_t session, Gavel__Op *const *ops,
                                                       const struct table_result *results, size_t count,
                                                       const struct frontend_verdict *verdicts);

/* The same for a request that opens its session and campaigns: what came of both its commands. */
GAVEL_CHECKED enum gavel_status frontend_reply_opening(struct frontend *frontend, gavel_ns now,
                                                       const struct frontend_waiting *waiting,
                                                       enum gavel_status status,
                                                       const struct table_result *results, size_t count);

/* A sentence on the heap; NULL: no memory. */
char *frontend_sentence(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- frontend_ask.c ---- */

void frontend_ask(struct frontend *frontend, gavel_ns now, struct frontend_ticket ticket,
                  const Gavel__Ask *ask);
/* Whether a client may use a session (NULL: none); a node of before 0.7.0 does not tell which client asks. */
bool frontend_may_use(const struct table_session *session, bool has_principal, uint64_t principal);
/* What the client that asks has said itself; zeroes: nothing. */
struct frontend_known {
    uint64_t session;
    uint64_t nonce_high;
    uint64_t nonce_low;
};
/* table_group_show() and what only the leader knows; `frontend` NULL: that is not known. No client is shown
 * the id of a session, or a nonce, that it does not know already: with one it could end what it stands for.
 * (The process of a leader is shown: who may say that it died, Died decides by who asks.) */
void frontend_show_group(const struct frontend *frontend, const struct table_group *group, gavel_ns now,
                         struct frontend_known known, Gavel__Group *ret_group);

/* ---- expiry.c ---- */

void expiry_open(struct frontend *frontend, gavel_ns now);
/* On every occasion: a leader that had no lease for a while has not heard anybody meanwhile. */
void expiry_notice(struct frontend *frontend, gavel_ns now, bool is_working);
/* A session was opened or heard: it may end earlier than any other. */
void expiry_session_ends(struct frontend *frontend, gavel_ns at);
/* Something was applied: sessions may have groups left. */
void expiry_sessions_are_ending(struct frontend *frontend, gavel_ns now);
/* Likewise: somebody may lead another number of groups. */
void balance_changed(struct frontend *frontend, gavel_ns now);

#endif
