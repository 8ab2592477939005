/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One node of the cluster on the stage, with what surrounds it: its clock, its
 * disk, its work, and its guard.
 *
 *        command, timer, message, PERSISTED, WORK_STOPPED
 *                             │
 *                         node_step()
 *                             │
 *     PERSIST → disk    SEND → network    WORK_START, WORK_STOP → work    TELL → the story
 *
 * Every node has a clock of its own, hours away from the others', so that a
 * comparison of two nodes' clocks cannot go unnoticed. The stage has one real
 * time; what is printed is always real time.
 */
#ifndef TRACE_HOST_H
#define TRACE_HOST_H

#include "core/node/node.h"

#include <stdio.h>

#define NODES_MAX 9
#define NETWORK_DELAY NS_PER_MS
#define DISK_DELAY (NS_PER_MS / 10)
#define TICK_EVERY (100 * NS_PER_MS)
#define ALL_KINDS ((1u << RAFT_MESSAGE_KIND_COUNT) - 1)

/* A change on its way to the disk. */
struct write {
    gavel_ns at; /* durable then; NEVER: it hangs, or waits behind one that does */
    bool hangs;
    struct raft_persist persist;
    struct raft_entry *entries; /* first … last; owned */
    struct raft_snapshot snapshot;
};

/* What survives a crash, and the writes that do not. */
struct disk {
    bool is_made;
    bool fails;       /* the next write does */
    unsigned to_hang; /* so many of the next writes, each until it is resumed */
    bool batches;     /* what waits while a write is under way is written together, as one */
    gavel_ns takes;
    struct raft_state state;
    struct raft_snapshot snapshot;
    struct raft_entry *entries; /* after the snapshot; owned */
    size_t entry_count;
    struct write *writes;
    size_t write_count;
    uint64_t synced; /* the newest seq of this start that is durable */
};

/* A message under way, or held by the story. */
struct packet {
    gavel_ns at;
    uint64_t order;
    bool is_held;
    raft_id route; /* whose link it takes: the sender's; for an obituary, that of the dead node's host */
    struct raft_message message;
};

struct packets {
    struct packet *items;
    size_t count;
    size_t capacity;
};

struct link {
    unsigned cut_kinds;
    unsigned held_kinds;
    gavel_ns delay;
    gavel_ns jitter;    /* at most so much more, at random */
    uint64_t bandwidth; /* bytes a second; 0: whatever there is leaves at once */
    gavel_ns busy_until;
    gavel_ns last_at; /* when the newest message arrives: none overtakes another */
};

struct host {
    raft_id id; /* 1 … 9, on the stage a … i */
    bool is_made;
    bool is_alive;
    bool is_hung;
    bool is_refounded; /* it was emptied and founded again: it belongs to another cluster of this name */
    struct raft_settings settings; /* its own; those of the cluster unless the story says otherwise */
    struct node node;
    struct table table;
    struct disk disk;
    struct disk copy; /* of the disk, as `copy` made it; is_made if there is one */

    gavel_ns clock_from; /* real time since when the clock has had its rate */
    gavel_ns clock_base; /* what it showed then */
    int64_t clock_ppm;

    bool is_working; /* claimed, and not yet stopped */
    raft_term work_term;
    uint64_t work_epoch;
    gavel_ns stop_takes;
    gavel_ns stopped_at;   /* real; NEVER if the work is not stopping */
    gavel_ns must_stop_by; /* real */

    raft_index applied;
    bool has_applied; /* ever, by this directory */
    gavel_ns tick_at; /* real; in stories with clients */
};

/* What all nodes must agree on. */
struct agreed {
    raft_term term;
    char *text; /* owned */
};

/* What the nodes of one cluster did together. */
struct history {
    raft_term claim_term; /* the token of the newest claim */
    uint64_t claim_epoch;
    raft_id *leaders; /* by term; owned */
    size_t leader_count;
    struct agreed *agreed; /* by index; owned */
    size_t agreed_count;
};

/* What Raft said in one event and all that it left to do. */
struct said {
    struct raft_action *items; /* owned */
    size_t count;
};

struct cluster {
    FILE *out;
    FILE *loud; /* the same, also while `elect` keeps quiet */
    gavel_ns now;
    uint64_t seed;
    struct raft_settings settings;
    struct raft_config config; /* the first */
    struct host hosts[NODES_MAX + 1];
    struct link links[NODES_MAX + 1][NODES_MAX + 1];
    struct packets in_flight;
    struct prng jitter;
    uint64_t order;
    unsigned watched_kinds; /* kinds of messages that are always printed */
    bool watches_heartbeats;
    bool has_names;         /* the nodes: members have records, and operators give orders */
    bool has_directories;   /* of data, each with a number */
    bool binds;             /* members to them from the beginning */
    uint64_t directories;   /* numbers given so far */
    uint64_t starts;        /* likewise */
    bool is_obituary_false; /* a guard has lied: two may work at once */
    gavel_ns load_every;    /* 0: no load */
    gavel_ns load_at;
    uint64_t load_count;
    raft_term token_term; /* the newest token that the model resource has seen */
    uint64_t token_epoch;
    struct history histories[2]; /* of those that never forgot, and of those that were founded again */
    uint64_t words;              /* proposed so far */
    struct node_actions actions;
    struct said said;
    struct clients *clients; /* programs, and what is forwarded for them; NULL in stories without any */
};

