/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Who may speak to whom. Both sides look at the other's greeting and at its
 * certificate; the one that refuses says why, in words that read the same in
 * both logs: they name the nodes, never "this" and "the other".
 */

#include "net/internal.h"

#include "net/seal.h"
#include "net/tls.h"

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
               ": it was forced to begin anew without %s; empty its data folder and let it join",
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

/* The certificate decides who it is; what it says of itself must agree. */
static void check_certificate(struct check *check, SSL *ssl)
{
    const struct peer_hello *a = check->self, *b = check->hello;
    struct tls_identity identity;

    if (!ssl)
        return;
    if (!tls_identity_of(ssl, &identity))
        REFUSE(check, "the certificate of %s does not name a cluster (O) and a node (CN)", b->name);
    else if (strcmp(identity.cluster, a->cluster_name) != 0)
        REFUSE(check, "the certificate of %s is for cluster \"%s\", not \"%s\"", b->name, identity.cluster,
               a->cluster_name);
    else if (strcmp(identity.node, b->name) != 0)
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

static bool is_welcome(struct connection *connection, const struct peer_hello *hello, char text[TEXT])
{
    struct transport *transport = connection->transport;
    struct check check = {.self = &transport->settings.self, .hello = hello};
    void (*const checks[])(struct check *) = {check_version, check_cluster, check_own_id, check_generation};

    for (size_t i = 0; i < sizeof checks / sizeof checks[0] && check.text[0] == '\0'; i++)
        checks[i](&check);
    if (check.text[0] == '\0')
        check_certificate(&check, connection->ssl);
    if (check.text[0] == '\0')
        check_known(&check, transport);
    memcpy(text, check.text, sizeof check.text);
    return text[0] == '\0';
}

/*
 * Every start of a node adds one to its incarnation. Whoever comes with an old one, in the same one as
 * another process, or without the generation that it had, comes with another disk than before: it may have
 * forgotten votes, and must not vote again.
 */
static bool remembers(const struct connection *connection, const struct peer_hello *hello, char text[TEXT])
{
    const struct link *link = link_find(connection->transport, hello->node);

    if (!link || link->incarnation == 0)
        return true;
    if (hello->incarnation < link->incarnation)
        text_write(text, TEXT,
                   "%s was in incarnation %" PRIu64 " before and is in %" PRIu64
                   " now: it has lost its data, or an old copy was put back; remove the member and add it "
                   "under a new name",
                   hello->name, link->incarnation, hello->incarnation);
    else if (hello->incarnation == link->incarnation && hello->process != link->process)
        text_write(text, TEXT,
                   "%s is in incarnation %" PRIu64 " again, as another process: it has lost its data, or its "
                   "folder was copied; remove the member and add it under a new name",
                   hello->name, hello->incarnation);
    else if (hello->generation == 0 && link->generation != 0)
        text_write(text, TEXT,
                   "%s joins with an empty folder, and was a member before: it has lost its data; remove the "
                   "member and add it under a new name",
                   hello->name);
    else
        return true;
    return false;
}

static void remember(struct link *link, const struct peer_hello *hello)
{
    link->incarnation = hello->incarnation;
    link->process = hello->process;
    link->generation = hello->generation;
}

/*
 * What a side says of itself when it is refused, or refuses us, may be acted on: a later generation ends a
 * node. So it counts only if its certificate says the same; without TLS there is nobody but this machine.
 */
static const struct peer_hello *proven(const struct connection *connection, const struct peer_hello *hello)
{
    const struct peer_hello *self = &connection->transport->settings.self;
    struct tls_identity identity;

    if (!hello || !connection->ssl)
        return hello;
    return tls_identity_of(connection->ssl, &identity) && strcmp(identity.cluster, self->cluster_name) == 0 &&
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
    const struct transport *transport = connection->transport;
    const char *wanted = connection->link->where.name;
    struct tls_identity identity;

    if (!connection->ssl)
        return true;
    if (!tls_identity_of(connection->ssl, &identity))
        text_write(text, TEXT, "the certificate at %s does not name a cluster (O) and a node (CN)",
                   connection->place);
    else if (strcmp(identity.cluster, transport->settings.self.cluster_name) != 0)
        text_write(text, TEXT, "the certificate of %s is for cluster \"%s\", not \"%s\"", identity.node,
                   identity.cluster, transport->settings.self.cluster_name);
    else if (strcmp(identity.node, wanted) != 0)
        text_write(text, TEXT, "%s was dialled at %s, where %s answers; correct the address of %s", wanted,
                   connection->place, identity.node, wanted);
    else
        return true;
    return false;
}

void greet_begin(struct connection *connection)
{
    struct peer_frame frame = {.kind = PEER_HELLO, .hello = connection->transport->settings.self};
    char text[TEXT];

    if (!has_right_certificate(connection, text)) {
        refuse_dialled(connection, text, NULL, false);
        return;
    }
    frame.hello.to = connection->link->where.id;
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
static bool is_expected(struct connection *connection, const struct peer_hello *hello, char text[TEXT])
{
    const struct peer_hello *self = &connection->transport->settings.self;
    const struct connection *older = find_older(connection, hello->node);

    if (hello->to != self->node)
        text_write(text, TEXT, "%s looked for another node where %s is; correct the address in its \"peers\"",
                   hello->name, self->name);
    else if (is_double(older, connection, hello))
        text_write(text, TEXT,
                   "two nodes are called %s, and one is connected from %s already; give each its own name",
                   hello->name, older->place);
    else
        return true;
    return false;
}

void greet_hello(struct connection *connection, const struct peer_hello *hello)
{
    struct transport *transport = connection->transport;
    const struct peer_hello *self = &transport->settings.self;
    struct peer_frame frame = {.kind = PEER_WELCOME, .hello = *self};
    uint32_t version = hello->version_max < self->version_max ? hello->version_max : self->version_max;
    struct connection *older;
    char text[TEXT];
    struct link *link;

    if (!is_welcome(connection, hello, text) || !is_expected(connection, hello, text) ||
        !remembers(connection, hello, text)) {
        refuse_accepted(connection, text, hello);
        return;
    }
    frame.hello.version_min = frame.hello.version_max = version;
    frame.hello.to = hello->node;
    if (!connection_write(connection, &frame)) {
        connection_close(connection);
        return;
    }
    connection->phase = PHASE_UP;
    connection->peer = hello->node;
    connection->process = hello->process;
    memcpy(connection->name, hello->name, sizeof connection->name);
    (void)event_del(&connection->deadline);
    older = find_older(connection, hello->node);
    if (older)
        connection_close(older);
    link = link_find(transport, hello->node);
    connection->link = link;
    if (link) {
        link->in = connection;
        remember(link, hello);
        link->told_in[0] = '\0';
        link_dial_soon(link); /* it is alive */
    }
    tell(transport, TRANSPORT_GREETED, hello->node, connection->place, hello);
}

void greet_welcome(struct connection *connection, const struct peer_hello *hello)
{
    struct link *link = connection->link;
    const struct peer_hello *self = &connection->transport->settings.self;
    char text[TEXT];

    if (!is_welcome(connection, hello, text) || !remembers(connection, hello, text)) {
        refuse_dialled(connection, text, hello, true);
    } else if (hello->node != link->where.id) {
        text_write(text, sizeof text, "%s was dialled at %s, where %s answers; correct the address of %s",
                   link->where.name, link->where.address, hello->name, link->where.name);
        refuse_dialled(connection, text, hello, true);
    } else if (hello->version_max < self->version_min || hello->version_max > self->version_max) {
        refuse_dialled(connection, "a version of the protocol that was not offered", hello, true);
    } else {
        connection->phase = PHASE_UP;
        connection->peer = hello->node;
        memcpy(connection->name, hello->name, sizeof connection->name);
        remember(link, hello);
        link_up(link, hello);
    }
}

/* The other side does not want us. */
void greet_refused(struct connection *connection, const struct peer_frame *refusal)
{
    const struct peer_hello *hello = proven(connection, refusal->hello.node != 0 ? &refusal->hello : NULL);
    char text[TEXT];

    text_write(text, sizeof text, "refused us: %s", refusal->text);
    if (connection->is_dialled) {
        link_failed(connection->link, TRANSPORT_REFUSED, text, hello);
        return;
    }
    connection_close(connection);
    tell_accepted(connection, TRANSPORT_REFUSED, text, hello);
}
