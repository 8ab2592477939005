/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/shared/view.h"

#include "daemon/shared/lock.h"

#include <string.h>

enum gavel_status view_box_init(struct view_box *box)
{
    memset(box, 0, sizeof *box);
    return lock_init(&box->mutex);
}

void view_box_done(struct view_box *box) { (void)pthread_mutex_destroy(&box->mutex); }

void view_publish(struct view_box *box, const struct view *view)
{
    (void)pthread_mutex_lock(&box->mutex);
    memcpy(&box->view, view, sizeof *view);
    (void)pthread_mutex_unlock(&box->mutex);
}

void view_read(struct view_box *box, struct view *ret_view)
{
    (void)pthread_mutex_lock(&box->mutex);
    memcpy(ret_view, &box->view, sizeof *ret_view);
    (void)pthread_mutex_unlock(&box->mutex);
}

/* Until when the leader it names is one; 0 if it names none. */
static gavel_ns leads_until(const struct view *v)
{
    if (v->leader == 0)
        return 0;
    if (v->leader == v->id)
        return v->is_claimed ? v->deadline : 0;
    return v->heard_at + v->election_max;
}

bool view_is_stale(const struct view *view, gavel_ns now) { return now >= leads_until(view); }

size_t view_apis_read(struct view_box *box, char ret_apis[RAFT_MEMBERS_MAX][PEER_ADDRESS_MAX + 1])
{
    const struct view *v = &box->view;
    size_t count = 0;

    (void)pthread_mutex_lock(&box->mutex);
    for (size_t i = 0; i < v->member_count; i++)
        if (v->members[i].api[0])
            memcpy(ret_apis[count++], v->members[i].api, sizeof v->members[i].api);
    (void)pthread_mutex_unlock(&box->mutex);
    return count;
}

void view_leader_read(struct view_box *box, struct view_leader *ret_leader)
{
    const struct view *v = &box->view;
    const struct view_member *member;

    (void)pthread_mutex_lock(&box->mutex);
    member = view_find(v, v->leader);
    ret_leader->term = v->term;
    ret_leader->id = v->leader;
    ret_leader->is_self = v->leader == v->id;
    ret_leader->until = leads_until(v);
    ret_leader->name[0] = ret_leader->api[0] = ret_leader->address[0] = '\0';
    if (member) {
        memcpy(ret_leader->name, member->name, sizeof ret_leader->name);
        memcpy(ret_leader->api, member->api, sizeof ret_leader->api);
        memcpy(ret_leader->address, member->address, sizeof ret_leader->address);
    }
    (void)pthread_mutex_unlock(&box->mutex);
}

gavel_ns view_commits_hang_for(const struct view *view, gavel_ns now)
{
    const struct view_member *leader = view_find(view, view->leader);

    if (view->is_leader)
        return view->is_commit_hung && view->uncommitted_since > 0 ? now - view->uncommitted_since : 0;
    if (!leader || !leader->status.is_leader || leader->status.term != view->term ||
        !view_is_healthy(view, leader, now))
        return 0;
    return ns_from_ms((gavel_ms)leader->status.commit_hangs_ms);
}

bool view_is_healthy(const struct view *view, const struct view_member *member, gavel_ns now)
{
    return member->is_self || (member->heard_at > 0 && now - member->heard_at < 10 * view->heartbeat);
}

const struct view_member *view_find(const struct view *view, raft_id id)
{
    for (size_t i = 0; i < view->member_count; i++)
        if (view->members[i].id == id)
            return &view->members[i];
    return NULL;
}