/* node.c */
struct host *host_find(struct cluster *cluster, raft_id id);
gavel_ns host_clock(const struct cluster *cluster, const struct host *host);
gavel_ns host_real(const struct cluster *cluster, const struct host *host, gavel_ns local);
void host_start(struct cluster *cluster, struct host *host);
void host_crash(struct cluster *cluster, struct host *host, bool is_kept);
/* What Raft said. Whether a message may leave is for the node to say: not here. */
void host_carry(struct cluster *cluster, struct host *host, const struct raft_action *action);
gavel_ns host_due_at(const struct cluster *cluster, const struct host *host);
void host_do_due(struct cluster *cluster, struct host *host);
void host_free(struct host *host);

/* What its table has, in the order in which it came. */
void host_tell_words(struct host *host, FILE *out);

/* A word as an entry of the log, and back; in the table it has the number as its key. */
#define WORD_BYTES_MAX 512
#define GIVEN_WORDS 1000000000 /* the numbers of entries that a node begins with: above this */
struct raft_entry word_entry(uint64_t number, const char *word, uint8_t bytes[WORD_BYTES_MAX]);
const char *word_of(const struct raft_entry *entry, int *ret_size); /* of DATA */

/* step.c: one event, and all that it leaves to do. `now` is filled in. */
enum gavel_status host_step(struct cluster *cluster, struct host *host, struct node_event event);
enum gavel_status host_feed(struct cluster *cluster, struct host *host, struct raft_event event);

/* order.c: nodes with names, and whether they work, as each tells the others. */
void order_introduce(struct cluster *cluster, struct host *host);
void order_tell_status(struct cluster *cluster, const struct host *host);

/* disk.c */
void disk_make(struct disk *disk, const struct raft_config *config, raft_id id);
void disk_write(struct cluster *cluster, struct host *host, const struct raft_persist *persist);
/* The oldest write that hangs goes on; false if none does. */
bool disk_resume(const struct cluster *cluster, struct disk *disk);
/* Makes the oldest write durable; false if the log would have a gap. */
bool disk_sync(struct disk *disk);
void disk_forget(struct disk *disk);
void disk_free(struct disk *disk);

/* network.c */
void network_send(struct cluster *cluster, raft_id route, const struct raft_message *message);
/* When so many bytes that leave now arrive. */
gavel_ns network_arrives_at(struct cluster *cluster, raft_id from, raft_id to, uint64_t size);
void packets_add(struct packets *packets, const struct packet *packet);
void packets_remove(struct packets *packets, size_t which);
void packet_done(struct packet *packet);
void packets_free(struct packets *packets);
/* The packet that arrives next, by `at` and order, at a node that can take it; NULL if none. */
struct packet *network_next(struct cluster *cluster);
void network_deliver(struct cluster *cluster, struct packet *packet);
enum fate { ARRIVES, LOST, REPEATED };
/* What becomes, now, of the first `most` held packets of a link. Returns how many there were. */
/* Adds to the terms of all that is held; how many there were. */
size_t network_raise(struct cluster *cluster, raft_id from, raft_id to, raft_term by);
size_t network_release(struct cluster *cluster, raft_id from, raft_id to, size_t most, enum fate fate);
void certificate_sign(void *context, struct raft_certificate *certificate);
bool certificate_verify(void *context, const struct raft_certificate *certificate);

/* tell.c */
void tell(const struct cluster *cluster, const struct host *host, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Something that must never happen; the story fails whatever it expects. */
void alarm_raise(const struct cluster *cluster, const struct host *host, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
char name_of(raft_id id);
double seconds(gavel_ns real);
/* Packets that leave at the same instant. */
void tell_sends(const struct cluster *cluster, const struct host *host, const struct packets *packets);
void tell_news(const struct cluster *cluster, const struct host *host, const struct raft_action *action);
void tell_members(const struct cluster *cluster, const struct host *host, const char *what);
void tell_election(FILE *out, const struct raft_election *election);
void tell_config(FILE *out, const struct raft_config *config);
void tell_certificate(FILE *out, const struct raft_certificate *certificate);
void tell_message(FILE *out, const struct raft_message *message);
void tell_node(const struct cluster *cluster, const struct host *host);

/* referee.c */
void referee_check(struct cluster *cluster, struct host *host);
void referee_applied(struct cluster *cluster, struct host *host, raft_index index,
                     const struct raft_entry *entry);
void referee_claim(struct cluster *cluster, struct host *host);
void referee_stopped(struct cluster *cluster, struct host *host);

#endif
