/* SPDX-License-Identifier: Apache-2.0 */

#include "store/cluster/member.h"

#include "base/assert.h"
#include "store/cluster/cluster.h"

#include <stdlib.h>
#include <string.h>

static int compare(const struct gavel_member *a, const struct gavel_member *b)
{
    return strcmp(a->group, b->group);
}

/* Not RB_GENERATE_STATIC: it counts on a macro that headers of Linux may take away. */
RB_GENERATE_INTERNAL(gavel_members, gavel_member, by_group, compare, static __attribute__((__unused__)))

struct gavel_member *gavel_member_find(struct gavel_store *gavel, const char *group)
{
    const struct gavel_member wanted = {.group = group};

    return RB_FIND(gavel_members, &gavel->members, (struct gavel_member *)(uintptr_t)&wanted);
}

struct gavel_member *gavel_member_new(struct gavel_store *gavel, const char *group, const char *id,
                                      uint64_t instance)
{
    size_t group_size = strlen(group) + 1;
    size_t id_size = strlen(id) + 1;
    struct gavel_member *member = calloc(1, sizeof *member + group_size + id_size);
    char *names;

    if (!member)
        return NULL;
    names = (char *)(member + 1);
    memcpy(names, group, group_size);
    memcpy(names + group_size, id, id_size);
    member->store = gavel;
    member->group = names;
    member->id = names + group_size;
    member->instance = instance;
    LIST_INIT(&member->withdrawals);
    ASSERT(RB_INSERT(gavel_members, &gavel->members, member) == NULL); /* it was looked for before */
    return member;
}

static void forget(struct gavel_member *member)
{
    (void)RB_REMOVE(gavel_members, &member->store->members, member);
    free(member);
}

void gavel_member_settle(struct gavel_member *member)
{
    if (member->is_joined || member->is_in_doubt || member->campaigns > 0 ||
        !LIST_EMPTY(&member->withdrawals))
        return;
    forget(member);
}

struct gavel_member *gavel_member_first(struct gavel_store *gavel)
{
    return RB_MIN(gavel_members, &gavel->members);
}

struct gavel_member *gavel_member_next(struct gavel_member *member)
{
    return RB_NEXT(gavel_members, , member);
}

const char *gavel_member_after(struct gavel_store *gavel, const char *after)
{
    struct gavel_member *member = RB_ROOT(&gavel->members);
    const char *found = NULL;

    while (member) {
        bool is_behind = strcmp(member->group, after) > 0;

        if (is_behind)
            found = member->group;
        member = is_behind ? RB_LEFT(member, by_group) : RB_RIGHT(member, by_group);
    }
    return found;
}

void gavel_members_free(struct gavel_store *gavel)
{
    struct gavel_member *next;

    for (struct gavel_member *member = gavel_member_first(gavel); member; member = next) {
        next = gavel_member_next(member);
        gavel_withdrawals_free(member);
        forget(member);
    }
}
