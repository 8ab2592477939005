/* SPDX-License-Identifier: Apache-2.0 */

/* The network between the nodes: letters under way, links that are cut, letters that the story holds. */

#include "trace/node.h"

#include <stdlib.h>
#include <string.h>

/* Nobody on the stage knows this but the guards and the nodes. */
#define KEY UINT64_C(0x6761766c2d6b6579)

void letters_add(struct letters *letters, const struct letter *letter)
{
    struct raft_message *message;

    if (letters->count == letters->capacity) {
        letters->capacity = letters->capacity > 0 ? 2 * letters->capacity : 16;
        letters->items = reallocarray(letters->items, letters->capacity, sizeof *letters->items);
    }
    letters->items[letters->count] = *letter;
    message = &letters->items[letters->count++].message;
    if (message->kind == RAFT_MSG_APPEND && message->append.entry_count > 0) {
        struct raft_entry *entries = calloc(message->append.entry_count, sizeof *entries);

        for (uint32_t i = 0; i < message->append.entry_count; i++) {
            entries[i] = message->append.entries[i];
            if (entries[i].size > 0) {
                uint8_t *bytes = malloc(entries[i].size);

                memcpy(bytes, entries[i].data, entries[i].size);
                entries[i].data = bytes;
            }
        }
        message->append.entries = entries;
    }
    if (message->kind == RAFT_MSG_SNAPSHOT && message->snapshot.size > 0) {
        uint8_t *bytes = malloc(message->snapshot.size);

        memcpy(bytes, message->snapshot.data, message->snapshot.size);
        message->snapshot.data = bytes;
    }
}

void letter_done(struct letter *letter)
{
    struct raft_message *message = &letter->message;

    if (message->kind == RAFT_MSG_APPEND && message->append.entry_count > 0) {
        for (uint32_t i = 0; i < message->append.entry_count; i++)
            free((void *)(uintptr_t)message->append.entries[i].data);
        free((void *)(uintptr_t)message->append.entries);
    }
    if (message->kind == RAFT_MSG_SNAPSHOT && message->snapshot.size > 0)
        free((void *)(uintptr_t)message->snapshot.data);
}

/* Takes it out; what it holds is the caller's now, or letter_done() has freed it. */
void letters_remove(struct letters *letters, size_t which)
{
    letters->count--;
    memmove(letters->items + which, letters->items + which + 1,
            (letters->count - which) * sizeof *letters->items);
}

void letters_free(struct letters *letters)
{
    for (size_t i = 0; i < letters->count; i++)
        letter_done(&letters->items[i]);
    free(letters->items);
    *letters = (struct letters){0};
}

void post_send(struct cluster *cluster, raft_id route, const struct raft_message *message)
{
    struct link *link;
    struct letter letter;

    if (message->to == 0 || message->to > NODES_MAX || route > NODES_MAX) {
        fprintf(cluster->loud, "ALARM: a message to nobody\n");
        return;
    }
    link = &cluster->links[route][message->to];
    if (link->cut_kinds & (1u << message->kind))
        return;
    letter = (struct letter){
        .at = cluster->now + link->delay,
        .order = ++cluster->order,
        .is_held = (link->held_kinds & (1u << message->kind)) != 0,
        .route = route,
        .message = *message,
    };
    letters_add(&cluster->post, &letter);
}

struct letter *post_next(struct cluster *cluster)
{
    struct letter *next = NULL;

    for (size_t i = 0; i < cluster->post.count; i++) {
        struct letter *letter = &cluster->post.items[i];

        /* What arrives at a node that hangs waits in its socket. */
        if (letter->is_held || cluster->nodes[letter->message.to].is_hung)
            continue;
        if (!next || letter->at < next->at || (letter->at == next->at && letter->order < next->order))
            next = letter;
    }
    return next;
}

