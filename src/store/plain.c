/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What stores tell is printed on terminals, in logs and as JSON, and anybody
 * who may write to a store can put anything there: other programs share a
 * table of MySQL, a file of SQLite can be edited, a server words its own
 * errors. So whatever comes out of a driver is made plain in one place: valid
 * UTF-8 without control characters, which could drive a terminal.
 *
 * Groups and candidates whose names are none are left out of lists: nobody
 * could ask for them by such a name.
 */
#include "store/plain.h"

#include "base/utf8.h"

void text_make_plain(char *text)
{
    while (*text) {
        uint32_t character = 0;
        size_t size = utf8_decode(text, &character);
        bool is_good = size > 0 && !utf8_is_control(character);

        if (size == 0)
            size = 1;
        for (; size > 0; size--, text++)
            if (!is_good)
                *text = '?';
    }
}

void record_make_plain(struct record *record)
{
    text_make_plain(record->holder);
    text_make_plain(record->address);
    text_make_plain(record->successor);
    text_make_plain(record->wish_successor);
    text_make_plain(record->process.boot_id);
}

static void keep_registrations(struct store_reply *reply)
{
    size_t kept = 0;

    for (size_t i = 0; i < reply->registration_count; i++) {
        struct registration *registration = &reply->registrations[i];

        if (name_check("candidate id", registration->id, NULL) != GAVEL_OK)
            continue;
        text_make_plain(registration->address);
        text_make_plain(registration->process.boot_id);
        if (kept != i)
            reply->registrations[kept] = *registration;
        kept++;
    }
    reply->registration_count = kept;
}

static void keep_groups(struct store_reply *reply)
{
    size_t kept = 0;

    for (size_t i = 0; i < reply->group_count; i++) {
        struct group_row *row = &reply->groups[i];

        if (name_check("group name", row->group, NULL) != GAVEL_OK)
            continue;
        record_make_plain(&row->record);
        if (kept != i)
            reply->groups[kept] = *row;
        kept++;
    }
    reply->group_count = kept;
}

void reply_make_plain(struct store_reply *reply)
{
    text_make_plain(reply->message);
    text_make_plain(reply->note);
    record_make_plain(&reply->record);
    keep_registrations(reply);
    keep_groups(reply);
}
