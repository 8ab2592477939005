/* SPDX-License-Identifier: Apache-2.0 */

/* The commands of a story about programs: what they ask a node, each by one frame. */

#include "trace/client.h"

#include "trace/command.h"
#include "trace/words.h"

#include <stdlib.h>
#include <string.h>

/* The program that a word names, made if there is none yet; NULL, and a reason, if it names none. */
static struct program *program_of(struct cluster *cluster, const char *word)
{
    struct program *program;

    if (word[0] < 'A' || word[0] > 'Z' || word[1] != '\0') {
        (void)command_refuse(cluster, "\"%s\" is no program; A to Z are", word);
        return NULL;
    }
    program = &clients_of(cluster)->programs[word[0] - 'A'];
    program->name = word[0];
    return program;
}

/* Takes " at b" off the end, after which the program is connected there; false if there is no such node. */
static bool take_place(struct cluster *cluster, struct program *program, char **words, size_t *count)
{
    if (*count >= 3 && strcmp(words[*count - 2], "at") == 0) {
        const struct host *host = command_node(cluster, words[*count - 1]);

        if (!host)
            return command_refuse(cluster, "there is no node \"%s\"", words[*count - 1]);
        program->node = host->id;
        *count -= 2;
    }
    return program->node != 0 ||
           command_refuse(cluster, "%c is connected to no node yet; say at which", program->name);
}

/* The program of a command, connected; *count is without the place. */
static struct program *who(struct cluster *cluster, char **words, size_t *count)
{
    struct program *program = *count > 1 ? program_of(cluster, words[1]) : NULL;

    return program && take_place(cluster, program, words, count) ? program : NULL;
}

/* A session is needed for it. */
static struct program *who_has_session(struct cluster *cluster, char **words, size_t *count)
{
    struct program *program = who(cluster, words, count);

    if (program && program->session == 0) {
        (void)command_refuse(cluster, "%c has no session", program->name);
        return NULL;
    }
    return program;
}

static uint64_t remember(struct cluster *cluster, struct program *program, enum asked_kind kind,
                         const char *what)
{
    struct asked *asked = &program->asked[++program->tag % ASKED_MAX];

    *asked = (struct asked){.kind = kind, .at = cluster->now};
    (void)snprintf(asked->what, sizeof asked->what, "%s", what);
    return program->tag;
}

static bool send(struct cluster *cluster, struct program *program, const Gavel__ClientFrame *frame)
{
    struct host *host = &cluster->hosts[program->node];

    if (!host->is_alive || host->is_hung) {
        fprintf(cluster->out, "%10.4f  %c  gets no answer from %c\n", seconds(cluster->now), program->name,
                name_of(program->node));
        return true;
    }
    (void)host_step(
        cluster, host,
        (struct node_event){.kind = NODE_CLIENT,
                            .client = {.id = (uint64_t)(program->name - 'A' + 1), .frame = frame}});
    return true;
}

static bool send_op(struct cluster *cluster, struct program *program, enum asked_kind kind, const char *what,
                    Gavel__Op *op)
{
    Gavel__Request request;
    Gavel__ClientFrame frame;

    gavel__request__init(&request);
    gavel__client_frame__init(&frame);
    request.tag = remember(cluster, program, kind, what);
    request.session = program->session;
    request.id = program->session ? ++program->request : 0;
    request.timeout_ms = 5000;
    request.n_ops = 1;
    request.ops = &op;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_REQUEST;
    frame.request = &request;
    return send(cluster, program, &frame);
}

/* session P at a [ttl=3s] */
bool command_session(struct cluster *cluster, char **words, size_t count)
{
    Gavel__OpenSession open;
    Gavel__Op op;
    gavel_ns ttl = 3 * NS_PER_S;
    struct program *program;
    char name[2] = "";

    gavel__open_session__init(&open);
    gavel__op__init(&op);
    if (count > 2 && strncmp(words[count - 1], "ttl=", 4) == 0) {
        if (!words_take_duration(cluster->out, words[count - 1] + 4, &ttl))
            return false;
        count--;
    }
    program = who(cluster, words, &count);
    if (!program || count != 2)
        return false;
    program->session += 1000 + (uint64_t)program->name; /* another one each time */
    program->request = 0;
    program->ttl = ttl;
    name[0] = program->name;
    open.session = program->session;
    open.ttl_ms = (uint32_t)ms_from_ns(ttl);
    open.name = name;
    op.what_case = GAVEL__OP__WHAT_OPEN_SESSION;
    op.open_session = &open;
    return send_op(cluster, program, ASKED_SESSION, "", &op);
}

static void keep(struct cluster *cluster, struct program *program, bool is_silent)
{
    Gavel__KeepAlive keep_alive;
    Gavel__ClientFrame frame;

    gavel__keep_alive__init(&keep_alive);
    gavel__client_frame__init(&frame);
    keep_alive.tag = remember(cluster, program, ASKED_ALIVE, "");
    program->asked[keep_alive.tag % ASKED_MAX].is_silent = is_silent;
    keep_alive.n_sessions = 1;
    keep_alive.sessions = &program->session;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_KEEP_ALIVE;
    frame.keep_alive = &keep_alive;
    if (!is_silent || (cluster->hosts[program->node].is_alive && !cluster->hosts[program->node].is_hung))
        (void)send(cluster, program, &frame);
}

