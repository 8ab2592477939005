/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Who may speak to whom. Both sides check the other's greeting and certificate. The
 * one that refuses says why, in words that read the same in both logs: they name
 * the nodes, never "this" and "the other".
 */

#include "net/internal.h"

#include "base/assert.h"
#include "net/prove.h"
#include "net/tls.h"
#include "os/clock.h"
#include "os/entropy.h"

#include <inttypes.h>
#include <string.h>

#define TEXT (PEER_TEXT_MAX + 1)

/* For so long after it has spoken the first of two nodes with one name keeps its place. */
#define DOUBLE_FOR (2 * NS_PER_S)

/* Each check writes a refusal to `text`, or leaves it empty. */
struct check {
    const struct peer_hello *self;
    const struct peer_hello *hello;
    char text[TEXT];
};

#define REFUSE(check, ...) text_write((check)->text, sizeof(check)->text, __VA_ARGS__)

static void check_version(struct check *check)
{
    const struct peer_hello *a = check->self, *b = check->hello;

    if (a->version_max < b->version_min || b->version_max < a->version_min)
        REFUSE(check, "%s speaks versions %u to %u of the protocol, %s versions %u to %u; upgrade %s",
               a->name, a->version_min, a->version_max, b->name, b->version_min, b->version_max,
               a->version_max < b->version_max ? a->name : b->name);
}

static void check_cluster(struct check *check)
{
    const struct peer_hello *a = check->self, *b = check->hello;

    if (strcmp(a->cluster_name, b->cluster_name) != 0)
        REFUSE(check,
               "%s belongs to cluster \"%s\", %s to cluster \"%s\"; correct \"cluster\" or the addresses",
               a->name, a->cluster_name, b->name, b->cluster_name);
    else if (a->cluster != b->cluster)
        REFUSE(check, "%s and %s have different ids of cluster \"%s\": %016" PRIx64 " and %016" PRIx64,
               a->name, b->name, a->cluster_name, a->cluster, b->cluster);
}

/* 0 is a node that has not been told yet. */
static void check_generation(struct check *check)
{
    const struct peer_hello *a = check->self, *b = check->hello;
    const struct peer_hello *old = a->generation < b->generation ? a : b;

    if (a->generation != b->generation && old->generation != 0)
        REFUSE(check,
               "%s is in generation %" PRIu64 " of the cluster, %s in generation %" PRIu64
               ": it was founded again without %s; empty its data directory and let it join",
               a->name, a->generation, b->name, b->generation, old->name);
    else if (a->bootstrap != b->bootstrap && a->bootstrap != 0 && b->bootstrap != 0)
        REFUSE(check,
               "%s and %s were bootstrapped with different members; use the same list \"peers\" everywhere",
               a->name, b->name);
}

static void check_own_id(struct check *check)
{
    const struct peer_hello *a = check->self, *b = check->hello;

    if (a->node == b->node)
        REFUSE(check, "two nodes are called %s, or it has dialled itself; give each its own name and address",
               b->name);
}

/* Whose certificate is this? Only a node of the cluster may be here. `who`: by what it was dialled, or calls
 * itself. */
static bool is_of_a_node(const struct connection *connection, const char *who,
                         struct tls_identity *ret_identity, char text[TEXT])
{
    const struct transport *transport = connection->transport;
    const char *cluster = transport->settings.self.cluster_name;
    struct tls_identity identity;

    if (!tls_identity_of(connection->ssl, &identity))
        text_write(text, TEXT, "the certificate of %s does not name a cluster (O) and a node (CN)", who);
    else if (strcmp(identity.cluster, cluster) != 0)
        text_write(text, TEXT, "the certificate of %s is for cluster \"%s\", not \"%s\"", who,
                   identity.cluster, cluster);
    else if (identity.is_revoked ||
             tls_is_revoked(transport->tls, connection->ssl)) /* by a newer list, too */
        text_write(text, TEXT, "the certificate of %s is revoked", identity.node);
    else if (identity.kind == TLS_KIND_CLIENT)
        text_write(text, TEXT, "the certificate of %s is a client's; clients do not speak on this port",
                   identity.node);
    else if (identity.kind != TLS_KIND_NODE)
        text_write(
            text, TEXT,
            "the certificate of %s does not say that it is a node's, like all from before 0.7.0; issue it again with \"gavel cert issue %s --force\"",
            identity.node, identity.node);
    else {
        *ret_identity = identity;
        return true;
    }
    return false;
}

