/* SPDX-License-Identifier: Apache-2.0 */

#include "outages.h"

#include "os/clock.h"
#include "proc.h"

#include <signal.h>

/* Longer than a lease, in which nobody can renew. */
#define LONG (OUTAGE_LEASE + 200 * NS_PER_MS), (OUTAGE_LEASE + 800 * NS_PER_MS)

/* Shorter than a lease: a leader may or may not live through it. */
#define SHORT (50 * NS_PER_MS), (900 * NS_PER_MS)

/* So late that a call has failed before its answer comes; and only so late that it is slow. */
#define BEYOND_CALL_MS 900
#define SLUGGISH_MS 60

#define HOUR (3600 * NS_PER_S)

/* The only one whose clock has a say; radosgw takes no signature of another time, so nobody can lead then. */
static bool is_mariadb(const struct site *site) { return site->server.kind == TEST_MARIADB; }

static bool is_radosgw(const struct site *site) { return site->server.kind == TEST_RADOSGW; }

static size_t leaders_link(const struct scene *scene) { return scene->leader->candidate->number; }

static void mend_links(struct scene *scene) { site_say(scene->site, SITE_ALL_LINKS, "pass"); }

static bool kill_server(struct scene *scene)
{
    test_server_kill(&scene->site->server, TEST_SERVER_ALL);
    return true;
}

static void restart_server(struct scene *scene) { test_server_restart(&scene->site->server); }

/* Of radosgw the OSD: what was written meanwhile is applied when it wakes, whoever has given it up. */
static bool freeze_server(struct scene *scene)
{
    test_server_freeze(&scene->site->server, TEST_SERVER_ALL);
    return true;
}

static void thaw_server(struct scene *scene) { test_server_thaw(&scene->site->server, TEST_SERVER_ALL); }

/* Somebody makes a backup: all that was asked meanwhile is carried out afterwards, whoever has given it
 * up. */
static bool lock_tables(struct scene *scene)
{
    test_server_sql(&scene->site->server, "flush tables with read lock; do sleep(2.3); unlock tables");
    return true;
}

/* A program of others forgets to commit. */
static bool lock_rows(struct scene *scene)
{
    test_server_sql(&scene->site->server,
                    "use " SITE_STORE "; start transaction; select count(*) into @n from locks for "
                    "update; do sleep(2.3); rollback");
    return true;
}

static bool freeze_gateway(struct scene *scene)
{
    test_server_signal(&scene->site->server, "rgw", "STOP");
    return true;
}

static void thaw_gateway(struct scene *scene) { test_server_signal(&scene->site->server, "rgw", "CONT"); }

static bool cut_leader(struct scene *scene)
{
    site_say(scene->site, leaders_link(scene), "refuse");
    site_say(scene->site, leaders_link(scene), "cut");
    return true;
}

static bool silence_leader(struct scene *scene)
{
    site_say(scene->site, leaders_link(scene), "drop");
    return true;
}

/* Its renewals arrive, and it never learns of it: it must stop, though the store says that it leads. */
static bool deafen_leader(struct scene *scene)
{
    site_say(scene->site, leaders_link(scene), "mute");
    return true;
}

/* In the middle of a write, or just after it, whatever the server has got by then. */
static bool snap_leader(struct scene *scene)
{
    site_say(scene->site, leaders_link(scene), "snap %d", (int)prng_below(scene->prng, 1500));
    return true;
}

static bool delay_leader(struct scene *scene)
{
    site_say(scene->site, leaders_link(scene), "delay 0 %d", BEYOND_CALL_MS);
    return true;
}

static bool cut_all(struct scene *scene)
{
    site_say(scene->site, SITE_ALL_LINKS, "refuse");
    site_say(scene->site, SITE_ALL_LINKS, "cut");
    return true;
}

static bool deafen_all(struct scene *scene)
{
    site_say(scene->site, SITE_ALL_LINKS, "mute");
    return true;
}

static bool delay_all(struct scene *scene)
{
    site_say(scene->site, SITE_ALL_LINKS, "delay 0 %d", BEYOND_CALL_MS);
    return true;
}

/* Either way: the wall clock of a server, or of the host of the leader, is set. */
static gavel_ns step_of(struct scene *scene) { return prng_chance(scene->prng, 500) ? HOUR : -HOUR; }

static bool step_server_clock(struct scene *scene)
{
    site_shift_clock(scene->site, SITE_SERVER, step_of(scene));
    return true;
}

static void step_server_back(struct scene *scene) { site_shift_clock(scene->site, SITE_SERVER, 0); }

static bool step_leader_clock(struct scene *scene)
{
    site_shift_clock(scene->site, leaders_link(scene), step_of(scene));
    return true;
}

