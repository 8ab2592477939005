/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which data directory a member is.
 *
 * Raft rests on voters that forget nothing. A name is not enough to identify a
 * voter: a directory may vanish and be created anew under the same name, or an
 * older copy of it may be put back. So each directory has a random number, and
 * these rules hold:
 *
 *   1. The configuration binds each member to the number of one directory. The
 *      leader learns the number from the first directory that speaks for an
 *      unbound member and writes it into the log, where it stays until the member
 *      is removed. From then on any other directory is refused, whoever leads and
 *      however often it comes back.
 *   2. A node that finds another directory under its own name in the
 *      configuration does not regard itself as a voter.
 *   3. A directory whose log, when its node started, ended before what it has
 *      acknowledged is an older copy of itself. A node that notices this no longer
 *      listens to it, and the leader writes it into the configuration, too: the
 *      directory is refused for good, until the member is replaced. The same holds
 *      for one that comes in an incarnation which another process had already. So
 *      what is known of the others is kept on disk (met.c), also of a voter that is
 *      not bound yet: another directory is refused under its name, whether or not our
 *      log says which one it has.
 *   4. Members are bound only after something is committed. So a node that has
 *      heard from a bound member, and has no entry itself, knows that an empty log
 *      cannot win: it neither stands nor votes for one. It may be a founder that
 *      comes late, and an emptied directory may ask it before it knows better. A
 *      restart does not change that: it is on disk (met.c).
 *   5. A majority that is emptied and founded again, while the others are down, is
 *      another cluster of the same name, with terms and indexes that look alike.
 *      So the first configuration that binds members has a random number, the
 *      founding, which all later ones repeat. Once committed, it never changes. A
 *      node that knows that its own founding is committed refuses everything that
 *      a node of another one says: neither may follow, elect or count the other.
 *      People decide which one is right.
 *
 * A replaced member's messages carry the index of the configuration that binds it.
 * A node whose log is behind that index cannot know better, so it listens to
 * requests, as Raft listens to candidates and leaders that it does not know. What
 * is counted (votes, acknowledgements) is counted by our own configuration only.
 * Such a sender must have the founding of the cluster in its log, or it is refused.
 *
 * Every message says which founding the log of its sender has, and whether the
 * sender knows that it is committed. Until then another leader may replace it by
 * its own, so it is held against nobody, with two exceptions. A leader has
 * everything that is committed (thesis, section 3.6.3), so one whose log lacks our
 * committed founding is not our leader. And a founding in our log, committed or
 * not, binds directories: another founding is not believed from another directory,
 * unless a member in its own directory has reported it, too. No entry of a client
 * lies between the commit and the moment a node knows of it: no leader works
 * before that, and the first such entry is written together with what is committed.
 *
 * So a node that does not know yet may follow another founding, and its own is then
 * truncated. But terms look alike, and where they are the same nothing is
 * truncated: the node would keep its own founding and take the entries of the other
 * as what follows. By the Log Matching Property, a leader whose log agrees with
 * ours at the founding has that founding. So a leader that lacks it is not ours.
 */

#include "core/raft/internal.h"

#define BIND_PATIENCE (600 * NS_PER_S)

const char *raft_trust_text(enum raft_trust trust)
{
#define TEXT(name, text) [RAFT_##name] = (text),
    static const char *const texts[] = {RAFT_TRUST_MAP(TEXT)};
#undef TEXT
    return (size_t)trust < sizeof texts / sizeof *texts ? texts[trust] : "unknown";
}

bool raft_is_own(const struct raft *r, const struct raft_config *config)
{
    const struct raft_member *self = raft_config_find(config, r->state.id);

    if (PLANTED(DISOWNED_STANDS))
        return true;
    if (!self)
        return true;
    return !self->is_refused && (self->directory == 0 || self->directory == r->state.directory);
}

raft_index raft_bound_at(const struct raft *r)
{
    const struct raft_member *self = raft_config_find(&r->config, r->state.id);

    return self && self->directory != 0 && raft_is_own(r, &r->config) ? r->config_index : 0;
}

/* If its configuration is not older than our own it is right. A node that joins has none yet. Whoever has
 * another founding in its log, committed or not, than is committed here knows nothing of our cluster. */
bool raft_is_disowned(const struct raft *r, uint64_t founding, raft_index config_index)
{
    if (r->config.count == 0 || (r->founding != 0 && founding != 0 && founding != r->founding))
        return false;
    return config_index > r->config_index || (config_index == r->config_index && raft_bound_at(r) == 0);
}

uint64_t raft_founding(const struct raft *r)
{
    if (r->founding != 0)
        return r->founding;
    return r->config.generation == r->state.generation ? r->config.founding : 0;
}

