/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The mandates in MySQL: the statements that decide; mandate.c says what
 * their answers mean. Each decision is one conditional statement; the row is
 * then read back, in the same round trip, and tells what stands there.
 *
 * Time is the server's. NOW(6) is the instant at which a statement began, even
 * if it then had to wait for a lock; that is the safe side of both: a renewal
 * counts from before it was applied (and the holder counts from before it was
 * sent), and a take-over finds a lease expired rather too late than too early.
 * The session is in UTC, where no hour comes twice.
 *
 * Programs that know three columns write owner_id and expires_at and nothing
 * else. Beside these stand copies of what gavel wrote last; where they differ,
 * such a program has been there. All statements compare them, so that no write
 * of gavel goes over one that it has not seen; and whoever reads such a row
 * first makes a record of it (ABSORB): a version of its own, and an epoch if the
 * owner is another. From then on it is a record like any other.
 *
 * What such a program writes may be no date: `NOW() + 10` is a number, and where
 * its last two digits are no second, a server that is not strict stores
 * 0000-00-00. Nobody can tell when that ends, so it is waited for as long as
 * the lease before it, from when it was first seen.
 *
 * A claim takes the row of the epochs first and that of the mandate second,
 * always in this order, so that two cannot wait for each other.
 */
#include "store/mysql/internal.h"

/* Two names that the collation of an older table makes one are two groups all the same. */
#define KEY_IS "lock_key = {group} AND CAST(CONVERT(lock_key USING utf8mb4) AS BINARY) = {group_bytes}"
#define OWNER "CAST(CONVERT(owner_id USING utf8mb4) AS BINARY)"
#define IS_OURS OWNER " <=> CAST(gavel_owner AS BINARY) AND expires_at <=> gavel_expires_at"
#define IS_KNOWN "format <= {format}"
#define IS_HOLDER                                                                                            \
    KEY_IS " AND " IS_KNOWN " AND held = 1 AND nonce = {nonce} AND {if_epoch} AND " OWNER                    \
           " = {holder_bytes} AND " IS_OURS
#define LEASE_END "NOW(6) + INTERVAL {lease_us} MICROSECOND"
/* To a program of three columns a released row has expired, whatever the server's clock does. */
#define LONG_PAST "FROM_UNIXTIME(86400)"
/* A row that comes after a deleted one must not repeat its versions. */
#define FIRST_VERSION "CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS UNSIGNED)"

#define NO_NONCE "x'00000000000000000000000000000000'" /* whose mandate is not gavel's */
#define IS_PROLONGED "nonce = " NO_NONCE " AND held = 1 AND " OWNER " <=> CAST(gavel_owner AS BINARY)"

#define COLUMNS                                                                                              \
    "lock_key, format, IF(held = 2, CAST(gavel_owner AS BINARY), " OWNER "), " MYSQL_LEFT_US                 \
    ", held <> 2 AND NOT (" IS_OURS "),"                                                                     \
    " epoch, version, HEX(nonce), lease_ms, held,"                                                           \
    " CAST(UNIX_TIMESTAMP(since) * 1000 AS SIGNED), CAST(UNIX_TIMESTAMP(renewed) * 1000 AS SIGNED),"         \
    " address, process, successor, wish_epoch, wish_force, wish_successor"

#define READ_BACK "SELECT " COLUMNS " FROM {locks} WHERE lock_key = {group}"
#define LOCK_EPOCH                                                                                           \
    "INSERT INTO {epochs} (lock_key, epoch) VALUES ({group}, 0) ON DUPLICATE KEY UPDATE epoch = epoch"
#define KNOWN_EPOCH "COALESCE((SELECT e.epoch FROM {epochs} e WHERE e.lock_key = {group}), 0)"
#define KEEP_EPOCH                                                                                           \
    "UPDATE {epochs} SET epoch = GREATEST(epoch, COALESCE((SELECT l.epoch FROM {locks} l"                    \
    " WHERE l.lock_key = {group}), 0)) WHERE lock_key = {group}"

static const struct mysql_script script_read = {{READ_BACK}, -1};

/* That it changes nothing if there is a row shows by the count of changed rows. */
static const struct mysql_script script_acquire = {
    {
        "START TRANSACTION",
        LOCK_EPOCH,
        "INSERT INTO {locks} (lock_key, owner_id, expires_at, gavel_owner, gavel_expires_at, format, epoch,"
        " version, nonce, lease_ms, held, since, renewed, address, process)"
        " SELECT {group}, {holder}, " LEASE_END ", {holder}, " LEASE_END
        ", {format}, 1 + GREATEST(e.epoch, {epoch}), " FIRST_VERSION
        ", {nonce}, {lease_ms}, 1, NOW(6), NOW(6), {address}, {process} FROM {epochs} e"
        " WHERE e.lock_key = {group} AND e.epoch < {max}"
        " ON DUPLICATE KEY UPDATE expires_at = {locks}.expires_at",
        KEEP_EPOCH,
        "COMMIT",
        READ_BACK,
    },
    2,
};

