/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A client of the cluster that has a session and mandates, and one that is after those of another, for tests.
 *
 *     session-attack [--user UID] [--secret TEXT] [--tls CA CERT KEY] PLACE ROLE NUMBER…
 *
 * PLACE is a port of this machine or the path of a socket; numbers are of 16 hexadecimal digits. The roles:
 *
 *     victim SESSION NONCE INSTANCE   campaigns in group "work", holds a lease and is registered in group
 * "job"; says "kept" as long as all of it is its own, and ends with 1 when anything is not thief SESSION
 * knows the id of the session, and does all that can be asked with it finder GROUP                    knows
 * nothing, and does the same with what the node shows of that group reader NUMBER…                  reads all
 * there is to read, and looks for these numbers
 *
 *     holder GROUP LEASE_MS           claims that group as "holder", for so long, and is never heard of again
 *
 * The thief, the finder and the reader print what they did and what came of it, and end with 1 if any of it
 * was granted or found.
 */
#include "wire/client.h"

#include <arpa/inet.h>
#include <grp.h>
#include <inttypes.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define LIMIT_MS 60000 /* of a wait, not of a promise */
#define LEASE_MS 60000
#define TTL_MS 60000
#define ROUND_MS 100
#define FRAMES_MAX 64

struct line {
    int fd;
    SSL *ssl;
    char **files;
    const char *secret;
    uint64_t tag;
    const uint64_t *wanted; /* numbers that no frame may have */
    size_t wanted_count;
    bool is_found;
};

static void __attribute__((noreturn)) give_up(const char *what)
{
    printf("cannot go on: %s\n", what);
    exit(2);
}

/* ---- the line ---- */

static bool begin_tls(struct line *line)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());

    if (!context || SSL_CTX_load_verify_locations(context, line->files[0], NULL) != 1 ||
        SSL_CTX_use_certificate_chain_file(context, line->files[1]) != 1 ||
        SSL_CTX_use_PrivateKey_file(context, line->files[2], SSL_FILETYPE_PEM) != 1)
        return false;
    line->ssl = SSL_new(context);
    SSL_CTX_free(context);
    return line->ssl && SSL_set_fd(line->ssl, line->fd) == 1 && SSL_connect(line->ssl) == 1;
}

static bool connect_to(struct line *line, const char *place)
{
    struct sockaddr_in tcp = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(place))};
    struct sockaddr_un local = {.sun_family = AF_UNIX};

    tcp.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    (void)snprintf(local.sun_path, sizeof local.sun_path, "%s", place);
    line->fd = socket(place[0] == '/' ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return line->fd >= 0 && (place[0] == '/' ? connect(line->fd, (struct sockaddr *)&local, sizeof local)
                                             : connect(line->fd, (struct sockaddr *)&tcp, sizeof tcp)) == 0;
}

static void say(struct line *line, const Gavel__ClientFrame *frame)
{
    uint8_t *bytes;
    size_t size;

    if (client_frame_pack(frame, &bytes, &size) != GAVEL_OK)
        give_up("a frame that cannot be packed");
    if ((line->ssl ? SSL_write(line->ssl, bytes, (int)size) : write(line->fd, bytes, size)) != (long)size)
        give_up("the line is over");
    free(bytes);
}

static void take(struct line *line, uint8_t *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        struct pollfd ready = {.fd = line->fd, .events = POLLIN};
        long got;

        if ((!line->ssl || SSL_pending(line->ssl) == 0) && poll(&ready, 1, LIMIT_MS) != 1)
            give_up("no answer");
        got = line->ssl ? SSL_read(line->ssl, bytes + done, (int)(size - done))
                        : read(line->fd, bytes + done, size - done);
        if (got <= 0)
            give_up("the line is over");
        done += (size_t)got;
    }
}

static bool holds(const uint8_t *bytes, size_t size, const void *part, size_t length)
{
    return memmem(bytes, size, part, length) != NULL;
}

