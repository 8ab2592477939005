/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The driver `mysql`: a table of MariaDB or MySQL as a store.
 *
 *     caller ── run() ──► calls ── waves of statements, one round trip each ──► server
 *                           ▲                                                      │
 *                           └──────────── one answer per call ◄────────────────────┘
 *
 * Every request becomes a call, and every call a script: the statements that
 * carry it out, the last of which reads the row back. A wave consists of the
 * scripts of all calls that may go now, sent in one piece; most calls are
 * answered by their first one. run.c has the waves, script.c and registry.c the
 * scripts, mandate.c the meaning of their answers, text.c fills in the values,
 * link.c has the connection and its deadlines.
 *
 * Three tables (schema.c): `locks` may be shared with programs that know only
 * lock_key, owner_id and expires_at. `locks_epochs` survives when such programs
 * delete rows, so that epochs never restart. `locks_candidates` has the
 * registrations.
 */
#ifndef STORE_MYSQL_INTERNAL_H
#define STORE_MYSQL_INTERNAL_H

#include "store/driver.h"
#include "store/mysql/schema.h"
#include "store/rules.h"
#include "store/text_buffer.h"
#include "store/url.h"

#include <mysql.h>
#include <sys/types.h>

#define MYSQL_ROW_FORMAT 1 /* of what this gavel writes */

/*
 * A time that is further ahead than possible by this many microseconds was
 * written before the clock was set back.
 */
#define MYSQL_AHEAD_US 1000000

/* How long to wait if the expiry is not a date and the length of the previous lease is unknown. */
#define MYSQL_LEASE_UNKNOWN_MS 60000

/*
 * What is left of the lease of a row, in SQL. 0000-00-00 and NULL are not
 * dates; the lease then counts from when that was first seen.
 */
#define MYSQL_HAS_END "COALESCE(UNIX_TIMESTAMP(expires_at), 0) > 0"
#define MYSQL_LEFT_US                                                                                        \
    "TIMESTAMPDIFF(MICROSECOND, NOW(6), IF(" MYSQL_HAS_END                                                   \
    ", expires_at, renewed + INTERVAL lease_ms * 1000 MICROSECOND))"

/* What the environment said when the store was opened; owned, NULL: not set. */
struct mysql_environment {
    char *user;
    char *password;
    char *options;
};

/* Where the server is and who we are there; target.c. */
struct mysql_target {
    struct url url;   /* owned: what the others point into */
    const char *host; /* NULL: by the Unix socket */
    uint16_t port;
    const char *socket; /* NULL: by TCP */
    const char *database;
    const char *table;
    const char *options; /* a file like my.cnf; NULL: none */
    bool has_tls;
    const char *ca; /* files; NULL: none */
    const char *cert;
    const char *key;
    struct mysql_environment environment;
};

/* What went wrong with a statement or a connection. */
struct mysql_trouble {
    unsigned code;  /* of the server or of the library; 0: nothing */
    char text[200]; /* in its words */
    bool is_making; /* it occurred while creating tables or columns */
};

/* The connection. */
struct mysql_link {
    MYSQL *mysql; /* NULL: there is none */
    struct mysql_trouble trouble;
    bool is_mariadb;
    bool is_late; /* the last wait ended at its deadline */
};

struct mysql_name;

struct mysql_store {
    struct store store;
    pid_t pid; /* of the process that opened it */
    struct process_id self;
    struct mysql_target target;
    char *url;       /* as it was given */
    char shown[100]; /* for messages: mysql://host:3306/database */
    struct mysql_link link;
    struct mysql_name *name;         /* a look-up of the host that is under way; NULL: none */
    char pruned[NAME_MAX_BYTES + 1]; /* the group whose old registrations were removed last */
    gavel_ns pruned_at;
};

/* What a call does next. */
enum mysql_stage {
    MYSQL_STAGE_FIRST, /* what was asked */
    /* a program that knows three columns has written: turn it into a record, read it again */
    MYSQL_STAGE_ABSORB,
    MYSQL_STAGE_READ,     /* the answer was lost: find out the outcome */
    MYSQL_STAGE_REGISTER, /* a heartbeat that found no registration of its own */
};

struct mysql_call {
    const struct store_request *request;
    struct store_reply *reply;
    enum mysql_stage stage;
    bool is_answered;
    bool is_applied;   /* its write has changed a row */
    bool is_lost;      /* it was sent before and not answered */
    int tries;         /* scripts that ended in a transient error */
    int absorbs;       /* how often a foreign row was met */
    bool prunes;       /* HEARTBEAT: also removes old registrations */
    uint64_t replaces; /* HEARTBEAT: the instance that it may replace */
};

