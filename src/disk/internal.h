/* SPDX-License-Identifier: Apache-2.0 */

/* What the files of this directory share. */
#ifndef DISK_INTERNAL_H
#define DISK_INTERNAL_H

#include "disk/record.h"

#include <lmdb.h>

#include <limits.h>
#include <sys/types.h>

/* What the database holds, as of the last committed transaction; the snapshot without its bytes. */
struct disk_contents {
    struct raft_state state;
    struct raft_snapshot snapshot;
    raft_index last; /* of the log; the snapshot's index if it is empty */
    uint64_t txn;    /* the newest transaction: it only grows */
    /* stage.c: which slot has the pieces of the snapshot, and what is left to remove */
    unsigned slot;
    uint32_t spare;         /* pieces in the other slot */
    raft_index stale_first; /* entries that the snapshot stands for; 0: none */
    raft_index stale_last;
    uint32_t version; /* of the format, by the record 'a' */
};

struct disk {
    char data_dir[PATH_MAX];
    struct disk_identity identity;
    uint64_t seed;                 /* of the checksums */
    struct record_file_id file_id; /* as in the record; empty in format 1 */
    bool accepts_copy;
    size_t bytes_max;
    int lock_fd;
    MDB_env *env;     /* NULL as long as the directory is new */
    MDB_dbi dbi;      /* the one database without a name */
    int fd;           /* LMDB's own, of data.mdb */
    size_t page_size; /* LMDB's */
    off_t file_bytes; /* the part of data.mdb that certainly has room on the disk */
    struct disk_contents contents;
    struct raft_config config; /* the newest of log and snapshot; only until the node begins */
    size_t stage_size;         /* of the snapshot that is being staged; 0 none … */
    uint32_t staged;           /* … and how many of its pieces are there */
    bool is_begun;
    /* A write failed in a way that leaves the contents of the disk unknown: nothing more is written. */
    bool is_failed;
};

/* A write transaction. `contents` is what it turns the disk's into. */
struct disk_txn {
    struct disk *disk;
    MDB_txn *txn;
    struct disk_contents contents;
};

#define DISK_FILE "data.mdb"
#define DISK_NEW_FILE "data.new"
#define DISK_LOCK_FILE "lock"
#define DISK_PATH_BYTES (PATH_MAX + 16)

/* The flags of every environment: our own lock keeps others out (lock.c), so LMDB needs none. */
#define DISK_ENV_FLAGS (MDB_NOSUBDIR | MDB_NOTLS | MDB_NOLOCK | MDB_NORDAHEAD)

/* error.c: translates errors of LMDB and errno. `what` was being done. */
enum gavel_status disk_status_of(int code);
GAVEL_CHECKED enum gavel_status disk_error(const struct disk *disk, int code, const char *what,
                                           struct gavel_error *error);
GAVEL_CHECKED enum gavel_status disk_damaged(const struct disk *disk, struct gavel_error *error,
                                             const char *format, ...) __attribute__((format(printf, 3, 4)));

/* directory.c */
GAVEL_CHECKED enum gavel_status disk_directory_prepare(struct disk *disk, bool *ret_is_new,
                                                       struct gavel_error *error);
GAVEL_CHECKED enum gavel_status disk_directory_sync(const struct disk *disk, struct gavel_error *error);
/* Of one of the files above. */
void disk_path(const struct disk *disk, const char *file, char ret_path[DISK_PATH_BYTES]);

/* lock.c */
GAVEL_CHECKED enum gavel_status disk_lock(struct disk *disk, struct gavel_error *error);

/* pages.c: checks that the pages of the file are in order, so that LMDB can be trusted with them. */
GAVEL_CHECKED enum gavel_status disk_check_pages(const struct disk *disk, const char *path,
                                                 struct gavel_error *error);

/* environment.c */
GAVEL_CHECKED enum gavel_status disk_environment_open(struct disk *disk, const char *path,
                                                      struct gavel_error *error);
void disk_environment_close(struct disk *disk);

/* file_id.c */
GAVEL_CHECKED enum gavel_status disk_file_id_read(const struct disk *disk, struct record_file_id *ret_file_id,
                                                  struct gavel_error *error);
