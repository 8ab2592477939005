/* SPDX-License-Identifier: Apache-2.0 */

/* What the files of the desk share. */
#ifndef CORE_SESSION_DESK_INTERNAL_H
#define CORE_SESSION_DESK_INTERNAL_H

#include "core/session/desk.h"

#define DESK_MESSAGE_MAX 320
/* Instead of the instant of a beat: its leaving is proposed, so the next beat goes to the log, behind it. */
#define DESK_LEAVING (-1)

/* When something is done: on the clock of the node, and for people. */
struct desk_moment {
    gavel_ns now;
    int64_t wall_ms;
};

/* What the leader says to one operation, before the log. */
struct desk_verdict {
    enum gavel_status status; /* not OK: it is refused */
    uint64_t other_instance;  /* ERR_ID_IN_USE of Register */
    uint64_t other_beats;
    char *message; /* owned; NULL: none, or there was no memory for it */
};

/* One command on its way through the log. */
struct desk_waiting {
    TAILQ_ENTRY(desk_waiting) in_list;
    RB_ENTRY(desk_waiting) by_request;
    bool has_asker;    /* somebody waits for the outcome */
    bool is_in_flight; /* counted in flight_ops */
    bool is_ours;      /* the leader's own: nobody has asked for it */
    struct desk_ticket ticket;
    uint64_t tag; /* of the Request */
    uint64_t session;
    uint64_t id;
    uint64_t index; /* 0: not proposed yet */
    uint64_t term;
    int64_t wall_ms;
    uint8_t *bytes; /* of the command; NULL once it is proposed */
    size_t size;
    Gavel__Command *command;       /* as it stands in the log */
    struct desk_verdict *verdicts; /* one for each operation; NULL: none is refused here */
};

/* ---- desk.c ---- */

/*
 * Puts a command in line for the next flush: `ops` are borrowed, verdicts are handed over, also on failure.
 * ERR_NO_MEMORY, ERR_INVALID (too large), ERR_STORE_UNAVAILABLE (too many are under way).
 */
GAVEL_CHECKED enum gavel_status desk_draft(struct desk *desk, const struct desk_moment *moment,
                                           const Gavel__Request *request, Gavel__Op *const *ops, size_t count,
                                           struct desk_verdict *verdicts, struct desk_waiting **ret_waiting);
struct desk_waiting *desk_find_request(struct desk *desk, uint64_t session, uint64_t id);
void desk_verdicts_free(struct desk_verdict *verdicts, size_t count); /* safe on NULL */

/* ---- desk_request.c ---- */

void desk_request(struct desk *desk, const struct desk_moment *moment, struct desk_ticket ticket,
                  const Gavel__Request *request);

/* ---- desk_decide.c: what only the leader can decide ---- */

/* A copy of an operation that may be written to, without what it points to. */
union desk_body {
    Gavel__Claim claim;
    Gavel__Release release;
    Gavel__Wish wish;
    Gavel__Register registration;
    Gavel__Refused refused;
};
struct desk_op {
    Gavel__Op op;
    union desk_body body;
};

/*
 * Decides one operation: *ret_op is what shall stand in the log, *ret_verdict whether it is refused. Borrows
 * from `op`.
 */
void desk_decide(struct desk *desk, gavel_ns now, const Gavel__Op *op, bool has_session,
                 struct desk_op *ret_op, struct desk_verdict *ret_verdict);

/* Before a candidate registers: those of its group that were silent for long leave. */
void desk_forget_silent(struct desk *desk, const struct desk_moment *moment,
                        const Gavel__Register *registration);

/* ---- desk_renew.c: what was heard of whom ---- */

gavel_ns desk_heard_at(const struct desk *desk, const struct table_session *session);
gavel_ns desk_beat_at(const struct desk *desk, const struct table_candidate *candidate);
gavel_ns desk_granted_at(const struct desk *desk, const struct table_group *group);
/* When a session, or a lease mandate, has run out. */
gavel_ns desk_session_ends_at(const struct desk *desk, const struct table_session *session);
gavel_ns desk_lease_ends_at(const struct desk *desk, const struct table_group *group);