static void step_leader_back(struct scene *scene) { site_shift_clock(scene->site, leaders_link(scene), 0); }

static bool kill_both(const struct scene *scene)
{
    (void)proc_signal(scene->leader->guard, SIGKILL);
    return proc_signal(scene->leader->elector, SIGKILL);
}

/* The lease alone can tell the others, and the clock that it was written by is not what it was. */
static bool kill_both_and_step_back(struct scene *scene)
{
    site_shift_clock(scene->site, SITE_SERVER, -HOUR);
    return kill_both(scene);
}

static bool kill_elector(struct scene *scene) { return proc_signal(scene->leader->elector, SIGKILL); }

static bool kill_elector_when_slow(struct scene *scene)
{
    site_say(scene->site, SITE_ALL_LINKS, "delay 0 %d", SLUGGISH_MS);
    return kill_elector(scene);
}

static bool kill_guard_when_slow(struct scene *scene)
{
    site_say(scene->site, SITE_ALL_LINKS, "delay 0 %d", SLUGGISH_MS);
    return proc_signal(scene->leader->guard, SIGKILL);
}

/* The guard's release arrives, and its answer does not. */
static bool kill_elector_when_deaf(struct scene *scene)
{
    site_say(scene->site, leaders_link(scene), "mute");
    return kill_elector(scene);
}

static bool freeze_elector_when_slow(struct scene *scene)
{
    site_say(scene->site, SITE_ALL_LINKS, "delay 0 %d", SLUGGISH_MS);
    return proc_signal(scene->leader->elector, SIGSTOP);
}

static void wake_elector(struct scene *scene)
{
    (void)proc_signal(scene->leader->elector, SIGCONT); /* if it has ended, that is found out anyway */
    mend_links(scene);
}

const struct outage outages[] = {
    {"restart server", OUTAGE_AFTER, false, false, SHORT, NULL, kill_server, restart_server},
    {"freeze server", OUTAGE_AFTER, false, false, LONG, NULL, freeze_server, thaw_server},
    {"freeze gateway", OUTAGE_AFTER, false, false, LONG, is_radosgw, freeze_gateway, thaw_gateway},
    {"lock tables", OUTAGE_AFTER, false, false, 0, 0, is_mariadb, lock_tables, NULL},
    {"lock rows", OUTAGE_AFTER, false, false, 0, 0, is_mariadb, lock_rows, NULL},
    {"cut leader", OUTAGE_NEXT, false, false, SHORT, NULL, cut_leader, mend_links},
    {"silence leader", OUTAGE_NEXT, false, false, SHORT, NULL, silence_leader, mend_links},
    {"lose leader's answers", OUTAGE_NEXT, false, false, SHORT, NULL, deafen_leader, mend_links},
    {"cut leader in a write", OUTAGE_NEXT, false, false, SHORT, NULL, snap_leader, mend_links},
    {"delay leader's answers", OUTAGE_NEXT, false, false, SHORT, NULL, delay_leader, mend_links},
    {"cut all", OUTAGE_AFTER, false, false, LONG, NULL, cut_all, mend_links},
    {"lose all answers", OUTAGE_AFTER, false, false, LONG, NULL, deafen_all, mend_links},
    {"lose answers for a moment", OUTAGE_AFTER, false, false, SHORT, NULL, deafen_all, mend_links},
    {"delay all answers", OUTAGE_AFTER, false, false, LONG, NULL, delay_all, mend_links},
    {"step server's clock", OUTAGE_AFTER, false, false, SHORT, site_has_server_clock, step_server_clock,
     step_server_back},
    {"step leader's clock", OUTAGE_AFTER, false, false, SHORT, NULL, step_leader_clock, step_leader_back},
    {"kill all, step back", OUTAGE_NEXT, true, true, SHORT, is_mariadb, kill_both_and_step_back,
     step_server_back},
    {"kill elector", OUTAGE_NEXT, true, false, 0, 0, NULL, kill_elector, NULL},
    {"kill elector, slow", OUTAGE_NEXT, true, false, 0, 0, NULL, kill_elector_when_slow, mend_links},
    {"kill guard, slow", OUTAGE_NEXT, true, false, 0, 0, NULL, kill_guard_when_slow, mend_links},
    {"kill elector, answers lost", OUTAGE_NEXT, true, false, 0, 0, NULL, kill_elector_when_deaf, mend_links},
    {"freeze elector, slow", OUTAGE_NEXT, false, false, 0, 0, NULL, freeze_elector_when_slow, wake_elector},
};
const size_t outage_count = sizeof outages / sizeof *outages;