bool raft_learn_founding(struct raft *r)
{
    struct raft_config config = r->config;

    if (r->founding != 0 || raft_founding(r) == 0)
        return false;
    if (r->config_index > r->commit)
        (void)raft_committed_config(r, &config);
    if (config.founding == 0 || config.generation != r->state.generation)
        return false;
    r->founding = config.founding;
    return true;
}

/* Rule 4. */
bool raft_is_blank(const struct raft *r, raft_index last) { return last == 0 && r->has_begun; }

/* Rule 3: by the same directory, in a later incarnation than we have heard from. */
static bool is_rolled_back(const struct raft *r, const struct raft_peer *peer, const struct raft_claimant *c)
{
    if (PLANTED(ROLLED_BACK_HEARD))
        return false;
    if (c->incarnation <= peer->incarnation)
        return false;
    /* What a follower has acknowledged in our own term only the leader of a later one can have truncated, and
     * then the follower is in that term. */
    return c->began_at < peer->acked ||
           (r->role == RAFT_LEADER && c->term <= r->state.term && c->began_at < peer->match);
}

/* Which directory the member is, as far as we know. */
static uint64_t bound_to(const struct raft *r, raft_id id)
{
    const struct raft_member *member = raft_config_find(&r->config, id);
    const struct raft_peer *peer = raft_peer_at(r, id);

    return member && member->directory != 0 ? member->directory : peer ? peer->directory : 0;
}

/* Rule 5. */
static bool is_of_other_founding(const struct raft *r, const struct raft_claimant *c)
{
    uint64_t bound = bound_to(r, c->id);

    if (PLANTED(FOUNDING_UNCHECKED))
        return false;
    if (raft_founding(r) == 0 || c->founding == raft_founding(r))
        return false;
    if (r->founding == 0)
        return c->is_founded && bound != 0 && c->directory != bound && r->doubted != raft_founding(r);
    return c->is_founded || c->leads || (c->asks && c->founding != 0);
}

/* Where the founding stands that we do not know to be committed: in the log, for a snapshot is committed. */
static raft_index founded_at(const struct raft *r)
{
    raft_index first = r->config_index;
    raft_index at = first;
    struct raft_config config;

    while (at > r->log.base) {
        at = raft_find_config(r, at, &config);
        if (at <= r->log.base || config.founding != raft_founding(r))
            break;
        first = at--;
    }
    return first;
}

/* Whether a leader of another founding says that its log agrees with ours where our founding stands. */
static bool contradicts_founding(const struct raft *r, const struct raft_message *m)
{
    raft_index at;
    raft_term term;

    if (PLANTED(FOUNDING_UNCHECKED))
        return false;
    if (r->founding != 0 || raft_founding(r) == 0 || m->founding == raft_founding(r))
        return false;
    at = founded_at(r);
    term = raft_log_term(&r->log, at);
    if (m->kind == RAFT_MSG_SNAPSHOT)
        return m->snapshot.index >= at && raft_log_term(&r->log, m->snapshot.index) == m->snapshot.index_term;
    if (m->kind != RAFT_MSG_APPEND)
        return false;
    if (m->founding != 0 && m->term == term)
        return true; /* the leader of that term wrote ours; before that it had none */
    if (m->append.prev_index >= at)
        return raft_log_term(&r->log, m->append.prev_index) == m->append.prev_term;
    return at - m->append.prev_index <= m->append.entry_count &&
           m->append.entries[at - m->append.prev_index - 1].term == term;
}

enum raft_trust raft_trust(const struct raft *r, const struct raft_claimant *c)
{
    const struct raft_member *member = raft_config_find(&r->config, c->id);
    const struct raft_peer *peer = raft_peer_at(r, c->id);
    uint64_t bound = bound_to(r, c->id);
    bool is_founded_alike = r->founding == 0 || c->founding == r->founding;

    if (PLANTED(FOUNDING_UNCHECKED))
        is_founded_alike = true;
    if (is_of_other_founding(r, c))
        return RAFT_OTHER_FOUNDING;
    if (!member || !peer)
        return RAFT_TRUSTED; /* a stranger: nothing is known that it could contradict */
    if (c->bound_at > r->config_index && c->directory != 0 && c->directory != bound && is_founded_alike)
        return RAFT_TRUSTED; /* replaced, by a configuration that we do not have yet */
    if (member->is_refused || peer->is_refused)
        return RAFT_REFUSED;
    if (PLANTED(DIRECTORY_UNCHECKED))
        return RAFT_TRUSTED;
    if (c->directory == 0) /* without `binds`: 0.6.0, or an upgrade that was taken back before all had it */
        return r->config.binds ? RAFT_NO_DIRECTORY : RAFT_TRUSTED;
    if (bound == 0)
        return RAFT_TRUSTED;
    if (c->directory != bound)
        return RAFT_OTHER_DIRECTORY;
    if (peer->directory != bound)
        return RAFT_TRUSTED; /* the first that we hear of it */
    if (is_rolled_back(r, peer, c))
        return RAFT_ROLLED_BACK;
    if (c->incarnation == peer->incarnation && (c->began_at != peer->began_at || c->start != peer->start))
        return RAFT_TWICE;
    if (c->incarnation < peer->incarnation && c->is_live && peer->is_recalled)
        return RAFT_ROLLED_BACK;
    return c->incarnation < peer->incarnation ? RAFT_OUTLIVED : RAFT_TRUSTED;
}