static const struct mysql_script script_take_over = {
    {
        "START TRANSACTION",
        LOCK_EPOCH,
        "UPDATE {locks} SET epoch = 1 + GREATEST(epoch, {epoch}, " KNOWN_EPOCH "), version = version + 1,"
        " nonce = {nonce}, lease_ms = {lease_ms}, held = 1, since = NOW(6), renewed = NOW(6),"
        " address = {address}, process = {process}, successor = '', wish_epoch = 0, wish_force = 0,"
        " wish_successor = '', owner_id = {holder}, gavel_owner = {holder}, expires_at = " LEASE_END
        ", gavel_expires_at = " LEASE_END " WHERE " KEY_IS " AND " IS_KNOWN
        " AND version = {version} AND held <> 2 AND " IS_OURS " AND {if_expired} AND epoch < {max}"
        " AND version < {max} AND " KNOWN_EPOCH " < {max}",
        KEEP_EPOCH,
        "COMMIT",
        READ_BACK,
    },
    2,
};

static const struct mysql_script script_renew = {
    {
        "UPDATE {locks} SET version = version + 1, lease_ms = {lease_ms}, renewed = NOW(6),"
        " expires_at = " LEASE_END ", gavel_expires_at = " LEASE_END " WHERE " IS_HOLDER,
        READ_BACK,
    },
    0,
};

static const struct mysql_script script_release = {
    {
        "UPDATE {locks} SET version = version + 1, held = {held_after}, successor = {successor},"
        " wish_force = {wish_after}, expires_at = " LONG_PAST ", gavel_expires_at = " LONG_PAST
        " WHERE " IS_HOLDER,
        READ_BACK,
    },
    0,
};

/* Here and below the expiry is given its own value, so that a column that changes by itself does not. */
static const struct mysql_script script_ask = {
    {
        "UPDATE {locks} SET wish_epoch = {wish_epoch}, wish_force = {wish_force},"
        " wish_successor = {wish_successor}, expires_at = expires_at WHERE " KEY_IS " AND " IS_KNOWN
        " AND held = 1 AND epoch = {wish_epoch} AND " IS_OURS,
        READ_BACK,
    },
    0,
};

static const struct mysql_script script_reopen = {
    {
        "UPDATE {locks} SET version = version + 1, held = 0, expires_at = expires_at WHERE " KEY_IS
        " AND " IS_KNOWN " AND held = 2 AND version = {version}",
        READ_BACK,
    },
    0,
};

/*
 * The assignments are carried out from left to right: what a later one reads
 * is still as it was. The same program that prolongs its lease keeps its epoch.
 */
static const struct mysql_script script_absorb = {
    {
        "START TRANSACTION",
        LOCK_EPOCH,
        "UPDATE {locks} SET epoch = IF(" IS_PROLONGED ", epoch, 1 + GREATEST(epoch, " KNOWN_EPOCH ")),"
        " since = IF(" IS_PROLONGED ", since, NOW(6)), version = IF(version = 0, " FIRST_VERSION
        ", version + 1),"
        " lease_ms = IF(" MYSQL_HAS_END ", LEAST(GREATEST(CEIL(" MYSQL_LEFT_US " / 1000), 1), {lease_max}),"
        " IF(lease_ms > 0, lease_ms, {lease_unknown})), renewed = NOW(6),"
        " nonce = " NO_NONCE ", held = 1, address = '', process = '', successor = '', wish_epoch = 0,"
        " wish_force = 0, wish_successor = '', gavel_owner = owner_id, gavel_expires_at = expires_at,"
        " expires_at = expires_at WHERE " KEY_IS " AND " IS_KNOWN " AND held <> 2 AND NOT (" IS_OURS ")"
        " AND epoch < {max} AND version < {max} AND " KNOWN_EPOCH " < {max}",
        KEEP_EPOCH,
        "COMMIT",
        READ_BACK,
    },
    2,
};

static const struct mysql_script script_groups = {
    {"SELECT " COLUMNS " FROM {locks} WHERE {if_prefix} ORDER BY lock_key LIMIT {rows_max}"}, -1};

const struct mysql_script *mysql_mandate_script(const struct mysql_call *call)
{
    if (call->stage == MYSQL_STAGE_ABSORB)
        return &script_absorb;
    if (call->stage == MYSQL_STAGE_READ)
        return &script_read;
    switch (call->request->op) {
    case STORE_CLAIM:
        if (call->request->record.epoch >= RULES_NUMBER_MAX)
            return &script_read; /* there is no higher one */
        return call->request->expected_version == 0 ? &script_acquire : &script_take_over;
    case STORE_RENEW:
        return &script_renew;
    case STORE_RELEASE:
        return &script_release;
    case STORE_ASK:
        return &script_ask;
    case STORE_REOPEN:
        return &script_reopen;
    case STORE_GROUPS:
        return &script_groups;
    default:
        return &script_read;
    }
}