/* What the statements of a call do, and which of them is the write that counts. */
struct mysql_script {
    const char *statements[7]; /* ending with NULL; words in braces are filled in */
    int write;                 /* -1: none */
};

/* What came back for one script. */
struct mysql_answer {
    uint64_t changed; /* rows changed by the write */
    MYSQL_RES *rows;  /* of the last statement; NULL: it returned none */
};

/* target.c: reads the URL and the environment; an option file is read again for each connection. */
struct mysql_identity {
    char user[128]; /* "": the library's default */
    char password[256];
};
GAVEL_CHECKED enum gavel_status mysql_target_parse(const char *rest, struct mysql_target *ret_target,
                                                   struct gavel_error *error);
GAVEL_CHECKED enum gavel_status mysql_target_identity(const struct mysql_target *target,
                                                      struct mysql_identity *ret_identity,
                                                      struct gavel_error *error);
/* Frees only the secrets: for when another thread still uses the URL. */
void mysql_target_forget(struct mysql_target *target);
void mysql_target_done(struct mysql_target *target);

/* name.c: finds out by `until` whether the host has an address. */
GAVEL_CHECKED enum gavel_status mysql_name_find(struct mysql_store *mysql, gavel_ns until,
                                                struct gavel_error *error);
/* False: a thread that cannot be stopped still uses the name of the host; do not free it. */
bool mysql_name_done(struct mysql_store *mysql);

/* text.c */
void mysql_text_fill(struct text_buffer *text, const struct mysql_store *mysql, const struct mysql_call *call,
                     const char *statement);

/* link.c. All end by `until`; after that, and after any loss, the connection is gone. */
GAVEL_CHECKED enum gavel_status mysql_link_open(struct mysql_store *mysql, gavel_ns until,
                                                struct gavel_error *error);
/* Whether it is up, as far as can be told without asking the server. */
bool mysql_link_is_up(struct mysql_store *mysql);
/* Sends statements, then reads their results one by one; false: link.trouble says why. */
bool mysql_link_send(struct mysql_store *mysql, const char *sql, size_t length, gavel_ns until);
bool mysql_link_take(struct mysql_store *mysql, bool is_first, gavel_ns until, uint64_t *ret_changed,
                     MYSQL_RES **ret_rows);
/* Both, for statements whose results do not matter, except for the rows of the last. */
bool mysql_link_do(struct mysql_store *mysql, const char *sql, gavel_ns until, MYSQL_RES **ret_rows);
/* Closes it without telling the server and without waiting. */
void mysql_link_drop(struct mysql_store *mysql);
/* Closes a working connection in order. */
void mysql_link_close(struct mysql_store *mysql);

/* session.c: makes a new connection independent of the server's settings. */
GAVEL_CHECKED enum gavel_status mysql_session_begin(struct mysql_store *mysql, gavel_ns until,
                                                    struct gavel_error *error);

/*
 * schema.c: the columns of `locks`. The first MYSQL_COLUMNS_SHARED are those
 * that other programs know; the rest have defaults.
 */
#define MYSQL_COLUMNS_SHARED 3
#define MYSQL_COLUMNS 20
enum mysql_table { MYSQL_TABLE_LOCKS, MYSQL_TABLE_EPOCHS, MYSQL_TABLE_CANDIDATES, MYSQL_TABLES };
extern const char *const mysql_table_suffixes[MYSQL_TABLES]; /* "", "_epochs", "_candidates" */
bool mysql_schema_is_name(const char *table);                /* the name of a table, before any suffix */
const char *mysql_schema_column(int column);                 /* its name */
void mysql_schema_create(struct text_buffer *text, enum mysql_table which, const char *table,
                         bool is_mariadb);
/* Adds the missing columns to `locks`. */
void mysql_schema_alter(struct text_buffer *text, const char *table, bool is_mariadb,
                        const bool is_there[MYSQL_COLUMNS]);

const char *mysql_schema_collation(bool is_mariadb);
/*
 * Parts of an ALTER TABLE: changes the shared columns to our form, with names
 * of that width; < 0: not that one.
 */
void mysql_schema_modify(struct text_buffer *text, const char *comma, bool is_mariadb,
                         const int widths[MYSQL_COLUMNS_SHARED]);