/* As a number of fixed size, as one of variable size, and as text. */
static bool shows(const uint8_t *bytes, size_t size, uint64_t number)
{
    uint8_t fixed[8], varied[10];
    char text[32];
    size_t length = 0;

    for (size_t i = 0; i < sizeof fixed; i++)
        fixed[i] = (uint8_t)(number >> (8 * i));
    for (uint64_t rest = number; length == 0 || rest != 0; rest >>= 7)
        varied[length++] = (uint8_t)((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0));
    if (holds(bytes, size, fixed, sizeof fixed) || holds(bytes, size, varied, length))
        return true;
    (void)snprintf(text, sizeof text, "%" PRIu64, number);
    if (holds(bytes, size, text, strlen(text)))
        return true;
    (void)snprintf(text, sizeof text, "%016" PRIx64, number);
    return holds(bytes, size, text, strlen(text));
}

/* Handed over: freed with client_frame_free(). */
static Gavel__ClientFrame *hear(struct line *line)
{
    uint8_t length[CLIENT_LENGTH_BYTES];
    Gavel__ClientFrame *frame;
    const char *reason;
    uint8_t *bytes;
    size_t size;

    take(line, length, sizeof length);
    size = client_frame_length(length);
    bytes = malloc(size > 0 ? size : 1);
    if (!bytes || size > CLIENT_FRAME_MAX)
        give_up("a frame that is too large");
    take(line, bytes, size);
    if (client_frame_unpack(bytes, size, &frame, &reason) != GAVEL_OK)
        give_up(reason);
    for (size_t i = 0; i < line->wanted_count; i++) {
        if (!shows(bytes, size, line->wanted[i]))
            continue;
        printf("found: %016" PRIx64 " in a frame of kind %d\n", line->wanted[i], (int)frame->what_case);
        line->is_found = true;
    }
    free(bytes);
    if (frame->what_case == GAVEL__CLIENT_FRAME__WHAT_REFUSAL)
        give_up(frame->refusal->text);
    return frame;
}

static Gavel__ClientFrame *hear_kind(struct line *line, Gavel__ClientFrame__WhatCase kind)
{
    for (int i = 0; i < FRAMES_MAX; i++) {
        Gavel__ClientFrame *frame = hear(line);

        if (frame->what_case == kind)
            return frame;
        client_frame_free(frame);
    }
    give_up("other things are said than what was asked for");
}

static void greet(struct line *line)
{
    Gavel__ClientFrame frame;
    Gavel__ClientHello hello;

    gavel__client_frame__init(&frame);
    gavel__client_hello__init(&hello);
    hello.version_min = hello.version_max = 1;
    hello.program = (char *)(uintptr_t) "session-attack";
    hello.secret.data = (uint8_t *)(uintptr_t)line->secret;
    hello.secret.len = strlen(line->secret);
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_HELLO;
    frame.hello = &hello;
    say(line, &frame);
    client_frame_free(hear_kind(line, GAVEL__CLIENT_FRAME__WHAT_WELCOME));
}

/* ---- questions ---- */

/* What came of the request, in `ret_text`; a status of the request or of its operation. */
static uint32_t request(struct line *line, uint64_t session, uint64_t id, Gavel__Op *op, char ret_text[256])
{
    Gavel__ClientFrame frame;
    Gavel__Request asked;
    Gavel__ClientFrame *answer;
    uint32_t status;

    gavel__client_frame__init(&frame);
    gavel__request__init(&asked);
    asked.tag = ++line->tag;
    asked.session = session;
    asked.id = id;
    asked.timeout_ms = LIMIT_MS;
    asked.n_ops = 1;
    asked.ops = &op;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_REQUEST;
    frame.request = &asked;
    say(line, &frame);
    answer = hear_kind(line, GAVEL__CLIENT_FRAME__WHAT_REPLY);
    status = answer->reply->status;
    (void)snprintf(ret_text, 256, "%s", answer->reply->message);
    if (status == GAVEL_OK && answer->reply->n_results == 1) {
        status = answer->reply->results[0]->status;
        (void)snprintf(ret_text, 256, "%s", answer->reply->results[0]->message);
    }
    client_frame_free(answer);
    return status;
}

