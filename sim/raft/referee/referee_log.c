/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The logs, and the one history of what was committed.
 *
 * Log Matching is kept by a register of all entries that ever stood at an
 * index: an index and a term name one entry, with one term before it. Then a
 * log is known by its terms alone, and "this node has the committed log up to
 * i" is one comparison, of the term at i.
 *
 *   index     1    2    3    4    5
 *   slots   [1]  [1]  [1]  [4]  [4]     the committed term, and by which leader's term it was committed
 *   variants  1    1    1    2    4      all entries ever seen there
 *                            4
 */

#include "sim/common/heap.h"
#include "sim/raft/referee/referee_shadow.h"

#include <string.h>

static uint64_t hash_entry(const struct raft_entry *entry)
{
    uint64_t hash = hash_add(hash_add(HASH_START, entry->term), (uint64_t)entry->kind);

    hash = hash_add(hash, entry->size);
    for (uint32_t i = 0; i < entry->size; i++)
        hash = hash_add(hash, entry->data[i]);
    return hash;
}

void terms_restart(struct terms *terms, raft_index base, raft_term base_term)
{
    terms->base = base;
    terms->base_term = base_term;
    terms->count = 0;
}

void terms_compact(struct terms *terms, raft_index base, raft_term base_term)
{
    size_t gone;

    if (base <= terms->base)
        return;
    if (base >= terms_last(terms)) {
        terms_restart(terms, base, base_term);
        return;
    }
    gone = base - terms->base;
    memmove(terms->items, terms->items + gone, (terms->count - gone) * sizeof *terms->items);
    terms->base = base;
    terms->base_term = base_term;
    terms->count -= gone;
}

void terms_truncate(struct terms *terms, raft_index index)
{
    if (index > terms->base && index <= terms_last(terms))
        terms->count = index - terms->base - 1;
}

void terms_append(struct terms *terms, raft_term term)
{
    terms->items = grow(terms->items, terms->count, &terms->capacity, sizeof *terms->items);
    terms->items[terms->count++] = term;
}

void terms_copy(struct terms *terms, const struct terms *from)
{
    terms_restart(terms, from->base, from->base_term);
    for (size_t i = 0; i < from->count; i++)
        terms_append(terms, from->items[i]);
}

static struct log_slot *slot_of(struct raft_referee *referee, raft_index index)
{
    while (referee->slot_count <= index) {
        referee->slots =
            grow(referee->slots, referee->slot_count, &referee->slot_capacity, sizeof *referee->slots);
        referee->slots[referee->slot_count++] = (struct log_slot){0};
    }
    return &referee->slots[index];
}

/* An entry stands in the log of a node: the register knows it, or it is new there. */
static void register_entry(struct raft_referee *referee, const struct shadow *shadow, raft_index index,
                           const struct raft_entry *entry, raft_term previous_term)
{
    struct log_slot *slot = slot_of(referee, index);
    uint64_t hash = hash_entry(entry);
    struct variant *variant;

    for (uint32_t i = slot->variants; i != 0; i = variant->next) {
        variant = &referee->pool[i - 1];
        if (variant->term != entry->term)
            continue;
        if (variant->hash == hash && variant->previous_term == previous_term)
            return;
        raft_referee_violate(referee, RAFT_INVARIANT_MATCHING,
                             "node %llu has at index %llu another entry of term %llu than was there before%s",
                             (ull)shadow->id, (ull)index, (ull)entry->term,
                             variant->hash == hash ? " (or another log before it)" : "");
    }
    referee->pool = grow(referee->pool, referee->pool_count, &referee->pool_capacity, sizeof *referee->pool);
    variant = &referee->pool[referee->pool_count++];
    *variant = (struct variant){entry->term, previous_term, hash, slot->variants};
    slot->variants = (uint32_t)referee->pool_count;
}

void referee_log_restored(struct raft_referee *referee, struct shadow *shadow,
                          const struct raft_restore *restore)
{
    const struct raft_snapshot *snapshot = &restore->snapshot;
    raft_term previous = snapshot->term;

    terms_restart(&shadow->memory, snapshot->index, snapshot->term);
    for (size_t i = 0; i < restore->entry_count; i++) {
        register_entry(referee, shadow, snapshot->index + 1 + i, &restore->entries[i], previous);
        previous = restore->entries[i].term;
        terms_append(&shadow->memory, previous);
    }
}

/*
 * A node drops what stands in its log from index on, by order of the leader of `term`. Nothing of that may
 * have been committed in this term or before. In a later one it may: a majority that the node is not part of
 * has committed it then, while the node still follows a leader of the past (Raft figure 8 is about just
 * that).
 */
static void check_dropped(struct raft_referee *referee, const struct shadow *shadow, raft_index index,
                          raft_term term)
{
    raft_term dropped = terms_at(&shadow->memory, index);

    if (index <= shadow->memory.base || dropped == 0 || index > referee->commit)
        return;
    if (referee->slots[index].term == dropped && referee->slots[index].committed_by <= term)
        raft_referee_violate(referee, RAFT_INVARIANT_TRUNCATED,
                             "node %llu drops entries from index %llu on, which is committed (term %llu)",
                             (ull)shadow->id, (ull)index, (ull)dropped);
}