/* table.c: what is there. */
struct mysql_survey {
    bool has_table[MYSQL_TABLES];
    bool is_unsafe[MYSQL_TABLES]; /* its engine lacks transactions */
    char engine[40];              /* of such a table; "": there is none */
    bool has_column[MYSQL_COLUMNS];
    bool is_key;     /* lock_key is in the primary key */
    int key_columns; /* columns in the primary key */
    char expiry[40]; /* the type of expires_at */
    /*
     * Of the names: how many characters fit (0: a type of bytes, which is left
     * alone), and whether they are compared as we do.
     */
    int widths[MYSQL_COLUMNS_SHARED];
    bool is_exact[MYSQL_COLUMNS_SHARED];
};
GAVEL_CHECKED bool mysql_survey_take(struct mysql_store *mysql, gavel_ns until,
                                     struct mysql_survey *ret_survey);
/* Whether expires_at has our type. */
bool mysql_survey_has_expiry(const struct mysql_survey *survey);

/* migrate.c: see store_migrate(). */
GAVEL_CHECKED enum gavel_status mysql_migrate(struct store *store, char **ret_told,
                                              struct gavel_error *error);

/* table.c: creates the tables or adds what they lack; refuses those that cannot keep the promise. */
GAVEL_CHECKED enum gavel_status mysql_table_prepare(struct mysql_store *mysql, gavel_ns until,
                                                    struct gavel_error *error);

/* rights.c: whether we may do to the tables what a candidate does; they must exist. */
GAVEL_CHECKED enum gavel_status mysql_rights_try(struct mysql_store *mysql, gavel_ns until,
                                                 struct gavel_error *error);

/* trouble.c: what an error means, in words and as a status, which it also returns. */
enum gavel_status mysql_trouble_explain(const struct mysql_store *mysql, struct gavel_error *error);
/* Nothing was changed, and retrying at once may help. */
bool mysql_trouble_passes(unsigned code);
/* The connection is gone, or must be assumed to be. */
bool mysql_trouble_is_loss(unsigned code);
bool mysql_trouble_is_denial(unsigned code); /* reading may still be allowed */
bool mysql_trouble_is_missing_table(unsigned code);
bool mysql_trouble_is_missing_column(unsigned code);

/*
 * script.c: the statements for mandates. All but a listing end with a read of
 * the row, which returns these.
 */
enum mysql_column {
    MYSQL_COLUMN_KEY,
    MYSQL_COLUMN_FORMAT,
    MYSQL_COLUMN_HOLDER,
    MYSQL_COLUMN_LEFT_US,
    MYSQL_COLUMN_IS_FOREIGN,
    MYSQL_COLUMN_EPOCH,
    MYSQL_COLUMN_VERSION,
    MYSQL_COLUMN_NONCE,
    MYSQL_COLUMN_LEASE_MS,
    MYSQL_COLUMN_HELD,
    MYSQL_COLUMN_SINCE,
    MYSQL_COLUMN_RENEWED,
    MYSQL_COLUMN_ADDRESS,
    MYSQL_COLUMN_PROCESS,
    MYSQL_COLUMN_SUCCESSOR,
    MYSQL_COLUMN_WISH_EPOCH,
    MYSQL_COLUMN_WISH_FORCE,
    MYSQL_COLUMN_WISH_SUCCESSOR,
};
const struct mysql_script *mysql_mandate_script(const struct mysql_call *call);

/* mandate.c, registry.c: what an answer means; and the statements for registrations. */
void mysql_mandate_conclude(struct mysql_store *mysql, struct mysql_call *call,
                            const struct mysql_answer *answer);
const struct mysql_script *mysql_registry_script(const struct mysql_call *call);
void mysql_registry_conclude(struct mysql_store *mysql, struct mysql_call *call,
                             const struct mysql_answer *answer);

/* run.c */
void mysql_run(struct store *store, const struct store_request *requests, struct store_reply *replies,
               size_t count);
void mysql_wait(struct store *store, const char *group, uint64_t version, gavel_ns until);

/* words.c: columns of a result. NULL reads as 0 and "". */
uint64_t mysql_word_u64(MYSQL_ROW row, int column);
int64_t mysql_word_i64(MYSQL_ROW row, int column);
void mysql_word_text(MYSQL_ROW row, int column, char *to, size_t size);
void mysql_word_process(MYSQL_ROW row, int column, const struct process_id *self,
                        struct process_id *ret_process);

#endif