/* A member of the founding in our log, in the very directory, knows another to be committed, and might lead
 * us itself. Then directories that were replaced since are not held against their members either. */
static void doubt(struct raft *r, const struct raft_claimant *c)
{
    const struct raft_member *member = raft_config_find(&r->config, c->id);

    if (r->founding == 0 && raft_founding(r) != 0 && c->is_founded && c->founding != raft_founding(r) &&
        member && member->directory != 0 && member->directory == c->directory)
        r->doubted = raft_founding(r);
}

static void uncount(struct raft_peer *peer)
{
    peer->match = 0;
    peer->progress = RAFT_PROBE;
    peer->inflight_count = 0;
}

static void note(struct raft_peer *peer, const struct raft_claimant *c)
{
    if (c->directory == 0)
        return;
    if (c->incarnation > peer->incarnation && c->began_at < peer->match)
        uncount(peer); /* truncated in a later term, or forgotten: it has less than it said */
    if (peer->directory != c->directory) { /* the first, or a replaced one */
        peer->acked = 0;
        peer->incarnation = 0;
    }
    peer->directory = c->directory;
    peer->incarnation = c->incarnation;
    peer->start = c->start;
    peer->began_at = c->began_at;
    peer->is_recalled = false;
}

static bool is_counted(enum raft_message_kind kind)
{
    return kind == RAFT_MSG_APPEND_REPLY || kind == RAFT_MSG_VOTE_REPLY || kind == RAFT_MSG_PRE_VOTE_REPLY;
}

/* Nothing that it has said counts, and nothing that it will say. */
enum gavel_status raft_distrust(struct raft *r, raft_id id, enum raft_trust why)
{
    struct raft_peer *peer = raft_peer_find(r, id);

    if (!peer)
        return GAVEL_ERR_NOT_FOUND;
    if (peer->is_refused)
        return GAVEL_OK;
    peer->is_refused = true;
    peer->acked_round = 0;
    peer->is_granted = false;
    uncount(peer);
    raft_tell(r, RAFT_NEWS_DIRECTORY_REFUSED, id)->tell.text = raft_trust_text(why);
    return GAVEL_OK;
}

static bool is_of_leader(enum raft_message_kind kind)
{
    return kind == RAFT_MSG_APPEND || kind == RAFT_MSG_SNAPSHOT || kind == RAFT_MSG_TIMEOUT_NOW;
}

static bool is_of_candidate(enum raft_message_kind kind)
{
    return kind == RAFT_MSG_VOTE || kind == RAFT_MSG_PRE_VOTE || kind == RAFT_MSG_TAKE_OVER;
}

/* Whether what it says is to be looked at. */
bool raft_hears(struct raft *r, const struct raft_message *m)
{
    struct raft_claimant claimant = {.id = m->from,
                                     .directory = m->directory,
                                     .incarnation = m->incarnation,
                                     .term = m->term,
                                     .bound_at = is_counted(m->kind) ? 0 : m->bound_at,
                                     .began_at = m->began_at,
                                     .start = m->start,
                                     .founding = m->founding,
                                     .is_founded = m->is_founded,
                                     .leads = is_of_leader(m->kind),
                                     .asks = is_of_candidate(m->kind)};
    enum raft_trust trust = raft_trust(r, &claimant);
    struct raft_peer *peer = raft_peer_find(r, m->from);

    if (trust == RAFT_TRUSTED && contradicts_founding(r, m))
        trust = RAFT_OTHER_FOUNDING;
    if (trust != RAFT_OTHER_FOUNDING && m->kind == RAFT_MSG_CERTIFICATE)
        return true; /* it is proven by its mac */
    if (trust == RAFT_TRUSTED) {
        if (!peer)
            return true;
        note(peer, &claimant);
        doubt(r, &claimant);
        r->has_begun = r->has_begun || m->bound_at > 0;
        return true;
    }
    if (trust == RAFT_ROLLED_BACK || trust == RAFT_TWICE)
        (void)raft_distrust(r, m->from, trust); /* it is a peer */
    if (trust != RAFT_OUTLIVED)                 /* that one is only late */
        raft_refuse(r, m->from, raft_trust_text(trust));
    return false;
}

/*
 * Followers say nothing to each other between elections. Without this only the leader would know that a
 * member has begun again, and whoever leads next would take an older copy of its directory for the member.
 */