/* The certificate decides who it is; what it says of itself must agree. */
static void check_certificate(struct check *check, const struct connection *connection)
{
    const struct peer_hello *b = check->hello;
    struct tls_identity identity;

    if (!connection->ssl || !is_of_a_node(connection, b->name, &identity, check->text))
        return;
    if (strcmp(identity.node, b->name) != 0)
        REFUSE(check, "the certificate of %s is for node \"%s\"", b->name, identity.node);
    else if (b->node != seal_id_of_name("node", b->name))
        REFUSE(check, "%s does not have the id of its name", b->name);
}

static void check_known(struct check *check, const struct transport *transport)
{
    const struct peer_hello *b = check->hello;
    const struct link *link = link_find(transport, b->node);

    if (link && strcmp(link->where.name, b->name) != 0)
        REFUSE(check, "%s has the id of %s", b->name, link->where.name);
}

/* Says that it knows a later configuration than we do, and offers to prove itself. */
static bool is_ahead(const struct transport *transport, const struct peer_hello *hello)
{
    return hello->has_nonce && hello->config_index > transport->members_as_of;
}

/*
 * Whether a proof means anything. The key of a cluster without a secret is made from its name, and everybody
 * has it: then a certificate says who somebody is, and only the list says whether that one is a member.
 * Without TLS, too, every user of the machine is a peer, as the node says when it starts.
 */
static bool can_vouch_for_itself(const struct transport *transport)
{
    return transport->settings.has_secret || !transport->tls;
}

/* transport_set_members() says who is. */
static bool is_member(const struct transport *transport, const struct peer_hello *hello)
{
    if (link_find(transport, hello->node) || transport->settings.takes_strangers)
        return true;
    for (size_t i = 0; i < transport->member_count; i++)
        if (transport->members[i] == hello->node)
            return true;
    return can_vouch_for_itself(transport) && is_ahead(transport, hello);
}

/* Nodes of before 0.7.0 prove nothing; their certificate must do. They tell no directory, so that they are
 * let in only as long as the member that they call themselves is not bound to one (raft_trust()). */
static bool must_prove(const struct connection *connection, const struct peer_hello *hello)
{
    return hello->has_nonce || hello->directory != 0 ||
           (!connection->ssl && connection->transport->settings.has_secret);
}

static bool is_welcome(struct connection *connection, const struct peer_hello *hello, char text[TEXT])
{
    struct transport *transport = connection->transport;
    struct check check = {.self = &transport->settings.self, .hello = hello};
    void (*const checks[])(struct check *) = {check_version, check_cluster, check_own_id, check_generation};

    for (size_t i = 0; i < sizeof checks / sizeof checks[0] && check.text[0] == '\0'; i++)
        checks[i](&check);
    if (check.text[0] == '\0')
        check_certificate(&check, connection);
    if (check.text[0] == '\0')
        check_known(&check, transport);
    memcpy(text, check.text, sizeof check.text);
    return text[0] == '\0';
}

/* What an operator does about it. */
#define REPLACE "replace the member: gavel member remove, an empty directory, gavel member add, --join"

/* Whether its data directory may be that of the member, and its program take part. Nothing follows from it
 * but a refusal, as long as it has not proven who it is. */
static bool is_admitted(struct connection *connection, const struct peer_hello *hello, bool is_proven,
                        char text[TEXT])
{
    const struct transport_events *events = &connection->transport->events;

    enum transport_verdict verdict =
        events->admit ? events->admit(events->user, hello, is_proven, text) : TRANSPORT_ADMITS;

    connection->refuses_directory = verdict == TRANSPORT_REFUSES_DIRECTORY;
    return verdict == TRANSPORT_ADMITS;
}

/*
 * Every start of a node adds one to its incarnation. Whoever comes with an old one, in the same one as
 * another process, or without the generation that it had, comes with another disk than before: it may have
 * forgotten votes, and must not vote again.
 */
static bool remembers(struct connection *connection, const struct peer_hello *hello, bool is_proven,
                      char text[TEXT])
{
    const struct link *link = link_find(connection->transport, hello->node);

    if (!link || link->incarnation == 0 || hello->directory != link->directory)
        return true; /* of another directory nothing is remembered; whether it may come is not for us */
    if (hello->incarnation < link->incarnation)
        text_write(text, TEXT,
                   "%s was in incarnation %" PRIu64 " before and is in %" PRIu64
                   " now: it has lost its data, or an old copy was put back; " REPLACE,
                   hello->name, link->incarnation, hello->incarnation);
    else if (hello->incarnation == link->incarnation && hello->process != link->process)
        text_write(text, TEXT,
                   "%s is in incarnation %" PRIu64
                   " again, as another process: it has lost its data, or they were copied; " REPLACE,
                   hello->name, hello->incarnation);
    else if (hello->generation == 0 && link->generation != 0)
        text_write(
            text, TEXT,
            "%s joins with an empty directory, and was a member before: it has lost its data; " REPLACE,
            hello->name);
    else
        return true;
    connection->refuses_directory = true;
    /* Whom we dialled after that is no late word of a process that has ended: it is there now. */
    if (is_proven && connection->is_dialled && connection->made_at > link->remembered_at &&
        link->directory != 0 && connection->transport->events.distrust)
        connection->transport->events.distrust(connection->transport->events.user, hello->node);
    return false;
}

