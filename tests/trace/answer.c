/* SPDX-License-Identifier: Apache-2.0 */

/* What comes back to the programs of a story, and what those see who watch a group. */

#include "trace/client.h"

#include <stdarg.h>
#include <string.h>

static void tell_program(const struct cluster *cluster, const struct program *program, const char *format,
                         ...) __attribute__((format(printf, 3, 4)));

static void tell_program(const struct cluster *cluster, const struct program *program, const char *format,
                         ...)
{
    va_list arguments;

    fprintf(cluster->out, "%10.4f  %c  ", seconds(cluster->now), program->name);
    va_start(arguments, format);
    vfprintf(cluster->out, format, arguments);
    va_end(arguments);
    fputc('\n', cluster->out);
}

static void tell_reply(const struct cluster *cluster, const struct program *program,
                       const struct asked *asked, const Gavel__Reply *reply)
{
    static const char *const done[] = {
        [ASKED_SESSION] = "has a session",        [ASKED_CANDIDATE] = "is a candidate of",
        [ASKED_RESIGN] = "has given up",          [ASKED_NOTE] = "has written",
        [ASKED_CLOSE] = "has closed its session",
    };
    static const char *const wanted[] = {
        [ASKED_SESSION] = "gets no session",        [ASKED_CANDIDATE] = "is no candidate of",
        [ASKED_RESIGN] = "cannot give up",          [ASKED_NOTE] = "cannot write",
        [ASKED_CLOSE] = "cannot close its session",
    };
    const Gavel__OpResult *result = reply->n_results > 0 ? reply->results[0] : NULL;
    enum gavel_status status = (enum gavel_status)reply->status;
    const char *space = asked->what[0] ? " " : "";

    if (status == GAVEL_OK && result)
        status = (enum gavel_status)result->status;
    if (status != GAVEL_OK) {
        tell_program(cluster, program, "%s%s%s: %s", wanted[asked->kind], space, asked->what,
                     gavel_status_name(status));
        return;
    }
    if (asked->kind == ASKED_SESSION)
        tell_program(cluster, program, "has a session until %.4f", seconds(asked->at + program->ttl));
    else if (asked->kind == ASKED_NOTE && result)
        tell_program(cluster, program, "has written %s, revision %llu", asked->what,
                     (unsigned long long)result->revision);
    else
        tell_program(cluster, program, "%s%s%s", done[asked->kind], space, asked->what);
}

static void tell_kept(const struct cluster *cluster, struct program *program, const struct asked *asked,
                      const Gavel__Kept *kept)
{
    if (kept->status != GAVEL_OK) {
        if (!asked->is_silent)
            tell_program(cluster, program, "does not know whether its session is kept: %s",
                         gavel_status_name((enum gavel_status)kept->status));
        return;
    }
    if (kept->n_gone > 0) {
        tell_program(cluster, program, "its session is gone");
        program->alive_every = 0;
    } else if (!asked->is_silent) {
        tell_program(cluster, program, "its session is kept until %.4f", seconds(asked->at + program->ttl));
    }
}

static void tell_leader(const struct cluster *cluster, const struct program *program,
                        const struct asked *asked, const Gavel__Answer *answer)
{
    const Gavel__Group *group = answer->n_groups > 0 ? answer->groups[0] : NULL;

    if (answer->status != GAVEL_OK)
        tell_program(cluster, program, "does not learn who leads %s: %s", asked->what,
                     gavel_status_name((enum gavel_status)answer->status));
    else if (!group || !group->is_held)
        tell_program(cluster, program, "is told: nobody leads %s", asked->what);
    else
        tell_program(cluster, program, "is told: %s leads %s with epoch %llu", group->holder, asked->what,
                     (unsigned long long)group->epoch);
}

void clients_answer(struct cluster *cluster, uint64_t client, const Gavel__ClientFrame *frame)
{
    struct program *program = &clients_of(cluster)->programs[client - 1];

    if (!frame)
        return;
    switch (frame->what_case) {
    case GAVEL__CLIENT_FRAME__WHAT_REPLY:
        tell_reply(cluster, program, &program->asked[frame->reply->tag % ASKED_MAX], frame->reply);
        break;
    case GAVEL__CLIENT_FRAME__WHAT_KEPT:
        tell_kept(cluster, program, &program->asked[frame->kept->tag % ASKED_MAX], frame->kept);
        break;
    case GAVEL__CLIENT_FRAME__WHAT_ANSWER:
        tell_leader(cluster, program, &program->asked[frame->answer->tag % ASKED_MAX], frame->answer);
        break;
    default:
        fprintf(cluster->loud, "ALARM: a client got a frame that is no answer\n");
    }
}

void clients_look(struct cluster *cluster, const struct host *host)
{
    for (size_t i = 0; cluster->clients && i < GROUP_WATCHES_MAX; i++) {
        struct group_watch *watch = &cluster->clients->watches[i];
        const struct table_group *group;
        bool is_held;
        uint64_t epoch;

        if (watch->node != host->id || !host->is_alive)
            continue;
        group = table_group_find(&host->table, watch->group);
        is_held = group && group->is_held;
        epoch = group ? group->epoch : 0;
        if (is_held == watch->is_held && epoch == watch->epoch)
            continue;
        watch->is_held = is_held;
        watch->epoch = epoch;
        if (is_held)
            tell(cluster, host, "shows: %s leads %s with epoch %llu", group->holder, watch->group,
                 (unsigned long long)epoch);
        else
            tell(cluster, host, "shows: nobody leads %s", watch->group);
    }
}
