/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Whether the file is all of the store.
 *
 * While a store is in use most of it lies in its log, FILE-wal, and a copy of
 * FILE alone has old epochs or none. SQLite says in the header of the file
 * which of the two it is: 2 where a log belongs to it, 1 where not. So the last
 * one out takes the log in and sets it to 1, and whoever comes first sets it to
 * 2 again:
 *
 *     header   FILE-wal   what it is
 *     1        none       whole: nobody has it open
 *     2        there      in use, or all who used it were killed
 *     2        none       copied while it was in use, without its log
 *
 * The last is refused, for the epochs in that log have been given out. Between
 * the two states there are moments that look like it. They pass, so it is
 * looked at again for a while; and should a process be killed in one of them,
 * FILE-switch, which is there for as long, tells. A gavel before 0.7 knew nothing
 * of this and left a whole file with a 2: only files with the table `marks`,
 * which it did not make, and those without any table are refused.
 */
#include "base/error.h"
#include "os/clock.h"
#include "store/sqlite/sqlite.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define HEADER_SIZE 100
#define READ_VERSION_AT 19
#define VERSION_WAL 2
#define LOOK_EVERY (10 * NS_PER_MS)
#define LOOK_FOR (1 * NS_PER_S)
#define TURN_LOOK_EVERY (500 * NS_PER_US)
#define TURN_FOR (500 * NS_PER_MS)

static char *name_beside(const struct sqlite_store *sqlite, const char *suffix)
{
    char *path;

    return asprintf(&path, "%s%s", sqlite3_db_filename(sqlite->db, "main"), suffix) < 0 ? NULL : path;
}

static bool is_missing(const char *path) { return access(path, F_OK) < 0 && errno == ENOENT; }

/* By SQLite's own descriptor: closing one of ours would drop the locks of this process. */
static bool wants_log(const struct sqlite_store *sqlite)
{
    unsigned char header[HEADER_SIZE];
    sqlite3_file *file = NULL;

    if (sqlite3_file_control(sqlite->db, "main", SQLITE_FCNTL_FILE_POINTER, &file) || !file ||
        !file->pMethods || file->pMethods->xRead(file, header, sizeof header, 0))
        return false; /* an empty file is shorter; what cannot be read shows in a moment */
    return header[READ_VERSION_AT] == VERSION_WAL;
}