static void check_snapshot(struct raft_referee *referee, const struct shadow *shadow, raft_index index,
                           raft_term term)
{
    if (index == 0)
        return;
    if (index > referee->commit)
        raft_referee_violate(referee, RAFT_INVARIANT_DURABLE,
                             "node %llu has a snapshot up to index %llu, but only %llu is committed",
                             (ull)shadow->id, (ull)index, (ull)referee->commit);
    if (slot_of(referee, index)->term != term)
        raft_referee_violate(
            referee, RAFT_INVARIANT_MACHINE,
            "node %llu has a snapshot up to index %llu of term %llu; that of term %llu is committed",
            (ull)shadow->id, (ull)index, (ull)term, (ull)referee->slots[index].term);
}

void referee_log_changed(struct raft_referee *referee, struct shadow *shadow,
                         const struct raft_persist *persist)
{
    const struct raft_log *log = &shadow->raft->log;
    const struct raft_snapshot *snapshot = &shadow->raft->snapshot;
    struct terms *memory = &shadow->memory;

    if (persist->has_snapshot) {
        check_snapshot(referee, shadow, snapshot->index, snapshot->term);
        if (persist->restarts_log) {
            check_dropped(referee, shadow, snapshot->index + 1, persist->state.term);
            terms_restart(memory, snapshot->index, snapshot->term);
        } else {
            terms_compact(memory, snapshot->index, snapshot->term);
        }
    }
    if (persist->truncate != 0) {
        check_dropped(referee, shadow, persist->truncate, persist->state.term);
        terms_truncate(memory, persist->truncate);
    }
    for (raft_index i = persist->first; persist->first != 0 && i <= persist->last; i++) {
        const struct raft_entry *entry = raft_log_at(log, i);

        if (!entry || i != terms_last(memory) + 1) {
            raft_referee_violate(referee, RAFT_INVARIANT_ORDER,
                                 "node %llu writes entry %llu after %llu, or without having it",
                                 (ull)shadow->id, (ull)i, (ull)terms_last(memory));
            return;
        }
        register_entry(referee, shadow, i, entry, terms_at(memory, i - 1));
        terms_append(memory, entry->term);
    }
}

static bool has_on_disk(const void *context, raft_id id)
{
    const struct raft_referee *referee = context;
    const struct terms *disk = &referee->shadows[id < RAFT_REFEREE_IDS ? id : 0].disk_log;
    raft_index index = referee->checked_index;

    return index <= disk->base || terms_at(disk, index) == referee->checked_term;
}

/* Index and everything before it becomes committed, by this leader. */
static void check_new_commit(struct raft_referee *referee, struct shadow *shadow, raft_index index)
{
    const struct raft *raft = shadow->raft;

    if (shadow->is_frozen && shadow->frozen_term == raft->state.term && index > shadow->frozen_commit)
        raft_referee_violate(referee, RAFT_INVARIANT_COMPLETE,
                             "node %llu commits %llu although it has certified to stop at %llu",
                             (ull)shadow->id, (ull)index, (ull)shadow->frozen_commit);
    referee->checked_index = index;
    referee->checked_term = raft_log_term(&raft->log, index);
    /* A configuration that this very step has put in force may have decided, or the one before. */
    if (!referee_decides(&raft->config, has_on_disk, referee) &&
        !referee_decides(&shadow->config, has_on_disk, referee))
        raft_referee_violate(referee, RAFT_INVARIANT_DURABLE,
                             "node %llu commits index %llu, which is not on the disks of a majority",
                             (ull)shadow->id, (ull)index);
    for (raft_index i = referee->commit + 1; i <= index; i++) {
        struct log_slot *slot = slot_of(referee, i);

        slot->term = terms_at(&shadow->memory, i);
        slot->committed_by = raft->state.term;
        if (slot->term == 0)
            raft_referee_violate(referee, RAFT_INVARIANT_DURABLE, "node %llu commits %llu without having it",
                                 (ull)shadow->id, (ull)i);
    }
    referee->counts.committed += index - referee->commit;
    referee->commit = index;
}

/* Whether this node has the committed log up to index. */
static bool has_committed(const struct raft_referee *referee, const struct shadow *shadow, raft_index index)
{
    const struct terms *memory = &shadow->memory;

    if (index <= memory->base)
        return true;
    return terms_at(memory, index) == referee->slots[index].term;
}

/* A leader of an older term has just committed; those of newer terms must have had it all along. */
static void check_newer_leaders(struct raft_referee *referee, const struct shadow *by)
{
    for (raft_id id = 1; id < RAFT_REFEREE_IDS; id++) {
        const struct shadow *shadow = &referee->shadows[id];

        if (!shadow->raft || shadow->raft->role != RAFT_LEADER ||
            shadow->raft->state.term <= by->raft->state.term)
            continue;
        if (!has_committed(referee, shadow, referee->commit))
            raft_referee_violate(
                referee, RAFT_INVARIANT_COMPLETE,
                "node %llu leads in term %llu without index %llu, which node %llu has committed in term %llu",
                (ull)id, (ull)shadow->raft->state.term, (ull)referee->commit, (ull)by->id,
                (ull)by->raft->state.term);
    }
}

