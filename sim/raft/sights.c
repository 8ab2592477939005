/* SPDX-License-Identifier: Apache-2.0 */

/* What the runs show, counted: of each kind enough must have happened for a clean run to mean something. */

#include "sim/raft/ghost.h"
#include "sim/raft/world.h"

const char *cluster_sight_name(unsigned sight)
{
#define SIGHT_NAME(name, text) [SIGHT_##name] = text,
    static const char *const names[] = {SIGHT_MAP(SIGHT_NAME)};
#undef SIGHT_NAME

    return names[sight];
}

static void see_news(struct cluster *cluster, const struct host *host, enum raft_news news, raft_id about)
{
    switch (news) {
    case RAFT_NEWS_ROLE_CHANGED:
        if (host->node.raft.role == RAFT_CANDIDATE && !raft_is_voter(&host->node.raft))
            cluster_see(cluster, SIGHT_LEAVERS);
        if (host->node.raft.role == RAFT_LEADER)
            cluster_see(cluster, raft_is_caretaker(&host->node.raft) ? SIGHT_CARETAKERS : SIGHT_LEADERS);
        break;
    case RAFT_NEWS_TRANSFER_DONE:
        cluster_see(cluster, SIGHT_TRANSFERS);
        break;
    case RAFT_NEWS_TRANSFER_FAILED:
        cluster_see(cluster, SIGHT_ABORTS);
        break;
    case RAFT_NEWS_MEMBERS_CHANGED:
        cluster_see(cluster, SIGHT_CHANGES);
        break;
    case RAFT_NEWS_CHANGE_FAILED:
        cluster_see(cluster, SIGHT_CHANGE_FAILS);
        break;
    case RAFT_NEWS_HIGHER_TERM_SEEN:
        cluster_see(cluster, SIGHT_HIGHER_TERMS);
        break;
    case RAFT_NEWS_ENTRIES_TRUNCATED:
        cluster_see(cluster, SIGHT_TRUNCATIONS);
        break;
    case RAFT_NEWS_OBITUARY_TAKEN:
        cluster_see(cluster, SIGHT_OBITUARIES);
        break;
    case RAFT_NEWS_DIRECTORY_REFUSED:
        cluster_see(cluster, SIGHT_FORGETFUL);
        if (ghost_is_old(cluster, about))
            break;
        cluster_violate(cluster, RAFT_INVARIANT_HEARD,
                        "%s refuses the directory of node %llu, which has kept everything", host->label,
                        (unsigned long long)about);
        break;
    case RAFT_NEWS_MESSAGE_REFUSED:
        cluster_see(cluster, SIGHT_REFUSALS);
        break;
    default:
        break;
    }
}

void cluster_see_action(struct cluster *cluster, const struct host *host, const struct raft_action *action)
{
    switch (action->kind) {
    case RAFT_SEND:
        if (action->send.message.kind == RAFT_MSG_TIMEOUT_NOW &&
            action->send.message.certificate.kind == RAFT_CERT_FORCE)
            cluster_see(cluster, SIGHT_FORCED);
        break;
    case RAFT_RESTORE:
        cluster_see(cluster, SIGHT_SNAPSHOTS);
        break;
    case RAFT_STOP_WORK:
        if (action->stop.reason == RAFT_STOP_LAPSED)
            cluster_see(cluster, SIGHT_LAPSES);
        else if (action->stop.reason == RAFT_STOP_HANGS)
            cluster_see(cluster, SIGHT_HUNG_LEADERS);
        break;
    case RAFT_TELL:
        see_news(cluster, host, action->tell.news, action->tell.node);
        break;
    default:
        break;
    }
}
