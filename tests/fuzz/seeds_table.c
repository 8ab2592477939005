/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Writes the seeds of table_command, stories of a few commands each, after a
 * change of table.proto:
 *
 *     fuzz_seeds_table tests/fuzz/corpus
 */
#include "core/table/table.h"

#include <stdio.h>
#include <stdlib.h>

struct story {
    FILE *file;
    uint64_t ids[4]; /* of the newest request of each session */
};

static void begin(struct story *story, const char *directory, const char *name)
{
    char path[4096];

    (void)snprintf(path, sizeof path, "%s/table_command/%s", directory, name);
    *story = (struct story){.file = fopen(path, "wb")};
    if (!story->file) {
        perror(path);
        exit(1);
    }
}

static void end(struct story *story)
{
    if (fclose(story->file) != 0) {
        perror("seeds");
        exit(1);
    }
}

static char *text(const char *string) { return (char *)(uintptr_t)string; }

/* One command of one operation; sessions are 0 (none) to 3. */
static void tell(struct story *story, uint64_t session, Gavel__Op__WhatCase what, void *message)
{
    uint8_t bytes[1024];
    Gavel__Command command;
    Gavel__Op op;
    Gavel__Op *ops = &op;
    size_t size;

    gavel__command__init(&command);
    gavel__op__init(&op);
    op.what_case = what;
    op.open_session = message; /* a union of pointers */
    command.ops = &ops;
    command.n_ops = 1;
    command.session = session;
    command.id = session != 0 ? ++story->ids[session] : 0;
    command.table_version = TABLE_VERSION;
    size = gavel__command__get_packed_size(&command);
    if (size > sizeof bytes)
        abort();
    gavel__command__pack(&command, bytes);
    (void)fputc((int)(size >> 8), story->file);
    (void)fputc((int)(size & 255), story->file);
    (void)fwrite(bytes, 1, size, story->file);
}

static void open_session(struct story *story, uint64_t session)
{
    Gavel__OpenSession message;

    gavel__open_session__init(&message);
    message.session = session;
    message.ttl_ms = 2000;
    tell(story, session, GAVEL__OP__WHAT_OPEN_SESSION, &message);
}

static void close_session(struct story *story, uint64_t session)
{
    Gavel__CloseSession message;

    gavel__close_session__init(&message);
    message.session = session;
    message.ending = GAVEL__ENDING__ENDING_EXPIRED;
    tell(story, 0, GAVEL__OP__WHAT_CLOSE_SESSION, &message);
}

static void campaign(struct story *story, uint64_t session, const char *group, const char *id, int priority)
{
    Gavel__Campaign message;

    gavel__campaign__init(&message);
    message.group = text(group);
    message.id = text(id);
    message.priority = priority;
    message.policy = GAVEL__POLICY__POLICY_PRIORITY;
    message.preempts = true;
    tell(story, session, GAVEL__OP__WHAT_CAMPAIGN, &message);
}

static void withdraw(struct story *story, uint64_t session, const char *group, bool stays)
{
    Gavel__Withdraw message;

    gavel__withdraw__init(&message);
    message.group = text(group);
    message.stays = stays;
    tell(story, session, GAVEL__OP__WHAT_WITHDRAW, &message);
}

static void wish(struct story *story, const char *group, uint64_t epoch, const char *successor, bool is_over)
{
    Gavel__Wish message;

    gavel__wish__init(&message);
    message.group = text(group);
    message.epoch = epoch;
    message.successor = text(successor);
    message.timeout_ms = 100;
    message.is_over = is_over;
    tell(story, 0, GAVEL__OP__WHAT_WISH, &message);
}

static void claim(struct story *story, const char *group, const char *holder, uint64_t version)
{
    Gavel__Claim message;

    gavel__claim__init(&message);
    message.group = text(group);
    message.holder = text(holder);
    message.nonce_low = 1;
    message.lease_ms = 3000;
    message.expected_version = version;
    tell(story, 0, GAVEL__OP__WHAT_CLAIM, &message);
}

static void release(struct story *story, const char *group, const char *holder, const char *successor,
                    bool is_done)
{
    Gavel__Release message;

    gavel__release__init(&message);
    message.group = text(group);
    message.holder = text(holder);
    message.nonce_low = 1;
    message.successor = text(successor);
    message.is_done = is_done;
    tell(story, 0, GAVEL__OP__WHAT_RELEASE, &message);
}

