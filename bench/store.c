/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Latencies of the SQLite store without contention, one process and one
 * group, beside two floors on the same file system: writing and syncing 4 KiB,
 * and the smallest durable transaction that SQLite itself can do.
 */
#include "bench/bench.h"

#include "base/error.h"
#include "os/clock.h"
#include "os/entropy.h"
#include "os/process.h"
#include "store/store.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <string.h>
#include <unistd.h>

#define ROUNDS 1000
#define ROUNDS_QUICK 50
#define LIMIT_NS (300 * NS_PER_S)
#define CALL_LIMIT_NS (10 * NS_PER_S)
#define BLOCK 4096
#define LEASE_MS 2000

enum { CLAIM, RENEW, READ, RELEASE, HEARTBEAT, SYNC, UPDATE, SELECT, SERIES };

static const char *const names[SERIES] = {
    [CLAIM] = "claim",
    [RENEW] = "renew",
    [READ] = "read",
    [RELEASE] = "release",
    [HEARTBEAT] = "heartbeat",
    [SYNC] = "floor: write 4 KiB, fdatasync",
    [UPDATE] = "floor: SQLite UPDATE, durable",
    [SELECT] = "floor: SQLite SELECT",
};

/* One call, timed. A failure ends the measurement: figures of failed calls mean nothing. */
static enum gavel_status timed_call(const struct member_context *context, struct store *store,
                                    struct store_request *request, uint64_t series, struct record *ret_record)
{
    struct store_reply reply = {0};
    gavel_ns began = clock_now();

    request->group = "bench";
    request->give_up_at = began + CALL_LIMIT_NS;
    enum gavel_status status = store_call(store, request, &reply);
    gavel_ns took = clock_now() - began;
    if (status == GAVEL_OK) {
        bench_result(context, series, took);
        *ret_record = reply.record;
    }
    store_reply_done(&reply);
    return status;
}

/* The life of a mandate: claimed over the released one before, renewed, read, released. */
static enum gavel_status round_trip(const struct member_context *context, struct store *store,
                                    const struct process_id *self, struct record *record)
{
    struct store_request request = {.op = STORE_CLAIM, .expected_version = record->version};
    struct record ignored;

    request.record = (struct record){.lease_ms = LEASE_MS, .process = *self};
    request.record.nonce = (struct nonce){.high = entropy_u64(), .low = entropy_u64()};
    (void)snprintf(request.record.holder, sizeof request.record.holder, "%s", context->name);
    enum gavel_status status = timed_call(context, store, &request, CLAIM, record);
    if (status != GAVEL_OK)
        return status;
    request = (struct store_request){.op = STORE_RENEW, .record = *record};
    status = timed_call(context, store, &request, RENEW, record);
    if (status != GAVEL_OK)
        return status;
    request = (struct store_request){.op = STORE_READ};
    status = timed_call(context, store, &request, READ, &ignored);
    if (status != GAVEL_OK)
        return status;
    request = (struct store_request){.op = STORE_RELEASE, .record = *record};
    return timed_call(context, store, &request, RELEASE, record);
}

static enum gavel_status heartbeat(const struct member_context *context, struct store *store,
                                   const struct process_id *self, uint64_t beats)
{
    struct store_request request = {.op = STORE_HEARTBEAT, .candidate_timeout_ms = LEASE_MS};
    struct record ignored;

    request.registration =
        (struct registration){.instance = 1, .beats = beats, .eligible = true, .process = *self};
    (void)snprintf(request.registration.id, sizeof request.registration.id, "%s", context->name);
    return timed_call(context, store, &request, HEARTBEAT, &ignored);
}

/* Everything that is measured, open side by side. */
struct store_rig {
    struct store *store;
    struct process_id self;
    struct record record; /* as the last round left it */
    int fd;
    sqlite3 *database;
    sqlite3_stmt *update;
    sqlite3_stmt *select;
};

static enum gavel_status store_rig_open(struct store_rig *store_rig, const struct rig *rig)
{
    static const char schema[] =
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
        "CREATE TABLE t(k INTEGER PRIMARY KEY, v INTEGER); INSERT INTO t VALUES(1, 0);";
    char path[RIG_DIRECTORY_MAX + 16];