/* 1: it is kept, 0: it is gone, -1: nobody knows. */
static int keep_alive_once(struct line *line, uint64_t session)
{
    Gavel__ClientFrame frame;
    Gavel__KeepAlive keep_alive;
    Gavel__ClientFrame *answer;
    int kept;

    gavel__client_frame__init(&frame);
    gavel__keep_alive__init(&keep_alive);
    keep_alive.tag = ++line->tag;
    keep_alive.n_sessions = 1;
    keep_alive.sessions = &session;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_KEEP_ALIVE;
    frame.keep_alive = &keep_alive;
    say(line, &frame);
    answer = hear_kind(line, GAVEL__CLIENT_FRAME__WHAT_KEPT);
    kept = answer->kept->status != GAVEL_OK ? -1 : answer->kept->n_gone == 0;
    client_frame_free(answer);
    return kept;
}

static bool keeps_alive(struct line *line, uint64_t session)
{
    for (int i = 0; i < FRAMES_MAX; i++) {
        int kept = keep_alive_once(line, session);

        if (kept >= 0)
            return kept > 0;
    }
    give_up("the cluster is not there");
}

static Gavel__ClientFrame *ask(struct line *line, Gavel__Ask__Kind kind, const char *group, bool is_local)
{
    Gavel__ClientFrame frame;
    Gavel__Ask asked;

    gavel__client_frame__init(&frame);
    gavel__ask__init(&asked);
    asked.tag = ++line->tag;
    asked.kind = kind;
    asked.group = (char *)(uintptr_t)group;
    asked.key = (char *)(uintptr_t) "where";
    asked.is_local = is_local;
    asked.timeout_ms = LEASE_MS;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_ASK;
    frame.ask = &asked;
    say(line, &frame);
    return hear_kind(line, GAVEL__CLIENT_FRAME__WHAT_ANSWER);
}

/* ---- operations ---- */

/* One operation, and whatever it is about. */
struct forwarding {
    Gavel__Op op;
    union {
        Gavel__OpenSession open;
        Gavel__CloseSession close;
        Gavel__Campaign campaign;
        Gavel__Withdraw withdraw;
        Gavel__Claim claim;
        Gavel__Renew renew;
        Gavel__Release release;
        Gavel__Register registration;
        Gavel__Leave leave;
        Gavel__PutNote note;
    } body;
};

#define MAKE(forwarding, CASE, field, member, init)                                                          \
    (gavel__op__init(&(forwarding)->op), init(&(forwarding)->body.member),                                   \
     (forwarding)->op.what_case = (CASE), (forwarding)->op.field = &(forwarding)->body.member,               \
     &(forwarding)->body.member)

static char *text(const char *name) { return (char *)(uintptr_t)name; } /* protobuf-c has no const strings */

static void make_open(struct forwarding *forwarding, uint64_t session)
{
    Gavel__OpenSession *open =
        MAKE(forwarding, GAVEL__OP__WHAT_OPEN_SESSION, open_session, open, gavel__open_session__init);

    open->session = session;
    open->ttl_ms = TTL_MS;
    open->name = text("test");
}

static void make_close(struct forwarding *forwarding, uint64_t session)
{
    MAKE(forwarding, GAVEL__OP__WHAT_CLOSE_SESSION, close_session, close, gavel__close_session__init)
        ->session = session;
}

static void make_campaign(struct forwarding *forwarding, const char *group, const char *id)
{
    Gavel__Campaign *campaign =
        MAKE(forwarding, GAVEL__OP__WHAT_CAMPAIGN, campaign, campaign, gavel__campaign__init);

    campaign->group = text(group);
    campaign->id = text(id);
}

static void make_renew(struct forwarding *forwarding, const char *group, const char *holder, uint64_t high,
                       uint64_t low, uint64_t epoch)
{
    Gavel__Renew *renew = MAKE(forwarding, GAVEL__OP__WHAT_RENEW, renew, renew, gavel__renew__init);

    renew->group = text(group);
    renew->holder = text(holder);
    renew->nonce_high = high;
    renew->nonce_low = low;
    renew->epoch = epoch;
    renew->lease_ms = LEASE_MS;
}

static void make_register(struct forwarding *forwarding, const char *group, const char *id, uint64_t instance,
                          uint64_t beats)
{
    Gavel__Register *registration = MAKE(forwarding, GAVEL__OP__WHAT_REGISTER_CANDIDATE, register_candidate,
                                         registration, gavel__register__init);

    registration->group = text(group);
    registration->id = text(id);
    registration->instance = instance;
    registration->address = text("here:1");
    registration->timeout_ms = LEASE_MS;
    registration->beats = beats;
}