void program_stay_alive(struct cluster *cluster, struct program *program) { keep(cluster, program, true); }

/* alive P [at b], alive P every 1s [at b], alive P no more */
bool command_alive(struct cluster *cluster, char **words, size_t count)
{
    struct program *program = who_has_session(cluster, words, &count);

    if (!program)
        return false;
    if (count == 4 && strcmp(words[2], "every") == 0) {
        program->alive_at = cluster->now;
        return words_take_duration(cluster->out, words[3], &program->alive_every);
    }
    if (count == 4 && strcmp(words[2], "no") == 0 && strcmp(words[3], "more") == 0) {
        program->alive_every = 0;
        return true;
    }
    if (count != 2)
        return command_refuse(cluster, "alive P, alive P every 1s and alive P no more can be said");
    keep(cluster, program, false);
    return true;
}

/* candidate P jobs */
bool command_candidate(struct cluster *cluster, char **words, size_t count)
{
    Gavel__Campaign campaign;
    Gavel__Op op;
    struct program *program = who_has_session(cluster, words, &count);

    gavel__campaign__init(&campaign);
    gavel__op__init(&op);
    if (!program || count != 3)
        return false;
    campaign.group = words[2];
    campaign.id = words[1];
    op.what_case = GAVEL__OP__WHAT_CAMPAIGN;
    op.campaign = &campaign;
    return send_op(cluster, program, ASKED_CANDIDATE, words[2], &op);
}

/* resign P jobs */
bool command_resign(struct cluster *cluster, char **words, size_t count)
{
    Gavel__Withdraw withdraw;
    Gavel__Op op;
    struct program *program = who_has_session(cluster, words, &count);

    gavel__withdraw__init(&withdraw);
    gavel__op__init(&op);
    if (!program || count != 3)
        return false;
    withdraw.group = words[2];
    op.what_case = GAVEL__OP__WHAT_WITHDRAW;
    op.withdraw = &withdraw;
    return send_op(cluster, program, ASKED_RESIGN, words[2], &op);
}

/* close P */
bool command_close(struct cluster *cluster, char **words, size_t count)
{
    Gavel__CloseSession close;
    Gavel__Op op;
    struct program *program = who_has_session(cluster, words, &count);

    gavel__close_session__init(&close);
    gavel__op__init(&op);
    if (!program || count != 2)
        return false;
    program->alive_every = 0;
    close.session = program->session;
    op.what_case = GAVEL__OP__WHAT_CLOSE_SESSION;
    op.close_session = &close;
    return send_op(cluster, program, ASKED_CLOSE, "", &op);
}

/* note P jobs key=value [epoch=5]; also of a program without a session */
bool command_note(struct cluster *cluster, char **words, size_t count)
{
    Gavel__PutNote put;
    Gavel__Op op;
    struct program *program = who(cluster, words, &count);
    char *value = program && count > 3 ? strchr(words[3], '=') : NULL;
    char what[64];

    gavel__put_note__init(&put);
    gavel__op__init(&op);
    if (!program || count < 4 || count > 5 || !value)
        return program && command_refuse(cluster, "which note? note P jobs key=value");
    if (count == 5 && (strncmp(words[4], "epoch=", 6) != 0 || words[4][6] < '1' || words[4][6] > '9'))
        return command_refuse(cluster, "\"%s\" is no epoch; epoch=5 is one", words[4]);
    *value++ = '\0';
    (void)snprintf(what, sizeof what, "%s/%s", words[2], words[3]);
    put.group = words[2];
    put.key = words[3];
    put.value.data = (uint8_t *)value;
    put.value.len = strlen(value);
    put.epoch = count == 5 ? strtoull(words[4] + 6, NULL, 10) : 0;
    op.what_case = GAVEL__OP__WHAT_PUT_NOTE;
    op.put_note = &put;
    return send_op(cluster, program, ASKED_NOTE, what, &op);
}

/* leader P jobs: P asks who leads it */
bool command_leader(struct cluster *cluster, char **words, size_t count)
{
    Gavel__Ask ask;
    Gavel__ClientFrame frame;
    struct program *program = who(cluster, words, &count);

    gavel__ask__init(&ask);
    gavel__client_frame__init(&frame);
    if (!program || count != 3)
        return false;
    ask.tag = remember(cluster, program, ASKED_LEADER, words[2]);
    ask.kind = GAVEL__ASK__KIND__GROUP;
    ask.group = words[2];
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_ASK;
    frame.ask = &ask;
    return send(cluster, program, &frame);
}

/* watch group jobs at b: who leads it, as the table of b says, from now on */
bool command_watch_group(struct cluster *cluster, char **words, size_t count)
{
    struct clients *clients = clients_of(cluster);
    const struct host *host =
        count == 5 && strcmp(words[3], "at") == 0 ? command_node(cluster, words[4]) : NULL;

    if (!host || strlen(words[2]) >= sizeof clients->watches[0].group)
        return command_refuse(cluster, "at which node? watch group jobs at b");
    for (size_t i = 0; i < GROUP_WATCHES_MAX; i++) {
        struct group_watch *watch = &clients->watches[i];

        if (watch->node != 0)
            continue;
        watch->node = host->id;
        (void)snprintf(watch->group, sizeof watch->group, "%s", words[2]);
        clients_look(cluster, host);
        return true;
    }
    return command_refuse(cluster, "too many are watched");
}