void referee_commit_moved(struct raft_referee *referee, struct shadow *shadow)
{
    const struct raft *raft = shadow->raft;
    raft_index commit = raft->commit;
    /* One that has removed itself commits and leaves in one step. */
    bool is_leader = raft->role == RAFT_LEADER ||
                     (shadow->before.role == RAFT_LEADER && shadow->before.term == raft->state.term);

    if (commit < shadow->before.commit)
        raft_referee_violate(referee, RAFT_INVARIANT_REGRESS,
                             "node %llu takes its commit back from %llu to %llu", (ull)shadow->id,
                             (ull)shadow->before.commit, (ull)commit);
    if (is_leader && raft_log_term(&raft->log, commit) != raft->state.term)
        raft_referee_violate(referee, RAFT_INVARIANT_OWN_TERM,
                             "node %llu, leader of term %llu, commits index %llu of term %llu by counting",
                             (ull)shadow->id, (ull)raft->state.term, (ull)commit,
                             (ull)raft_log_term(&raft->log, commit));
    if (commit > referee->commit) {
        if (!is_leader)
            raft_referee_violate(
                referee, RAFT_INVARIANT_DURABLE,
                "node %llu takes index %llu for committed; no leader has committed beyond %llu",
                (ull)shadow->id, (ull)commit, (ull)referee->commit);
        check_new_commit(referee, shadow, commit);
        check_newer_leaders(referee, shadow);
    }
    if (!has_committed(referee, shadow, commit))
        raft_referee_violate(
            referee, RAFT_INVARIANT_MACHINE,
            "node %llu takes its entry %llu of term %llu for committed; that of term %llu is",
            (ull)shadow->id, (ull)commit, (ull)terms_at(&shadow->memory, commit),
            (ull)referee->slots[commit].term);
}

void referee_log_elected(struct raft_referee *referee, const struct shadow *shadow)
{
    raft_term term = shadow->raft->state.term;
    raft_index index = referee->commit;

    /* A late leader of an old term need not have what a newer one has committed meanwhile. */
    while (index > 0 && referee->slots[index].committed_by >= term)
        index--;
    if (index > 0 && !has_committed(referee, shadow, index))
        raft_referee_violate(referee, RAFT_INVARIANT_COMPLETE,
                             "node %llu leads in term %llu without index %llu, committed in term %llu",
                             (ull)shadow->id, (ull)term, (ull)index, (ull)referee->slots[index].committed_by);
}

static void check_digest(struct raft_referee *referee, raft_id id, raft_index index, uint64_t digest)
{
    struct log_slot *slot = slot_of(referee, index);

    if (slot->has_digest && slot->digest != digest)
        raft_referee_violate(referee, RAFT_INVARIANT_MACHINE,
                             "the table of node %llu differs from the others' after index %llu", (ull)id,
                             (ull)index);
    slot->has_digest = true;
    slot->digest = digest;
}

void raft_referee_applied(struct raft_referee *referee, gavel_ns at, raft_id id, raft_index index,
                          const struct raft_entry *entry, uint64_t digest)
{
    struct shadow *shadow = shadow_of(referee, id);

    referee->now = at;
    if (index != shadow->applied + 1)
        raft_referee_violate(referee, RAFT_INVARIANT_MACHINE, "node %llu applies index %llu after %llu",
                             (ull)id, (ull)index, (ull)shadow->applied);
    if (index > referee->commit || referee->slots[index].term != entry->term)
        raft_referee_violate(referee, RAFT_INVARIANT_MACHINE,
                             "node %llu applies index %llu of term %llu, which is not committed", (ull)id,
                             (ull)index, (ull)entry->term);
    shadow->applied = index;
    check_digest(referee, id, index, digest);
}

void raft_referee_restored(struct raft_referee *referee, gavel_ns at, raft_id id, raft_index index,
                           uint64_t digest)
{
    struct shadow *shadow = shadow_of(referee, id);

    referee->now = at;
    if (index > referee->commit)
        raft_referee_violate(referee, RAFT_INVARIANT_MACHINE,
                             "node %llu restores a snapshot up to %llu; %llu is committed", (ull)id,
                             (ull)index, (ull)referee->commit);
    shadow->applied = index;
    check_digest(referee, id, index, digest);
}

void raft_referee_acknowledged(struct raft_referee *referee, gavel_ns at, raft_index index)
{
    referee->now = at;
    if (index > referee->commit)
        raft_referee_violate(referee, RAFT_INVARIANT_MACHINE,
                             "a client is told of index %llu; %llu is committed", (ull)index,
                             (ull)referee->commit);
}