/* ---- the victim ---- */

static void must(struct line *line, uint64_t session, uint64_t id, struct forwarding *forwarding,
                 const char *what)
{
    char why[256];
    uint32_t status = GAVEL_OK;

    for (int i = 0; i < FRAMES_MAX; i++) { /* the machine may be busy, and the cluster with it */
        status = request(line, session, id, &forwarding->op, why);
        if (status != GAVEL_ERR_STORE_UNAVAILABLE && status != GAVEL_ERR_TIMEOUT &&
            status != GAVEL_ERR_NOT_LEADER)
            break;
    }
    if (status == GAVEL_OK)
        return;
    (void)fprintf(stderr, "lost: %s: %u %s\n", what, status, why);
    exit(1);
}

/* Returns the epoch of the lease. */
static uint64_t settle_in(struct line *line, uint64_t session, uint64_t nonce, uint64_t instance)
{
    struct forwarding forwarding;
    Gavel__Claim *claim;
    Gavel__PutNote *note;
    Gavel__ClientFrame *answer;
    uint64_t epoch;

    make_open(&forwarding, session);
    must(line, session, 1, &forwarding, "open");
    make_campaign(&forwarding, "work", "victim");
    must(line, session, 2, &forwarding, "campaign");
    claim = MAKE(&forwarding, GAVEL__OP__WHAT_CLAIM, claim, claim, gavel__claim__init);
    claim->group = text("job");
    claim->holder = text("victim");
    claim->nonce_high = claim->nonce_low = nonce;
    claim->lease_ms = LEASE_MS;
    must(line, 0, 0, &forwarding, "claim");
    make_register(&forwarding, "job", "victim", instance, 1);
    must(line, 0, 0, &forwarding, "register");
    note = MAKE(&forwarding, GAVEL__OP__WHAT_PUT_NOTE, put_note, note, gavel__put_note__init);
    note->group = text("work");
    note->key = text("where");
    must(line, session, 3, &forwarding, "note");
    answer = ask(line, GAVEL__ASK__KIND__GROUP, "job", false);
    if (answer->answer->n_groups != 1)
        give_up("the group is not there");
    epoch = answer->answer->groups[0]->epoch;
    client_frame_free(answer);
    return epoch;
}

static int be_victim(struct line *line, uint64_t session, uint64_t nonce, uint64_t instance)
{
    uint64_t epoch = settle_in(line, session, nonce, instance);
    const struct timespec pause = {.tv_nsec = ROUND_MS * 1000000L};
    struct forwarding forwarding;

    for (uint64_t beats = 2;; beats++) {
        if (!keeps_alive(line, session)) {
            (void)fprintf(stderr, "lost: the session is gone\n");
            return 1;
        }
        make_campaign(&forwarding, "work", "victim"); /* as it is, so nothing changes */
        must(line, session, 2 + beats, &forwarding, "campaign again");
        make_renew(&forwarding, "job", "victim", nonce, nonce, epoch);
        must(line, 0, 0, &forwarding, "renew");
        make_register(&forwarding, "job", "victim", instance, beats);
        must(line, 0, 0, &forwarding, "heartbeat");
        printf("kept\n");
        (void)fflush(stdout); /* whoever reads it may be gone */
        (void)nanosleep(&pause, NULL);
    }
}

/* As a candidate that is frozen, or was cut off, once it leads. */
static int be_holder(struct line *line, const char *group, const char *lease_ms)
{
    struct forwarding forwarding;
    Gavel__Claim *claim = MAKE(&forwarding, GAVEL__OP__WHAT_CLAIM, claim, claim, gavel__claim__init);

    claim->group = text(group);
    claim->holder = text("holder");
    claim->nonce_high = claim->nonce_low = 1;
    claim->lease_ms = atoi(lease_ms);
    must(line, 0, 0, &forwarding, "claim");
    return 0;
}

/* ---- those who are after it ---- */

/* Whether it was granted. */
static bool try(struct line *line, uint64_t session, uint64_t id, struct forwarding *forwarding,
                const char *what)
{
    char why[256];
    uint32_t status = request(line, session, id, &forwarding->op, why);

    printf("%s: %s: %u %s\n", what, status == GAVEL_OK ? "granted" : "refused", status, why);
    return status == GAVEL_OK;
}