static void remember(struct link *link, const struct peer_hello *hello)
{
    link->directory = hello->directory;
    link->remembered_at = clock_now();
    link->incarnation = hello->incarnation;
    link->process = hello->process;
    link->generation = hello->generation;
}

/*
 * What a side says of itself when it is refused, or refuses us, may be acted on: a later generation ends a
 * node. So it counts only if it is a member, its certificate says the same, and the generation is sealed by
 * the secret.
 */
static const struct peer_hello *proven(const struct connection *connection, const struct peer_hello *hello)
{
    const struct transport *transport = connection->transport;
    struct tls_identity identity;
    char text[TEXT];

    if (!hello || !prove_generation_check(transport->settings.key, hello) || !is_member(transport, hello))
        return NULL;
    if (!connection->ssl)
        return hello;
    return is_of_a_node(connection, hello->name, &identity, text) &&
                   strcmp(identity.cluster, hello->cluster_name) == 0 &&
                   strcmp(identity.node, hello->name) == 0 &&
                   hello->node == seal_id_of_name("node", hello->name)
               ? hello
               : NULL;
}

/* We refuse whom we dialled: the link tries again later, the connection only stays to say why. */
static void refuse_dialled(struct connection *connection, const char *text, const struct peer_hello *hello,
                           bool tells_self)
{
    struct link *link = connection->link;
    char reason[TEXT];

    text_write(reason, sizeof reason, "refused by us: %s", text);
    hello = proven(connection, hello);
    link->out = NULL;
    connection->link = NULL;
    connection_refuse(connection, text, tells_self);
    link_failed(link, TRANSPORT_REFUSED, reason, hello);
}

/* Before we tell who we are: is it whom we dialled? */
static bool has_right_certificate(struct connection *connection, char text[TEXT])
{
    const char *wanted = connection->link->where.name;
    struct tls_identity identity;

    if (!connection->ssl)
        return true;
    if (!is_of_a_node(connection, wanted, &identity, text))
        return false;
    if (strcmp(identity.node, wanted) != 0)
        text_write(text, TEXT, "%s was dialled at %s, where %s answers; correct the address of %s", wanted,
                   connection->remote, identity.node, wanted);
    else
        return true;
    return false;
}

/* What we say of ourselves on this connection, with a nonce of its own. */
static void prepare(struct connection *connection, raft_id to)
{
    struct peer_hello *own = &connection->own;

    *own = connection->transport->settings.self;
    own->to = to;
    own->has_nonce = true;
    for (size_t i = 0; i < PEER_NONCE_BYTES; i += sizeof(uint64_t)) {
        uint64_t random = entropy_u64();

        memcpy(own->nonce + i, &random, sizeof random);
    }
}

/* Our answer to the nonce of the one who dialled. */
static void prove(struct connection *connection, const struct peer_hello *hello)
{
    connection->own.has_proof = hello->has_nonce;
    if (hello->has_nonce)
        prove_make(connection->transport->settings.key, PROVE_ACCEPTED, &connection->own, hello->nonce,
                   connection->own.proof);
}

static void write_unproven(const struct connection *connection, const struct peer_hello *hello,
                           char text[TEXT])
{
    const struct peer_hello *self = &connection->transport->settings.self;

    if (hello->has_nonce)
        text_write(
            text, TEXT,
            "%s and %s do not have the same secret of cluster \"%s\"; set \"secret\" to the same file for all nodes",
            hello->name, self->name, self->cluster_name);
    else
        text_write(
            text, TEXT,
            "%s does not prove that it has the secret of cluster \"%s\", as no program from before 0.7.0 can; upgrade it, or set tls",
            hello->name, self->cluster_name);
}

void greet_begin(struct connection *connection)
{
    struct peer_frame frame = {.kind = PEER_HELLO};
    char text[TEXT];

    if (!has_right_certificate(connection, text)) {
        refuse_dialled(connection, text, NULL, false);
        return;
    }
    prepare(connection, connection->link->where.id);
    frame.hello = connection->own;
    if (!connection_write(connection, &frame))
        link_failed(connection->link, TRANSPORT_FAILED, "out of memory", NULL);
}