    (void)snprintf(path, sizeof path, "%s/block", rig->directory);
    store_rig->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (store_rig->fd < 0)
        return GAVEL_ERR_IO;
    (void)snprintf(path, sizeof path, "%s/floor.db", rig->directory);
    if (sqlite3_open(path, &store_rig->database) ||
        sqlite3_exec(store_rig->database, schema, NULL, NULL, NULL) ||
        sqlite3_prepare_v2(store_rig->database, "UPDATE t SET v = v + 1 WHERE k = 1", -1, &store_rig->update,
                           NULL) ||
        sqlite3_prepare_v2(store_rig->database, "SELECT v FROM t WHERE k = 1", -1, &store_rig->select, NULL))
        return GAVEL_ERR_IO;
    enum gavel_status status = process_self(&store_rig->self);
    return status != GAVEL_OK ? status : store_open(rig->store, &store_rig->store, NULL);
}

static void store_rig_close(struct store_rig *store_rig)
{
    store_close(store_rig->store);
    (void)sqlite3_finalize(store_rig->update); /* safe on NULL; repeats the error of the last step */
    (void)sqlite3_finalize(store_rig->select);
    (void)sqlite3_close(store_rig->database);
    if (store_rig->fd >= 0)
        (void)close(store_rig->fd); /* nothing of it is kept */
}

static enum gavel_status time_sync(const struct member_context *context, int fd, size_t round)
{
    char block[BLOCK];

    memset(block, (int)round, sizeof block);
    gavel_ns began = clock_now();
    if (pwrite(fd, block, sizeof block, 0) != BLOCK || fdatasync(fd) < 0)
        return GAVEL_ERR_IO;
    bench_result(context, SYNC, clock_now() - began);
    return GAVEL_OK;
}

static enum gavel_status time_step(const struct member_context *context, sqlite3_stmt *statement,
                                   uint64_t series, int expected)
{
    gavel_ns began = clock_now();

    if (sqlite3_step(statement) != expected || sqlite3_reset(statement) != SQLITE_OK)
        return GAVEL_ERR_IO;
    bench_result(context, series, clock_now() - began);
    return GAVEL_OK;
}

/* Floors and store take turns, so that a disk that is slow for a while is slow for both. */
static int run(const struct member_context *context, void *user)
{
    size_t rounds = *(const size_t *)user;
    struct store_rig store_rig = {.fd = -1};
    enum gavel_status status = store_rig_open(&store_rig, context->rig);

    for (size_t i = 0; i < rounds && status == GAVEL_OK; i++) {
        status = time_sync(context, store_rig.fd, i);
        if (status == GAVEL_OK)
            status = time_step(context, store_rig.update, UPDATE, SQLITE_DONE);
        if (status == GAVEL_OK)
            status = time_step(context, store_rig.select, SELECT, SQLITE_ROW);
        if (status == GAVEL_OK)
            status = round_trip(context, store_rig.store, &store_rig.self, &store_rig.record);
        if (status == GAVEL_OK)
            status = heartbeat(context, store_rig.store, &store_rig.self, i + 1);
    }
    store_rig_close(&store_rig);
    return status != GAVEL_OK ? 1 : 0;
}

enum gavel_status bench_store(struct bench *bench, struct rig *rig)
{
    struct samples series[SERIES] = {0};
    size_t rounds = bench->is_quick ? ROUNDS_QUICK : ROUNDS;
    enum gavel_status status = bench_collect(rig, run, &rounds, LIMIT_NS, series, SERIES);

    if (status == GAVEL_OK) {
        for (size_t i = 0; i < SERIES; i++)
            report_samples(&bench->report, names[i], &series[i], NS_PER_US, "µs", (struct aim){0});
        report_note(
            &bench->report,
            "at p50 a claim takes %.2f times SQLite's own smallest durable transaction, a read %.2f times its smallest query",
            (double)samples_percentile(&series[CLAIM], 50) / (double)samples_percentile(&series[UPDATE], 50),
            (double)samples_percentile(&series[READ], 50) / (double)samples_percentile(&series[SELECT], 50));
    }
    for (size_t i = 0; i < SERIES; i++)
        samples_done(&series[i]);
    return status;
}