static void register_candidate(struct story *story, const char *group, const char *id, uint64_t instance)
{
    Gavel__Register message;

    gavel__register__init(&message);
    message.group = text(group);
    message.id = text(id);
    message.instance = instance;
    tell(story, 0, GAVEL__OP__WHAT_REGISTER_CANDIDATE, &message);
}

static void put_note(struct story *story, const char *group, const char *key, uint64_t epoch)
{
    Gavel__PutNote message;

    gavel__put_note__init(&message);
    message.group = text(group);
    message.key = text(key);
    message.value.data = (uint8_t *)text("v");
    message.value.len = 1;
    message.epoch = epoch;
    tell(story, 0, GAVEL__OP__WHAT_PUT_NOTE, &message);
}

static void tell_elections(const char *directory)
{
    struct story story;

    begin(&story, directory, "elections");
    for (uint64_t session = 1; session <= 3; session++)
        open_session(&story, session);
    campaign(&story, 1, "g", "a", 1);
    campaign(&story, 2, "g", "b", 2);
    campaign(&story, 3, "g", "c", 3);
    wish(&story, "g", 4, "c", false);
    withdraw(&story, 1, "g", true);
    end(&story);
    begin(&story, directory, "sessions");
    open_session(&story, 1);
    open_session(&story, 2);
    campaign(&story, 1, "g", "a", 1);
    campaign(&story, 1, "h", "a", 1);
    campaign(&story, 2, "g", "b", 2);
    wish(&story, "g", 3, "", false);
    wish(&story, "g", 3, "", true);
    close_session(&story, 1);
    withdraw(&story, 2, "g", false);
    end(&story);
}

static void tell_leases(const char *directory)
{
    struct story story;
    Gavel__Renew renew;
    Gavel__Reopen reopen;
    Gavel__Lapse lapse;
    Gavel__Leave leave;

    gavel__renew__init(&renew);
    renew.group = text("g");
    renew.holder = text("a");
    renew.nonce_low = 1;
    renew.lease_ms = 4000;
    gavel__reopen__init(&reopen);
    reopen.group = text("g");
    reopen.expected_version = 3;
    gavel__lapse__init(&lapse);
    lapse.group = text("g");
    lapse.epoch = 8;
    gavel__leave__init(&leave);
    leave.group = text("g");
    leave.id = text("r");
    leave.instance = 7;
    begin(&story, directory, "leases");
    register_candidate(&story, "g", "r", 7);
    claim(&story, "g", "a", 0);
    tell(&story, 0, GAVEL__OP__WHAT_RENEW, &renew);
    wish(&story, "g", 2, "r", false);
    open_session(&story, 1);
    campaign(&story, 1, "g", "s", 0);
    release(&story, "g", "a", "r", false);
    claim(&story, "g", "r", 7);
    tell(&story, 0, GAVEL__OP__WHAT_LAPSE, &lapse);
    end(&story);
    begin(&story, directory, "done");
    register_candidate(&story, "g", "r", 7);
    claim(&story, "g", "r", 0);
    release(&story, "g", "r", "", true);
    tell(&story, 0, GAVEL__OP__WHAT_REOPEN, &reopen);
    tell(&story, 0, GAVEL__OP__WHAT_LEAVE, &leave);
    end(&story);
}

static void tell_notes(const char *directory)
{
    struct story story;
    Gavel__DeleteNote delete_note;

    gavel__delete_note__init(&delete_note);
    delete_note.group = text("g");
    delete_note.key = text("k");
    begin(&story, directory, "notes");
    put_note(&story, "g", "k", 0);
    put_note(&story, "g", "l", 0);
    put_note(&story, "h", "k", 0);
    open_session(&story, 1);
    campaign(&story, 1, "g", "a", 0);
    put_note(&story, "g", "k", 5);
    put_note(&story, "g", "k", 4);
    tell(&story, 0, GAVEL__OP__WHAT_DELETE_NOTE, &delete_note);
    close_session(&story, 1);
    end(&story);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "seeds: give the directory of the corpus\n");
        return 2;
    }
    tell_elections(argv[1]);
    tell_leases(argv[1]);
    tell_notes(argv[1]);
    return 0;
}