static void refuse_accepted(struct connection *connection, const char *text, const struct peer_hello *hello)
{
    char reason[TEXT];

    text_write(reason, sizeof reason, "refused by us: %s", text);
    hello = proven(connection, hello);
    connection_refuse(connection, text, true);
    tell_accepted(connection, TRANSPORT_REFUSED, reason, hello);
}

/* The connection that this node had to us before; it is of the past, unless two nodes have one name. */
static struct connection *find_older(const struct connection *connection, raft_id peer)
{
    struct connection *other;

    for (other = LIST_FIRST(&connection->transport->accepted); other; other = LIST_NEXT(other, entry))
        if (other != connection && other->phase == PHASE_UP && other->peer == peer)
            return other;
    return NULL;
}

/* A node that was started again has closed its connection, or is silent on it. */
static bool is_double(const struct connection *older, const struct connection *connection,
                      const struct peer_hello *hello)
{
    return older && older->process != hello->process && connection->heard_at - older->heard_at < DOUBLE_FOR;
}

/* What only the one who was dialled can say. */
static bool is_expected(const struct connection *connection, const struct peer_hello *hello, char text[TEXT])
{
    const struct transport *transport = connection->transport;
    const struct peer_hello *self = &transport->settings.self;
    const struct connection *older = find_older(connection, hello->node);

    if (hello->to != self->node)
        text_write(text, TEXT, "%s looked for another node where %s is; correct the address in its \"peers\"",
                   hello->name, self->name);
    else if (!is_member(transport, hello) && is_ahead(transport, hello))
        text_write(
            text, TEXT,
            "%s is not a member of cluster \"%s\", as far as %s knows, and cannot prove that it was added since: give all nodes the same \"secret\" (gavel cert secret), or replace %s",
            hello->name, self->cluster_name, self->name, self->name);
    else if (!is_member(transport, hello))
        text_write(
            text, TEXT,
            "%s is not a member of cluster \"%s\", as far as %s knows; to add it: gavel member add %s %s",
            hello->name, self->cluster_name, self->name, hello->name,
            hello->address[0] ? hello->address : "ADDRESS");
    else if (is_double(older, connection, hello))
        text_write(text, TEXT,
                   "two nodes are called %s, and one is connected from %s already; give each its own name",
                   hello->name, older->remote);
    else
        return true;
    return false;
}

/* It is who it says, and may send from now on. */
static void let_in(struct connection *connection, const struct peer_hello *hello)
{
    struct transport *transport = connection->transport;
    struct connection *older = find_older(connection, hello->node);
    struct link *link = link_find(transport, hello->node);

    ASSERT(!connection->is_dialled);
    ASSERT(connection->phase == PHASE_HELLO || connection->phase == PHASE_PROOF);
    connection->phase = PHASE_UP;
    connection->peer = hello->node;
    connection->process = hello->process;
    memcpy(connection->name, hello->name, sizeof connection->name);
    (void)event_del(&connection->deadline);
    if (older)
        connection_close(older);
    connection->link = link;
    if (link) {
        link->in = connection;
        remember(link, hello);
        link->told_in[0] = '\0';
        link_dial_soon(link); /* it is alive */
    }
    tell(transport, TRANSPORT_GREETED, hello->node, connection->remote, hello);
}

void greet_hello(struct connection *connection, const struct peer_hello *hello)
{
    const struct peer_hello *self = &connection->transport->settings.self;
    struct peer_frame frame = {.kind = PEER_WELCOME};
    char text[TEXT];

    prepare(connection, hello->node);
    connection->own.version_min = connection->own.version_max =
        hello->version_max < self->version_max ? hello->version_max : self->version_max;
    prove(connection, hello);
    if (!is_welcome(connection, hello, text) || !is_expected(connection, hello, text) ||
        !is_admitted(connection, hello, false, text) || !remembers(connection, hello, false, text)) {
        connection->own.version_min = self->version_min;
        connection->own.version_max = self->version_max;
        refuse_accepted(connection, text, hello);
        return;
    }
    if (must_prove(connection, hello) && !hello->has_nonce) {
        write_unproven(connection, hello, text);
        refuse_accepted(connection, text, hello);
        return;
    }
    frame.hello = connection->own;
    if (!connection_write(connection, &frame)) {
        connection_close(connection);
    } else if (must_prove(connection, hello)) {
        ASSERT(connection->phase == PHASE_HELLO);
        connection->greeting = *hello;
        connection->phase = PHASE_PROOF;
    } else {
        let_in(connection, hello);
    }
}