static bool watches(struct line *line, uint64_t session)
{
    Gavel__ClientFrame frame;
    Gavel__Watch watch;
    Gavel__ClientFrame *answer;
    bool is_granted;

    gavel__client_frame__init(&frame);
    gavel__watch__init(&watch);
    watch.watch = 1;
    watch.session = session;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_WATCH;
    frame.watch = &watch;
    say(line, &frame);
    answer = hear(line);
    is_granted = answer->what_case != GAVEL__CLIENT_FRAME__WHAT_WATCH_ENDED;
    printf("watch: %s\n", is_granted ? "granted" : "refused");
    client_frame_free(answer);
    return is_granted;
}

static int be_thief(struct line *line, uint64_t session)
{
    struct forwarding forwarding;
    bool is_granted;

    make_close(&forwarding, session);
    is_granted = try(line, 0, 0, &forwarding, "close");
    is_granted |= try(line, session, UINT64_C(1) << 40, &forwarding, "close as it");
    make_open(&forwarding, session);
    is_granted |= try(line, session, 1, &forwarding, "open again");
    make_campaign(&forwarding, "work", "thief");
    is_granted |= try(line, session, (UINT64_C(1) << 40) + 1, &forwarding, "campaign");
    make_campaign(&forwarding, "other", "thief");
    is_granted |= try(line, session, (UINT64_C(1) << 40) + 2, &forwarding, "campaign elsewhere");
    MAKE(&forwarding, GAVEL__OP__WHAT_WITHDRAW, withdraw, withdraw, gavel__withdraw__init)->group =
        text("work");
    is_granted |= try(line, session, (UINT64_C(1) << 40) + 3, &forwarding, "withdraw");
    if (keeps_alive(line, session)) {
        printf("keep-alive: granted\n");
        is_granted = true;
    } else {
        printf("keep-alive: refused\n");
    }
    is_granted |= watches(line, session);
    return is_granted;
}

/* With the nonce that is shown, and without one. */
static bool end_mandate(struct line *line, const Gavel__Group *group, bool has_nonce, bool is_killed)
{
    struct forwarding forwarding;
    Gavel__Release *release =
        MAKE(&forwarding, GAVEL__OP__WHAT_RELEASE, release, release, gavel__release__init);

    release->group = group->name;
    release->holder = group->holder;
    release->nonce_high = has_nonce ? group->nonce_high : 0;
    release->nonce_low = has_nonce ? group->nonce_low : 0;
    release->epoch = group->epoch;
    release->is_killed = is_killed;
    return try(line, 0, 0, &forwarding, is_killed ? "release as killed" : "release");
}

static bool take_place(struct line *line, const char *group, const Gavel__Candidate *candidate)
{
    struct forwarding forwarding;
    Gavel__Leave *leave;
    bool is_granted;

    make_register(&forwarding, group, candidate->id, candidate->instance, 1000);
    is_granted = try(line, 0, 0, &forwarding, "heartbeat");
    leave = MAKE(&forwarding, GAVEL__OP__WHAT_LEAVE, leave, leave, gavel__leave__init);
    leave->group = text(group);
    leave->id = candidate->id;
    leave->instance = candidate->instance;
    (void)try(line, 0, 0, &forwarding, "leave"); /* who is not there has left: that is told in any case */
    return is_granted;
}

static int be_finder(struct line *line, const char *name)
{
    Gavel__ClientFrame *frame = ask(line, GAVEL__ASK__KIND__CANDIDATES, name, false);
    const Gavel__Group *group = frame->answer->n_groups == 1 ? frame->answer->groups[0] : NULL;
    struct forwarding forwarding;
    bool is_granted = false;

    if (!group || !group->is_held)
        give_up("nobody leads the group");
    for (int i = 0; i < 4; i++)
        is_granted |= end_mandate(line, group, i % 2 == 0, i / 2 == 0);
    make_renew(&forwarding, name, group->holder, group->nonce_high, group->nonce_low, group->epoch);
    is_granted |= try(line, 0, 0, &forwarding, "renew");
    for (size_t i = 0; i < group->n_candidates; i++) {
        make_close(&forwarding, group->candidates[i]->session);
        if (group->candidates[i]->session != 0)
            (void)try(line, 0, 0, &forwarding, "close"); /* of what is not open */
        is_granted |= take_place(line, name, group->candidates[i]);
    }
    client_frame_free(frame);
    return is_granted;
}

