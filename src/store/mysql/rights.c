/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Tries what a candidate will do, with a condition that no row meets. A server
 * looks at the rights before it looks for rows, so nothing is changed and
 * nothing locked; but who may only read is told at once, rather than taking
 * part without ever being able to lead.
 */
#include "base/error.h"
#include "store/mysql/internal.h"

/* What is done to a table. */
static const struct {
    const char *inserted; /* the columns that must be given */
    const char *values;
    const char *updated;
    bool deletes;
} uses[MYSQL_TABLES] = {
    [MYSQL_TABLE_LOCKS] = {"lock_key, owner_id, expires_at", "'', '', NOW(6)", "expires_at", false},
    [MYSQL_TABLE_EPOCHS] = {"lock_key, epoch", "'', 0", "epoch", false},
    [MYSQL_TABLE_CANDIDATES] = {"lock_key, id, instance, beats", "'', '', 0, 0", "beats", true},
};

enum gavel_status mysql_rights_try(struct mysql_store *mysql, gavel_ns until, struct gavel_error *error)
{
    struct text_buffer text = {0};
    enum gavel_status status = GAVEL_OK;

    for (int i = 0; i < MYSQL_TABLES; i++) {
        const char *table = mysql->target.table;
        const char *suffix = mysql_table_suffixes[i];
        const char *column = uses[i].updated;

        text_buffer_print(&text, "%sSELECT %s FROM `%s%s` WHERE FALSE", i > 0 ? ";" : "", column, table,
                          suffix);
        text_buffer_print(&text, ";INSERT INTO `%s%s` (%s) SELECT %s FROM DUAL WHERE FALSE", table, suffix,
                          uses[i].inserted, uses[i].values);
        text_buffer_print(&text, ";UPDATE `%s%s` SET %s = %s WHERE FALSE", table, suffix, column, column);
        if (uses[i].deletes)
            text_buffer_print(&text, ";DELETE FROM `%s%s` WHERE FALSE", table, suffix);
    }
    if (text.is_short)
        status = error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory while looking at %s", mysql->shown);
    else if (!mysql_link_do(mysql, text.bytes, until, NULL))
        status = mysql_trouble_explain(mysql, error);
    text_buffer_done(&text);
    return status;
}
