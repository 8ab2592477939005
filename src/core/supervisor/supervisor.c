/* SPDX-License-Identifier: Apache-2.0 */

#include "core/supervisor/supervisor.h"

#include "base/assert.h"
#include "core/supervisor/states.h"

/* Between two questions whether a child is ready. */
#define CHECK_INTERVAL (100 * NS_PER_MS)

void supervisor_init(struct supervisor *s, const struct supervisor_rules *rules)
{
    ASSERT(rules->child_count <= CHILDREN_MAX);
    ASSERT(rules->restart_limit <= RESTART_LIMIT_MAX);
    *s = (struct supervisor){
        .rules = *rules,
        .state = SUPERVISOR_EMPTY,
        .cause_status = -1,
        .timeout_at = NEVER,
        .check_at = NEVER,
    };
}

static struct supervisor_action *act(struct supervisor *s, enum supervisor_action_kind kind, size_t slot)
{
    struct supervisor_action *action;

    ASSERT(s->actions->count < SUPERVISOR_ACTIONS_MAX);
    ASSERT(slot < SUPERVISOR_SLOTS);
    action = &s->actions->items[s->actions->count++];
    *action = (struct supervisor_action){.kind = kind, .slot = slot};
    return action;
}

static void spawn(struct supervisor *s, size_t slot)
{
    ASSERT(slot < SUPERVISOR_SLOTS);
    ASSERT(!s->is_running[slot]);
    ASSERT(s->state != SUPERVISOR_EMPTY);
    ASSERT(s->state != SUPERVISOR_STOPPING);
    ASSERT(s->state != SUPERVISOR_CLEARING);
    s->is_running[slot] = true;
    act(s, SUPERVISOR_SPAWN, slot);
}

static void kill_slot(struct supervisor *s, size_t slot)
{
    ASSERT(slot < SUPERVISOR_SLOTS);
    if (s->is_clearing[slot])
        return;
    s->is_clearing[slot] = true;
    act(s, SUPERVISOR_KILL_SLOT, slot);
}

/* The first cause stands: what follows from it is no news. */
static void blame(struct supervisor *s, enum supervisor_cause cause, size_t slot, int status)
{
    ASSERT(cause != CAUSE_NONE);
    if (s->cause != CAUSE_NONE)
        return;
    s->cause = cause;
    s->cause_slot = slot;
    s->cause_status = status;
}

static void forget_plans(struct supervisor *s)
{
    s->timeout_at = s->check_at = NEVER;
    for (size_t i = 0; i < s->rules.child_count; i++)
        s->wants_start[i] = false;
}

/* Everything is killed until nothing is left. */
static void clear(struct supervisor *s)
{
    forget_plans(s);
    supervisor_move(s, SUPERVISOR_CLEARING);
    act(s, SUPERVISOR_KILL_TREE, 0);
}

/* The next child to stop, from the last to the first. */
static void stop_next(struct supervisor *s, gavel_ns now)
{
    ASSERT(s->state == SUPERVISOR_STOPPING);
    ASSERT(s->current <= s->rules.child_count);
    while (s->current > 0) {
        s->current--;
        if (s->is_running[s->current]) {
            act(s, SUPERVISOR_TERM_SLOT, s->current);
            s->timeout_at = now + (s->is_orphaned ? s->orphan_grace : s->rules.children[s->current].grace);
            return;
        }
    }
    clear(s);
}

static bool is_starting_or_running(const struct supervisor *s)
{
    return s->state == SUPERVISOR_HOOK_ELECTED || s->state == SUPERVISOR_STARTING ||
           s->state == SUPERVISOR_RUNNING;
}

static void begin_stop(struct supervisor *s, gavel_ns now)
{
    ASSERT(is_starting_or_running(s));
    ASSERT(s->cause != CAUSE_NONE);
    if (s->state == SUPERVISOR_HOOK_ELECTED) {
        clear(s); /* only the hook runs, and it has no use any more */
        return;
    }
    forget_plans(s);
    supervisor_move(s, SUPERVISOR_STOPPING);
    if (s->is_running[SLOT_CHECK])
        kill_slot(s, SLOT_CHECK);
    s->current = s->rules.child_count;
    stop_next(s, now);
}

/* Starts children from `current` on, up to the first that is not ready at once. */
static void start_children(struct supervisor *s, gavel_ns now)
{
    ASSERT(s->state == SUPERVISOR_STARTING);
    for (; s->current < s->rules.child_count; s->current++) {
        const struct child_rule *rule = &s->rules.children[s->current];

        spawn(s, s->current);
        if (rule->ready == READY_AT_ONCE)
            continue;
        s->timeout_at = now + rule->ready_timeout;
        s->check_at = rule->ready == READY_BY_COMMAND ? now : NEVER;
        return;
    }
    supervisor_move(s, SUPERVISOR_RUNNING);
}

