/* SPDX-License-Identifier: Apache-2.0 */

/* What the runs show, counted: of each kind enough must have happened for a clean run to mean something. */

#include "sim/raft/ghost.h"
#include "sim/raft/world.h"

const char *quorum_sight_name(unsigned sight)
{
#define SIGHT_NAME(name, text) [SIGHT_##name] = text,
    static const char *const names[] = {SIGHT_MAP(SIGHT_NAME)};
#undef SIGHT_NAME

    return names[sight];
}

static void see_news(struct quorum *quorum, const struct node *node, enum raft_news news, raft_id about)
{
    switch (news) {
    case RAFT_NEWS_ROLE_CHANGED:
        if (node->raft.role == RAFT_CANDIDATE && !raft_is_voter(&node->raft))
            quorum_see(quorum, SIGHT_LEAVERS);
        if (node->raft.role == RAFT_LEADER)
            quorum_see(quorum, raft_is_caretaker(&node->raft) ? SIGHT_CARETAKERS : SIGHT_LEADERS);
        break;
    case RAFT_NEWS_TRANSFER_DONE:
        quorum_see(quorum, SIGHT_TRANSFERS);
        break;
    case RAFT_NEWS_TRANSFER_FAILED:
        quorum_see(quorum, SIGHT_ABORTS);
        break;
    case RAFT_NEWS_MEMBERS_CHANGED:
        quorum_see(quorum, SIGHT_CHANGES);
        break;
    case RAFT_NEWS_CHANGE_FAILED:
        quorum_see(quorum, SIGHT_CHANGE_FAILS);
        break;
    case RAFT_NEWS_HIGHER_TERM_SEEN:
        quorum_see(quorum, SIGHT_HIGHER_TERMS);
        break;
    case RAFT_NEWS_ENTRIES_TRUNCATED:
        quorum_see(quorum, SIGHT_TRUNCATIONS);
        break;
    case RAFT_NEWS_OBITUARY_TAKEN:
        quorum_see(quorum, SIGHT_OBITUARIES);
        break;
    case RAFT_NEWS_DIRECTORY_REFUSED:
        quorum_see(quorum, SIGHT_FORGETFUL);
        if (ghost_is_old(quorum, about))
            break;
        quorum_violate(quorum, RAFT_INVARIANT_HEARD,
                       "%s refuses the directory of node %llu, which has kept everything", node->label,
                       (unsigned long long)about);
        break;
    case RAFT_NEWS_MESSAGE_REFUSED:
        quorum_see(quorum, SIGHT_REFUSALS);
        break;
    default:
        break;
    }
}

void quorum_see_action(struct quorum *quorum, const struct node *node, const struct raft_action *action)
{
    switch (action->kind) {
    case RAFT_SEND:
        if (action->send.message.kind == RAFT_MSG_TIMEOUT_NOW &&
            action->send.message.certificate.kind == RAFT_CERT_FORCE)
            quorum_see(quorum, SIGHT_FORCED);
        break;
    case RAFT_RESTORE:
        quorum_see(quorum, SIGHT_SNAPSHOTS);
        break;
    case RAFT_STOP_WORK:
        if (action->stop.reason == RAFT_STOP_LAPSED)
            quorum_see(quorum, SIGHT_LAPSES);
        else if (action->stop.reason == RAFT_STOP_HANGS)
            quorum_see(quorum, SIGHT_HUNG_LEADERS);
        break;
    case RAFT_TELL:
        see_news(quorum, node, action->tell.news, action->tell.node);
        break;
    default:
        break;
    }
}