void raft_meet(struct raft *r, const struct raft_claimant *met)
{
    struct raft_peer *peer = raft_peer_find(r, met->id);
    bool is_member = peer && (peer->bound == 0 ? peer->is_voter : peer->bound == met->directory);

    if (!is_member || raft_trust(r, met) != RAFT_TRUSTED)
        return;
    note(peer, met);
    doubt(r, met);
    r->has_begun = r->has_begun || met->bound_at > 0;
}

raft_id raft_refused_one(const struct raft *r, uint64_t *ret_directory)
{
    for (size_t i = 0; i < r->peer_count; i++) {
        const struct raft_peer *peer = &r->peers[i];
        const struct raft_member *member = raft_config_find(&r->config, peer->id);

        if (peer->is_refused && peer->bound != 0 && member && !member->is_refused) {
            *ret_directory = peer->bound;
            return peer->id;
        }
    }
    return 0;
}

/*
 * Of a leader: what a follower acknowledged, its leader of then knows, and nobody else. That one may follow
 * now. So a follower tells whom it refuses, and whoever leads refuses it as well.
 */
void raft_hear_refusal(struct raft *r, raft_id id, uint64_t directory)
{
    const struct raft_peer *peer = raft_peer_at(r, id);

    if (peer && peer->bound != 0 && peer->bound == directory)
        (void)raft_distrust(r, id, RAFT_ROLLED_BACK); /* it is a peer */
}

/* Of a leader: what a peer has acknowledged, as far as it is committed, it can never lack again. */
void raft_note_acked(struct raft *r)
{
    for (size_t i = 0; i < r->peer_count; i++) {
        struct raft_peer *peer = &r->peers[i];
        raft_index acked = peer->match < r->commit ? peer->match : r->commit;

        if (acked > peer->acked)
            peer->acked = acked;
    }
}

bool raft_awaits_directory(const struct raft *r, raft_id id)
{
    const struct raft_member *member = raft_config_find(&r->config, id);
    const struct raft_peer *peer = raft_peer_at(r, id);

    return r->role == RAFT_LEADER && !r->config.binds && member && peer && member->directory == 0 &&
           peer->directory == 0;
}

/* Whoever runs 0.6.0 answers; whoever has been silent for so long is dead, and holds nobody up. */
static bool is_silent(const struct raft *r, const struct raft_peer *peer)
{
    return peer && r->now - ns_max(peer->heard_at, r->led_from) >= BIND_PATIENCE;
}

static bool learns_refusal(const struct raft_member *member, const struct raft_peer *peer)
{
    if (PLANTED(REFUSAL_NOT_WRITTEN))
        return false;
    return peer && peer->is_refused && member->directory != 0;
}

/* Fills in what we know of the directories; false if a member of a cluster that binds none yet is unknown. */
static bool learn(const struct raft *r, struct raft_config *config)
{
    bool knows_all = true;

    for (unsigned i = 0; i < config->count; i++) {
        struct raft_member *member = &config->members[i];
        const struct raft_peer *peer = raft_peer_at(r, member->id);

        if (member->directory == 0)
            member->directory = member->id == r->state.id ? r->state.directory : peer ? peer->directory : 0;
        if (learns_refusal(member, peer))
            member->is_refused = true;
        knows_all = knows_all && (member->directory != 0 || is_silent(r, peer));
    }
    return config->binds || knows_all;
}

static bool is_same(const struct raft_config *a, const struct raft_config *b)
{
    if (a->founding != b->founding)
        return false;
    for (unsigned i = 0; i < a->count; i++)
        if (a->members[i].directory != b->members[i].directory ||
            a->members[i].is_refused != b->members[i].is_refused)
            return false;
    return true;
}

/*
 * Rules 1 and 3, written down by the leader. A node of 0.6.0 cannot read a configuration with directories, so
 * the first one waits until every member has told its own, but for those that have been silent for long. Such
 * a one is bound when it comes back with 0.7.0, and told to be upgraded if it comes with 0.6.0.
 */
void raft_bind_directories(struct raft *r)
{
    struct raft_config config = r->config;

    if (r->role != RAFT_LEADER || config.is_joint || r->config_index > r->commit ||
        r->commit < r->noop_index || r->transfer.phase != RAFT_TRANSFER_NONE || r->steps_down ||
        r->is_commit_frozen || (r->change != RAFT_CHANGE_NONE && r->change != RAFT_CHANGE_LEARN) ||
        !raft_is_voter(r) || !learn(r, &config))
        return;
    if (raft_founding(r) == 0 && r->state.directory != 0) {
        config.founding = r->state.directory; /* as random as any, and nobody else's */
        config.generation = r->state.generation;
    }
    if (is_same(&config, &r->config))
        return;
    config.binds = true;
    (void)raft_append_config(r, &config); /* no memory for now: tried again with the next step */
}