static void child_is_ready(struct supervisor *s, gavel_ns now)
{
    ASSERT(s->state == SUPERVISOR_STARTING);
    ASSERT(s->current < s->rules.child_count);
    s->timeout_at = s->check_at = NEVER;
    s->current++;
    start_children(s, now);
}

static void begin_children(struct supervisor *s, gavel_ns now)
{
    s->timeout_at = NEVER;
    s->current = 0;
    supervisor_move(s, SUPERVISOR_STARTING);
    start_children(s, now);
}

static void start(struct supervisor *s, const struct supervisor_event *event)
{
    if (s->state != SUPERVISOR_EMPTY)
        return;
    s->epoch = event->epoch;
    s->cause = CAUSE_NONE;
    s->cause_status = -1;
    s->is_graceful = true;
    s->has_hooked = false;
    if (event->now >= event->stop_at) {
        blame(s, CAUSE_LAPSED, 0, -1);
        return;
    }
    s->has_hooked = true;
    if (!s->rules.has_on_elected) {
        begin_children(s, event->now);
        return;
    }
    supervisor_move(s, SUPERVISOR_HOOK_ELECTED);
    spawn(s, SLOT_HOOK);
    s->timeout_at = event->now + s->rules.hook_timeout;
}

/* Whether one more restart now would be more than the limit allows; if not, it is counted. */
static bool has_restarted_too_often(struct supervisor *s, gavel_ns now)
{
    size_t limit = (size_t)s->rules.restart_limit;
    gavel_ns oldest;

    ASSERT(limit <= RESTART_LIMIT_MAX);
    if (limit == 0)
        return true;
    oldest = s->restarts[(s->restart_next + RESTART_LIMIT_MAX - limit) % RESTART_LIMIT_MAX];
    if (s->restart_total >= limit && now - oldest < s->rules.restart_window)
        return true;
    s->restarts[s->restart_next] = now;
    s->restart_next = (s->restart_next + 1) % RESTART_LIMIT_MAX;
    s->restart_total++;
    return false;
}

/* A child ended that nobody told to. */
static void child_ended(struct supervisor *s, const struct supervisor_event *event)
{
    ASSERT(event->slot < s->rules.child_count);
    switch (s->rules.children[event->slot].on_exit) {
    case ON_EXIT_STOP:
        blame(s, CAUSE_ENDED, event->slot, event->status);
        begin_stop(s, event->now);
        break;
    case ON_EXIT_RESIGN:
        /* Where nobody else takes over it comes back at once, so its limit is that of a restart. */
        blame(s, has_restarted_too_often(s, event->now) ? CAUSE_LIMIT : CAUSE_RESIGN, event->slot,
              event->status);
        begin_stop(s, event->now);
        break;
    case ON_EXIT_RESTART:
        if (has_restarted_too_often(s, event->now)) {
            blame(s, CAUSE_LIMIT, event->slot, event->status);
            begin_stop(s, event->now);
            break;
        }
        /* What it left behind goes first: the new one may need the same port or file. */
        s->wants_start[event->slot] = true;
        kill_slot(s, event->slot);
        break;
    }
}

static void hook_ended(struct supervisor *s, const struct supervisor_event *event)
{
    if (s->state == SUPERVISOR_HOOK_DEMOTED) {
        clear(s);
    } else if (s->state == SUPERVISOR_HOOK_ELECTED && event->status == 0) {
        begin_children(s, event->now);
    } else if (s->state == SUPERVISOR_HOOK_ELECTED) {
        blame(s, CAUSE_HOOK_FAILED, SLOT_HOOK, event->status);
        clear(s);
    }
}

static void check_ended(struct supervisor *s, const struct supervisor_event *event)
{
    if (s->state != SUPERVISOR_STARTING || s->timeout_at == NEVER)
        return;
    if (event->status == 0)
        child_is_ready(s, event->now);
    else
        s->check_at = event->now + CHECK_INTERVAL;
}

static void exited(struct supervisor *s, const struct supervisor_event *event)
{
    if (event->slot == SLOT_HOOK) {
        hook_ended(s, event);
    } else if (event->slot == SLOT_CHECK) {
        check_ended(s, event);
    } else if (s->state == SUPERVISOR_STARTING || s->state == SUPERVISOR_RUNNING) {
        child_ended(s, event);
    } else if (s->state == SUPERVISOR_STOPPING && event->slot == s->current) {
        s->timeout_at = NEVER;
        kill_slot(s, event->slot);
    }
}

static void slot_empty(struct supervisor *s, const struct supervisor_event *event)
{
    bool may_start = s->state == SUPERVISOR_STARTING || s->state == SUPERVISOR_RUNNING;

    if (event->slot < s->rules.child_count && s->wants_start[event->slot] && may_start) {
        s->wants_start[event->slot] = false;
        spawn(s, event->slot);
    } else if (s->state == SUPERVISOR_STOPPING && event->slot == s->current && !s->is_running[event->slot]) {
        stop_next(s, event->now);
    }
}