/* All changes of all groups that are remembered. */
static void read_changes(struct line *line)
{
    Gavel__ClientFrame frame;
    Gavel__Watch watch;
    uint64_t until = 0;
    uint64_t revision = 0;
    size_t count = 0;
    Gavel__ClientFrame *answer = ask(line, GAVEL__ASK__KIND__GROUPS, "", true);

    gavel__client_frame__init(&frame);
    gavel__watch__init(&watch);
    until = answer->answer->revision;
    client_frame_free(answer);
    watch.watch = 1;
    watch.after_revision = 1;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_WATCH;
    frame.watch = &watch;
    say(line, &frame);
    while (revision < until) {
        answer = hear_kind(line, GAVEL__CLIENT_FRAME__WHAT_CHANGES);
        revision = answer->changes->revision;
        count += answer->changes->n_changes;
        client_frame_free(answer);
    }
    printf("read %zu changes\n", count);
}

static int be_reader(struct line *line)
{
    static const char *const groups[] = {"work", "job"};
    size_t count = 0;

    for (int kind = GAVEL__ASK__KIND__GROUP; kind <= GAVEL__ASK__KIND__NOTES; kind++) {
        for (size_t i = 0; i < 4; i++) {
            const char *group = kind == GAVEL__ASK__KIND__GROUPS ? "" : groups[i / 2];
            Gavel__ClientFrame *answer = ask(line, (Gavel__Ask__Kind)kind, group, i % 2 == 0);

            count += answer->answer->n_groups + answer->answer->n_notes;
            client_frame_free(answer);
        }
    }
    printf("read %zu groups and notes\n", count);
    read_changes(line);
    return line->is_found;
}

/* ---- main ---- */

static void become(uid_t user)
{
    if (setgroups(0, NULL) || setresgid((gid_t)user, (gid_t)user, (gid_t)user) || setresuid(user, user, user))
        give_up("cannot become another user");
}

/* Options; returns the first argument behind them. */
static int read_options(int argc, char **argv, struct line *line)
{
    int at = 1;

    line->secret = "";
    while (at + 1 < argc && strncmp(argv[at], "--", 2) == 0) {
        if (strcmp(argv[at], "--user") == 0) {
            become((uid_t)strtoul(argv[at + 1], NULL, 10));
            at += 2;
        } else if (strcmp(argv[at], "--secret") == 0) {
            line->secret = argv[at + 1];
            at += 2;
        } else if (strcmp(argv[at], "--tls") == 0 && at + 3 < argc) {
            line->files = argv + at + 1;
            at += 4;
        } else {
            give_up("wrong options");
        }
    }
    return at;
}

int main(int argc, char **argv)
{
    static struct line line; /* whoever ends early leaves it to the system */
    int at = read_options(argc, argv, &line);
    uint64_t numbers[16] = {0};
    size_t count = 0;

    (void)signal(SIGPIPE, SIG_IGN); /* a node may end the line at any time */
    if (argc - at < 3)
        give_up("wrong arguments");
    for (int i = at + 2; i < argc && count < sizeof numbers / sizeof *numbers; i++)
        numbers[count++] = strtoull(argv[i], NULL, 16);
    if (!connect_to(&line, argv[at]) || (line.files && !begin_tls(&line)))
        give_up("no connection");
    greet(&line);
    if (strcmp(argv[at + 1], "victim") == 0 && count == 3)
        return be_victim(&line, numbers[0], numbers[1], numbers[2]);
    if (strcmp(argv[at + 1], "thief") == 0)
        return be_thief(&line, numbers[0]);
    if (strcmp(argv[at + 1], "finder") == 0)
        return be_finder(&line, argv[at + 2]);
    if (strcmp(argv[at + 1], "holder") == 0 && count == 2)
        return be_holder(&line, argv[at + 2], argv[at + 3]);
    line.wanted = numbers;
    line.wanted_count = count;
    return be_reader(&line);
}