/* Checks that data.mdb is the file that was written, and not a copy of it. */
GAVEL_CHECKED enum gavel_status disk_check_file_id(const struct disk *disk, struct gavel_error *error);

/* room.c */
enum disk_need {
    DISK_NEEDS_LITTLE, /* state, truncation, a snapshot: may use the reserve kept for them */
    DISK_NEEDS_APPEND,
};
/* Makes sure that `bytes` in `records` can be written, and that the disk has blocks for them. */
GAVEL_CHECKED enum gavel_status disk_make_room(struct disk *disk, enum disk_need need, size_t bytes,
                                               size_t records, struct gavel_error *error);

/* txn.c */
/* The error for every call after a write that failed for good. */
GAVEL_CHECKED enum gavel_status disk_refuse(const struct disk *disk, struct gavel_error *error);
GAVEL_CHECKED enum gavel_status disk_txn_begin(struct disk_txn *txn, struct disk *disk,
                                               struct gavel_error *error);
/* Writes the state, commits, and makes txn->contents the disk's. Ends the transaction in any case. */
GAVEL_CHECKED enum gavel_status disk_txn_commit(struct disk_txn *txn, struct gavel_error *error);
/* Ends it without a change, after a call of LMDB returned `code`. */
GAVEL_CHECKED enum gavel_status disk_txn_abort(struct disk_txn *txn, int code, const char *what,
                                               struct gavel_error *error);
/* These return LMDB's codes. */
int disk_put(struct disk_txn *txn, struct record_key key, const uint8_t *body, size_t size);
int disk_put_identity(struct disk_txn *txn);
int disk_put_met(struct disk_txn *txn);
/* A number that no other directory has. */
uint64_t disk_draw_directory(void);
int disk_put_entry(struct disk_txn *txn, raft_index index, const struct raft_entry *entry);
int disk_put_snapshot(struct disk_txn *txn, const struct raft_snapshot *snapshot);
int disk_put_piece(struct disk_txn *txn, unsigned slot, uint32_t number, const uint8_t *data, size_t size);
int disk_put_head(struct disk_txn *txn, const struct raft_snapshot *snapshot);
int disk_delete(struct disk_txn *txn, struct record_key key);
int disk_delete_entries(struct disk_txn *txn, raft_index first, raft_index last);

/* stage.c */
uint32_t disk_piece_count(size_t size);
bool disk_is_plain(const struct disk_contents *contents); /* it is of format 2 */
/* What was staged is in force from now on. */
int disk_put_staged(struct disk_txn *txn, const struct raft_snapshot *snapshot);
/* The entries are in a snapshot now, and are removed later. */
int disk_leave_entries(struct disk_txn *txn, raft_index first, raft_index last);
int disk_trim(struct disk_txn *txn); /* some of what is left to remove */
int disk_trim_all(struct disk_txn *txn);

/* repair.c: from this term on, terms are too high to be the result of elections. */
#define DISK_TERM_LIMIT (RAFT_NUMBER_MAX / 4)
struct disk_terms {
    bool is_lowered; /* there are such terms */
    raft_term last;  /* the last term below the limit */
    size_t entries;  /* that have such a term … */
    size_t bytes;    /* … and their bytes */
};
GAVEL_CHECKED enum gavel_status disk_survey_terms(struct disk *disk, struct disk_terms *ret_terms,
                                                  struct gavel_error *error);
/* Changes all of them to `term`. Returns LMDB's code. */
int disk_lower_terms(struct disk_txn *txn, raft_term term);

/* verify.c */
/* Checks every checksum and that the records agree with each other; fills in disk->contents. */
GAVEL_CHECKED enum gavel_status disk_verify(struct disk *disk, struct gavel_error *error);
/* A value without its checksum, which is verified. */
GAVEL_CHECKED enum gavel_status disk_body(const struct disk *disk, uint64_t seed, const MDB_val *key,
                                          const MDB_val *value, const uint8_t **ret_body, size_t *ret_size,
                                          struct gavel_error *error);

#endif