/* Time has passed since its greeting: whoever else came meanwhile is looked at, too. */
void greet_proof(struct connection *connection, const uint8_t proof[PEER_PROOF_BYTES])
{
    const struct peer_hello hello = connection->greeting;
    char text[TEXT];

    if (!prove_check(connection->transport->settings.key, PROVE_DIALLED, &hello, connection->own.nonce,
                     proof)) {
        write_unproven(connection, &hello, text);
        refuse_accepted(connection, text, &hello);
    } else if (!is_expected(connection, &hello, text) || !is_admitted(connection, &hello, true, text) ||
               !remembers(connection, &hello, true, text)) {
        refuse_accepted(connection, text, &hello);
    } else {
        let_in(connection, &hello);
    }
}

/* Whom we dialled has the secret, or need not show that it has. */
static bool has_proven(const struct connection *connection, const struct peer_hello *hello)
{
    return !must_prove(connection, hello) || (hello->has_nonce && hello->has_proof &&
                                              prove_check(connection->transport->settings.key, PROVE_ACCEPTED,
                                                          hello, connection->own.nonce, hello->proof));
}

/* Whom we dialled has the secret, and we show that we have it. */
static bool prove_both(struct connection *connection, const struct peer_hello *hello, char text[TEXT])
{
    const uint8_t *key = connection->transport->settings.key;
    struct peer_frame frame = {.kind = PEER_PROOF};

    if (!must_prove(connection, hello))
        return true;
    if (!has_proven(connection, hello)) {
        write_unproven(connection, hello, text);
        return false;
    }
    prove_make(key, PROVE_DIALLED, &connection->own, hello->nonce, frame.proof);
    if (connection_write(connection, &frame))
        return true;
    text_write(text, TEXT, "out of memory");
    return false;
}

void greet_welcome(struct connection *connection, const struct peer_hello *hello)
{
    struct link *link = connection->link;
    const struct peer_hello *self = &connection->transport->settings.self;
    bool is_proven = has_proven(connection, hello);
    char text[TEXT];

    connection->own.has_proof = is_proven && hello->has_nonce; /* for a refusal that counts */
    if (connection->own.has_proof)
        prove_make(connection->transport->settings.key, PROVE_DIALLED, &connection->own, hello->nonce,
                   connection->own.proof);
    if (!is_welcome(connection, hello, text) || !is_admitted(connection, hello, is_proven, text) ||
        !remembers(connection, hello, is_proven, text)) {
        refuse_dialled(connection, text, hello, true);
    } else if (hello->node != link->where.id) {
        text_write(text, sizeof text, "%s was dialled at %s, where %s answers; correct the address of %s",
                   link->where.name, link->where.address, hello->name, link->where.name);
        refuse_dialled(connection, text, hello, true);
    } else if (hello->version_max < self->version_min || hello->version_max > self->version_max) {
        refuse_dialled(connection, "a version of the protocol that was not offered", hello, true);
    } else if (!prove_both(connection, hello, text)) {
        refuse_dialled(connection, text, hello, true);
    } else {
        ASSERT(connection->is_dialled);
        ASSERT(connection->phase == PHASE_HELLO);
        connection->phase = PHASE_UP;
        connection->peer = hello->node;
        memcpy(connection->name, hello->name, sizeof connection->name);
        remember(link, hello);
        link_up(link, hello);
    }
}

/*
 * A node ends if the cluster refuses its data directory, so whoever says that answers our nonce. The seal of
 * its generation is not enough: everybody who greets is told that.
 */
static bool is_answer(const struct connection *connection, const struct peer_hello *hello)
{
    return connection->own.has_nonce && hello->has_nonce && hello->has_proof &&
           prove_check(connection->transport->settings.key,
                       connection->is_dialled ? PROVE_ACCEPTED : PROVE_DIALLED, hello, connection->own.nonce,
                       hello->proof);
}

/* The other side does not want us. */
void greet_refused(struct connection *connection, const struct peer_frame *refusal)
{
    const struct peer_hello *hello = proven(connection, refusal->hello.node != 0 ? &refusal->hello : NULL);
    enum transport_news news = refusal->is_directory && hello && is_answer(connection, hello)
                                   ? TRANSPORT_DISOWNED
                                   : TRANSPORT_REFUSED;
    char text[TEXT];

    text_write(text, sizeof text, "refused us: %s", refusal->text);
    if (connection->is_dialled) {
        link_failed(connection->link, news, text, hello);
        return;
    }
    connection_close(connection);
    tell_accepted(connection, news, text, hello);
}