static void tree_empty(struct supervisor *s, const struct supervisor_event *event)
{
    if (s->state != SUPERVISOR_CLEARING)
        return;
    ASSERT(s->timeout_at == NEVER); /* clear() has forgotten every plan */
    for (size_t i = 0; i < SUPERVISOR_SLOTS; i++)
        s->is_running[i] = s->is_clearing[i] = false;
    if (s->has_hooked && s->rules.has_on_demoted && s->is_graceful && event->now < event->kill_at) {
        s->has_hooked = false;
        supervisor_move(s, SUPERVISOR_HOOK_DEMOTED);
        spawn(s, SLOT_HOOK);
        s->actions->items[s->actions->count - 1].demoted = true;
        s->timeout_at = event->now + s->rules.hook_timeout;
        return;
    }
    supervisor_move(s, SUPERVISOR_EMPTY);
}

static void time_is_over(struct supervisor *s, gavel_ns now)
{
    s->timeout_at = NEVER;
    switch (s->state) {
    case SUPERVISOR_HOOK_ELECTED:
        blame(s, CAUSE_HOOK_FAILED, SLOT_HOOK, -1);
        clear(s);
        break;
    case SUPERVISOR_STARTING:
        blame(s, CAUSE_NOT_READY, s->current, -1);
        begin_stop(s, now);
        break;
    case SUPERVISOR_STOPPING:
        kill_slot(s, s->current);
        break;
    case SUPERVISOR_HOOK_DEMOTED:
        clear(s);
        break;
    case SUPERVISOR_EMPTY:
    case SUPERVISOR_RUNNING:
    case SUPERVISOR_CLEARING:
        break;
    }
}

static void check_time(struct supervisor *s, gavel_ns now)
{
    if (now >= s->timeout_at)
        time_is_over(s, now);
    if (s->state == SUPERVISOR_STARTING && now >= s->check_at && !s->is_running[SLOT_CHECK]) {
        s->check_at = NEVER;
        spawn(s, SLOT_CHECK);
        s->actions->items[s->actions->count - 1].child = s->current;
    }
}

/* The mandate goes before everything else. */
static void check_mandate(struct supervisor *s, const struct supervisor_event *event)
{
    if (event->is_orphaned) {
        s->is_orphaned = true;
        s->orphan_grace = event->grace;
        s->is_graceful = false;
    }
    if (s->state == SUPERVISOR_EMPTY)
        return;
    if (event->now >= event->kill_at || event->kind == SUPERVISOR_KILL) {
        blame(s, event->kind == SUPERVISOR_KILL ? CAUSE_ORDERED : CAUSE_LAPSED, 0, -1);
        s->is_graceful = false;
        if (s->state != SUPERVISOR_CLEARING)
            clear(s);
    } else if (is_starting_or_running(s) &&
               (event->now >= event->stop_at || event->kind == SUPERVISOR_STOP)) {
        blame(s, event->kind == SUPERVISOR_STOP ? CAUSE_ORDERED : CAUSE_LAPSED, 0, -1);
        begin_stop(s, event->now);
    }
}

void supervisor_step(struct supervisor *s, const struct supervisor_event *event,
                     struct supervisor_actions *ret_actions)
{
    ASSERT(!s->actions); /* a step is not taken within a step */
    ASSERT(event->slot < SUPERVISOR_SLOTS);
    ret_actions->count = 0;
    s->actions = ret_actions;
    if (event->kind == SUPERVISOR_EXITED)
        s->is_running[event->slot] = false;
    if (event->kind == SUPERVISOR_SLOT_EMPTY)
        s->is_clearing[event->slot] = false;
    check_mandate(s, event);
    switch (event->kind) {
    case SUPERVISOR_START:
        start(s, event);
        break;
    case SUPERVISOR_EXITED:
        exited(s, event);
        break;
    case SUPERVISOR_READY:
        if (s->state == SUPERVISOR_STARTING && event->slot == s->current)
            child_is_ready(s, event->now);
        break;
    case SUPERVISOR_SLOT_EMPTY:
        slot_empty(s, event);
        break;
    case SUPERVISOR_TREE_EMPTY:
        tree_empty(s, event);
        break;
    case SUPERVISOR_TICK:
    case SUPERVISOR_STOP:
    case SUPERVISOR_KILL:
        break;
    }
    check_time(s, event->now);
    if (s->state == SUPERVISOR_EMPTY || s->state == SUPERVISOR_CLEARING)
        ASSERT(s->timeout_at == NEVER);
    if (s->state != SUPERVISOR_EMPTY)
        ASSERT(s->epoch != 0);
    s->actions = NULL;
}

gavel_ns supervisor_wake_at(const struct supervisor *s)
{
    return ns_min(s->timeout_at, s->is_running[SLOT_CHECK] ? NEVER : s->check_at);
}