/* Looks into the file alone, as of a medium that cannot change: nothing is made beside it. */
static bool has_marks_or_nothing(const struct sqlite_store *sqlite)
{
    static const char query[] = "SELECT count(*) = 0 OR total(name = 'marks') > 0 FROM sqlite_schema";
    const char *path = sqlite3_db_filename(sqlite->db, "main");
    char *uri = malloc(3 * strlen(path) + sizeof "file:?immutable=1");
    sqlite3_stmt *statement = NULL;
    sqlite3 *db = NULL;
    bool is_so = false;
    char *to = uri;

    if (!uri)
        return false;
    to += sprintf(to, "file:");
    for (; *path; path++)
        to += strchr("%?#", *path) ? sprintf(to, "%%%02x", (unsigned char)*path) : sprintf(to, "%c", *path);
    (void)sprintf(to, "?immutable=1");
    if (sqlite3_open_v2(uri, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, NULL) ==
            SQLITE_OK &&
        sqlite3_prepare_v2(db, query, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW)
        is_so = sqlite3_column_int(statement, 0) != 0;
    (void)sqlite3_finalize(statement); /* repeats an earlier error */
    (void)sqlite3_close(db);           /* nothing is open on it any more */
    free(uri);
    return is_so;
}

/* Whether it stays so: a log that should be there and is not. */
static bool lacks_log(const struct sqlite_store *sqlite, const char *log, const char *turn)
{
    const struct timespec pause = {.tv_nsec = LOOK_EVERY};
    gavel_ns until = clock_now() + LOOK_FOR;

    while (wants_log(sqlite) && is_missing(log) && is_missing(turn)) {
        if (clock_now() > until)
            return has_marks_or_nothing(sqlite);
        (void)nanosleep(&pause, NULL); /* waking early does no harm */
    }
    return false;
}

enum gavel_status sqlite_check_log(const struct sqlite_store *sqlite, struct gavel_error *error)
{
    char *log = name_beside(sqlite, "-wal");
    char *turn = name_beside(sqlite, "-switch");
    enum gavel_status status = GAVEL_OK;

    if (!log || !turn)
        status =
            error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory while opening the store %s", sqlite->shown);
    else if (lacks_log(sqlite, log, turn))
        status = error_set(
            error, GAVEL_ERR_STORE_DAMAGED,
            "the log of the store %.80s, its -wal, is missing, and epochs with it; restore it, or a file of `gavel store backup`; to continue without it, touch %s-wal",
            sqlite->shown, sqlite->shown);
    free(turn);
    free(log);
    return status;
}

/*
 * One at a time: whoever has the lock of FILE-switch may be where the header and the log do not fit together,
 * and removes it afterwards. It is not waited for longer than that; then it goes on without.
 */
struct turn {
    char *path;
    int fd; /* -1: none */
};

/* Whether the file that we have locked is still the one of that name. */
static bool is_same(int fd, const char *path)
{
    struct stat ours;
    struct stat named;

    return fstat(fd, &ours) == 0 && stat(path, &named) == 0 && ours.st_ino == named.st_ino &&
           ours.st_dev == named.st_dev;
}

static struct turn begin_turn(const struct sqlite_store *sqlite)
{
    const struct timespec pause = {.tv_nsec = TURN_LOOK_EVERY};
    struct turn turn = {.path = name_beside(sqlite, "-switch"), .fd = -1};
    gavel_ns until = clock_now() + TURN_FOR;

    while (turn.path) {
        turn.fd = open(turn.path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (turn.fd >= 0 && flock(turn.fd, LOCK_EX | LOCK_NB) == 0 && is_same(turn.fd, turn.path))
            break;
        if (turn.fd >= 0)
            (void)close(turn.fd); /* with its lock, if it had one */
        turn.fd = -1;
        if (clock_now() > until)
            break;
        (void)nanosleep(&pause, NULL); /* waking early does no harm */
    }
    return turn;
}

static void end_turn(struct turn *turn)
{
    if (turn->fd >= 0) {
        (void)unlink(turn->path); /* while it is locked: it is ours */
        (void)close(turn->fd);
    }
    free(turn->path);
}

/* What PRAGMA journal_mode answers to that mode. */
static int set_mode(sqlite3 *db, const char *pragma, const char *mode)
{
    sqlite3_stmt *statement;
    int code = sqlite3_prepare_v2(db, pragma, -1, &statement, NULL);
    bool is_set;

    if (code)
        return code;
    code = sqlite3_step(statement);
    is_set = code == SQLITE_ROW && strcmp((const char *)sqlite3_column_text(statement, 0), mode) == 0;
    if (code == SQLITE_ROW)
        code = is_set ? SQLITE_OK : SQLITE_CANTOPEN;
    (void)sqlite3_finalize(statement); /* repeats the code of the step */
    return code;
}

static void keep_log(sqlite3 *db, int is_kept)
{
    (void)sqlite3_file_control(db, "main", SQLITE_FCNTL_PERSIST_WAL, &is_kept); /* every file can */
}

int sqlite_use_log(struct sqlite_store *sqlite, bool (*may_wait)(struct sqlite_store *sqlite))
{
    struct turn turn = {.fd = -1};
    int code;

    if (!wants_log(sqlite))
        turn = begin_turn(sqlite);
    /* Where a log is not possible it stays with what it has and calls that a success. */
    do
        code = set_mode(sqlite->db, "PRAGMA journal_mode = WAL", "wal");
    while ((code & 0xff) == SQLITE_BUSY && may_wait(sqlite));
    if (!code) /* the first look into the file makes the log */
        code = sqlite3_exec(sqlite->db, "SELECT count(*) FROM sqlite_schema", NULL, NULL, NULL);
    keep_log(sqlite->db, true); /* a close that finds others there must not take it away */
    end_turn(&turn);
    return code;
}

/*
 * Takes the log in if nobody else has the file open; else it changes nothing. Whoever is next in turn finds
 * this one gone.
 */
void sqlite_leave_whole(struct sqlite_store *sqlite)
{
    struct turn turn = begin_turn(sqlite);

    keep_log(sqlite->db, false);
    if (turn.fd < 0 || set_mode(sqlite->db, "PRAGMA journal_mode = DELETE", "delete") != SQLITE_OK)
        keep_log(sqlite->db, true);
    (void)sqlite3_close(sqlite->db); /* nothing is open on it any more */
    sqlite->db = NULL;
    end_turn(&turn);
}