void post_deliver(struct cluster *cluster, struct letter *letter)
{
    struct letter own = *letter;
    struct raft_message *message = &own.message;
    struct node *to = &cluster->nodes[message->to];
    unsigned cut_kinds = cluster->links[own.route][message->to].cut_kinds;
    const char *reason = NULL;

    letters_remove(&cluster->post, (size_t)(letter - cluster->post.items));
    /* What the story delivers by hand arrives in any case. */
    if (to->is_alive && (own.is_held || !(cut_kinds & (1u << message->kind)))) {
        if (raft_message_check(message, &reason) != GAVEL_OK)
            alarm_raise(cluster, to, "got a message that no node should send: %s", reason);
        else
            (void)node_feed(cluster, to, /* a refusal is told */
                            (struct raft_event){.kind = RAFT_RECEIVE, .message = message});
    }
    letter_done(&own);
}

static struct letter *first_held(struct cluster *cluster, raft_id from, raft_id to)
{
    struct letter *first = NULL;

    for (size_t i = 0; i < cluster->post.count; i++) {
        struct letter *letter = &cluster->post.items[i];

        if (letter->is_held && letter->route == from && letter->message.to == to &&
            (!first || letter->order < first->order))
            first = letter;
    }
    return first;
}

size_t post_release(struct cluster *cluster, raft_id from, raft_id to, size_t most, enum fate fate)
{
    static const char *const words[] = {
        [ARRIVES] = "arrives", [LOST] = "lost", [REPEATED] = "a copy arrives"};
    size_t done = 0;

    for (; done < most; done++) {
        struct letter *letter = first_held(cluster, from, to);

        if (!letter)
            break;
        fprintf(cluster->out, "            %s: ", words[fate]);
        tell_message(cluster->out, &letter->message);
        fputc('\n', cluster->out);
        if (fate == REPEATED) {
            size_t which = (size_t)(letter - cluster->post.items);
            struct letter copy = *letter;

            copy.order = ++cluster->order;
            letters_add(&cluster->post, &copy);
            letter = &cluster->post.items[which];
        }
        if (fate == LOST) {
            letter_done(letter);
            letters_remove(&cluster->post, (size_t)(letter - cluster->post.items));
        } else {
            post_deliver(cluster, letter);
        }
    }
    return done;
}

size_t post_raise(struct cluster *cluster, raft_id from, raft_id to, raft_term by)
{
    size_t raised = 0;

    for (size_t i = 0; i < cluster->post.count; i++) {
        struct letter *letter = &cluster->post.items[i];
        struct raft_message *m = &letter->message;

        if (!letter->is_held || letter->route != from || m->to != to)
            continue;
        m->term += by;
        if (m->kind == RAFT_MSG_VOTE || m->kind == RAFT_MSG_PRE_VOTE)
            m->vote.term += by;
        else if (m->kind == RAFT_MSG_VOTE_REPLY || m->kind == RAFT_MSG_PRE_VOTE_REPLY)
            m->vote_reply.term += by;
        raised++;
    }
    return raised;
}

/* Not a mac that would keep anybody out; enough to tell a genuine certificate from a forged one here. */
static uint64_t digest(const struct raft_certificate *certificate)
{
    const uint64_t parts[] = {KEY,
                              certificate->kind,
                              certificate->node,
                              certificate->incarnation,
                              certificate->term,
                              certificate->lease_epoch,
                              certificate->target,
                              certificate->commit};
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        hash = (hash ^ parts[i]) * UINT64_C(0x100000001b3);
        hash ^= hash >> 29;
    }
    return hash;
}

void post_sign(void *context, struct raft_certificate *certificate)
{
    uint64_t mac = digest(certificate);

    (void)context; /* the key is the same for all */
    memset(certificate->mac, 0, sizeof certificate->mac);
    memcpy(certificate->mac, &mac, sizeof mac);
}

bool post_verify(void *context, const struct raft_certificate *certificate)
{
    struct raft_certificate genuine = *certificate;

    post_sign(context, &genuine);
    return memcmp(genuine.mac, certificate->mac, sizeof genuine.mac) == 0;
}