/* Its end, or a claim over it, is proposed, and the outcome is not known. */
bool desk_is_closing_session(const struct desk *desk, const struct table_session *session);
bool desk_is_closing_group(const struct desk *desk, const struct table_group *group);
/* Whether that very end, of a session or a lease mandate, is under way already, or another one. */
bool desk_is_under_way(const struct desk *desk, const Gavel__Op *op);
/* An operation of a command that goes to the log, and its outcome. */
void desk_closing_begin(struct desk *desk, const Gavel__Op *op);
void desk_closing_end(struct desk *desk, const Gavel__Op *op, uint64_t term);

/* Whether the operation is a renewal or a heartbeat that changes nothing; if so desk_renew() does it. */
bool desk_is_volatile(const struct desk *desk, const Gavel__Op *op);
void desk_renew(struct desk *desk, const struct desk_moment *moment, const Gavel__Op *op);
/* The operation goes to the log; it was applied: what it tells of somebody's life counts from now. */
void desk_hear_coming(struct desk *desk, const struct desk_moment *moment, const Gavel__Op *op);
void desk_hear(struct desk *desk, const struct desk_moment *moment, const Gavel__Op *op,
               enum gavel_status status);
/* The same when the outcome is told again; the request is the newest of its session. */
void desk_hear_again(struct desk *desk, const struct desk_moment *moment, const Gavel__Op *op,
                     enum gavel_status status);
/* Whether somebody counts a deadline from the answer. */
bool desk_extends(const Gavel__Op *op);

void desk_keep_alive(struct desk *desk, gavel_ns now, struct desk_ticket ticket,
                     const Gavel__KeepAlive *keep_alive);

/* ---- desk_reply.c ---- */

/* A Reply without results. */
void desk_reply_status(struct desk *desk, struct desk_ticket ticket, uint64_t tag, enum gavel_status status,
                       const char *message);

/*
 * A Reply with results: `ops` as they were asked for or stand in the log; verdicts NULL: none.
 * ERR_NO_MEMORY: nothing was said.
 */
GAVEL_CHECKED enum gavel_status desk_reply_results(struct desk *desk, gavel_ns now, struct desk_ticket ticket,
                                                   uint64_t tag, Gavel__Op *const *ops,
                                                   const struct table_result *results, size_t count,
                                                   const struct desk_verdict *verdicts);

/* A sentence on the heap; NULL: no memory. */
char *desk_sentence(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- desk_ask.c ---- */

void desk_ask(struct desk *desk, gavel_ns now, struct desk_ticket ticket, const Gavel__Ask *ask);
/* table_group_show() and what only the leader knows. `desk` NULL: it is not known. */
/* Whether a session (NULL: none) is for whoever asks; a node of before 0.7.0 does not tell who that is. */
bool desk_may_use(const struct table_session *session, bool has_principal, uint64_t principal);
/* What whoever asks has said itself; zeroes: nothing. */
struct desk_known {
    uint64_t session;
    uint64_t nonce_high;
    uint64_t nonce_low;
};
/* Nobody is shown the id of a session, nor a nonce that it does not know already: whoever has one can end
 * what it stands for. */
void desk_show_group(const struct desk *desk, const struct table_group *group, gavel_ns now,
                     struct desk_known known, Gavel__Group *ret_group);

/* ---- keeper.c ---- */

void keeper_open(struct desk *desk, gavel_ns now);
/* On every occasion: a leader that had no lease for a while has not heard anybody meanwhile. */
void keeper_notice(struct desk *desk, gavel_ns now, bool is_working);
/* A session was opened or heard: it may end earlier than any other. */
void keeper_session_ends(struct desk *desk, gavel_ns at);

#endif
