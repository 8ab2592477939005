/* SPDX-License-Identifier: Apache-2.0 */

/* The program `gavel`: the table of its subcommands. */
#include "cli/cli.h"
#include "cli/program.h"

static const struct flag once_flags[] = {
    {"key", FLAG_TEXT, "KEY", "a name for the work, such as nightly-2026-11-15"},
    {"no-wait", FLAG_SWITCH, NULL,
     "if another candidate runs it, end with exit code 8 instead of standing by"},
    {"keep", FLAG_DURATION, "DURATION",
     "how long the record of a success must be kept; a cluster then removes it (default: 90d)"},
    {"forget", FLAG_SWITCH, NULL,
     "run nothing; allow the work of this key to be done again, with a higher epoch"},
    {"list", FLAG_SWITCH, NULL, "run nothing; show all keys, also those that failed or run now"},
    {"prefix", FLAG_BEGINNING, "TEXT", "for --list: only keys that begin with this"},
    {0},
};

static const struct flag elect_flags[] = {
    {"events", FLAG_TEXT, "NAMES", "print only these events, separated by commas (default: all)"},
    {0},
};

static const struct flag agent_flags[] = {
    {"listen", FLAG_TEXT, "ADDRESS",
     "the address for programs: host:port, with port 0 for any free port, or the path of a socket (default: "
     "127.0.0.1:7700)"},
    {"token-file", FLAG_TEXT, "FILE",
     "a file whose first line callers must send; required for an address that other machines can reach"},
    {"drain", FLAG_SWITCH, NULL,
     "release the mandate only when the program reports that it has stopped (POST /stopped), or at the deadline; this is the default"},
    {"no-drain", FLAG_SWITCH, NULL,
     "do not wait for the program: another candidate may lead at once, while the program still works; for health checks and fenced work"},
    {"alive-within", FLAG_DURATION, "DURATION",
     "lead only while the program reports at least this often that it is alive (POST /alive)"},
    {0},
};

static const struct flag leader_flags[] = {
    {"wait", FLAG_DURATION, "DURATION", "how long to wait for a leader; exit code 6 if there is still none"},
    {0},
};

static const struct flag status_flags[] = {
    {"all", FLAG_SWITCH, NULL, "list all groups of the store"},
    {"watch", FLAG_PACE, "[DURATION]",
     "with a cluster: refresh this often until Ctrl-C (default: every second)"},
    {0},
};

static const struct flag watch_flags[] = {
    {"count", FLAG_NUMBER, "NUMBER", "end after this many lines, at least 1"},
    {"timeout", FLAG_DURATION, "DURATION", "end after this time; exit code 6 if --count was not reached"},
    {0},
};

static const struct flag handover_flags[] = {
    {"to", FLAG_TEXT, "NAME", "the next leader: a candidate of the group, or a node"},
    {"force", FLAG_SWITCH, NULL,
     "for a group: also within the minimum mandate; for nodes, with --to: also to a node that is behind, or when the leader hangs; what that node does not have is lost"},
    {"timeout", FLAG_DURATION, "DURATION", "how long the hand-over may take (default: 10s; for nodes: 30s)"},
    {0},
};

static const struct flag check_flags[] = {
    {"candidates", FLAG_NUMBER, "NUMBER", "the number of candidates in the group (default: 3)"},
    {"prices", FLAG_TEXT, "PUT,GET,LIST",
     "prices of the object store, in US dollars per thousand requests (default: 0.005,0.0004,0.005)"},
    {0},
};

static const struct flag store_flags[] = {
    {"count", FLAG_NUMBER, "NUMBER",
     "for ping: the number of rounds (default: as many as fit into 5 seconds, at most 100)"},
    {"read-only", FLAG_SWITCH, NULL, "for ping: only read; nothing is created or written"},
    {"table", FLAG_TEXT, "NAME", "for sql: the name of the table (default: locks)"},
    {0},
};

static const struct flag_use store_uses[] = {
    {"count", "ping"},
    {"read-only", "ping"},
    {"table", "sql"},
    {"store", "ping migrate backup"},
    {"preset", "ping"},
    {"call-timeout", "ping"},
    {0},
};

static const struct flag elections_flags[] = {
    {"limit", FLAG_NUMBER, "NUMBER", "how many to show, newest first (default: 10)"},
    {"pre-votes", FLAG_SWITCH, NULL, "also show rounds of pre-votes that failed"},
    {0},
};

static const struct flag groups_flags[] = {
    {"prefix", FLAG_BEGINNING, "TEXT", "only groups whose names begin with this"},
    {0},
};

static const struct flag group_flags[] = {
    {"force", FLAG_SWITCH, NULL,
     "also if the group has notes, which are deleted, too, or its work is done for good, which then can be done again"},
    {0},
};

static const struct flag note_flags[] = {
    {"epoch", FLAG_TEXT, "NUMBER",
     "for put and delete: the writer's epoch; refused with exit code 9 once the group has a newer one"},
    {"if-revision", FLAG_TEXT, "NUMBER", "for put and delete: only if the note has this revision"},
    {"create", FLAG_SWITCH, NULL, "for put: only if the note does not exist"},
    {"prefix", FLAG_BEGINNING, "TEXT", "for list and watch: only keys that begin with this"},
    {"after", FLAG_TEXT, "REVISION",
     "for watch: also print the changes since this revision (default: from now on)"},
    {"count", FLAG_NUMBER, "NUMBER", "for watch: end after this many lines, at least 1"},
    {"timeout", FLAG_DURATION, "DURATION",
     "for watch: end after this time; exit code 6 if --count was not reached"},
    {0},
};

static const struct flag_use note_uses[] = {
    {"epoch", "put delete"}, {"if-revision", "put delete"},
    {"create", "put"},       {"prefix", "list watch"},
    {"after", "watch"},      {"count", "watch"},
    {"timeout", "watch"},    {0},
};

static const struct flag stepdown_flags[] = {
    {"timeout", FLAG_DURATION, "DURATION", "how long it may take (default: 30s)"},
    {0},
};

static const struct flag member_flags[] = {
    {"api", FLAG_TEXT, "ADDRESS", "for add: the address of its HTTP API"},
    {"priority", FLAG_NUMBER, "NUMBER", "for add: the higher, the sooner it leads (default: 0)"},
    {"witness", FLAG_SWITCH, NULL, "for add: it votes and never leads"},
    {"learner", FLAG_SWITCH, NULL, "for add: it follows without a vote until it is promoted"},
    {"timeout", FLAG_DURATION, "DURATION", "how long it may take (default: 30s)"},
    {0},
};

static const struct flag_use member_uses[] = {
    {"api", "add"},
    {"priority", "add"},
    {"witness", "add"},
    {"learner", "add"},
    {"timeout", "add remove promote demote"},
    {0},
};

static const struct flag cert_flags[] = {
    {"out", FLAG_TEXT, "DIRECTORY", "where to write the files (default: the current directory)"},
    {"ca", FLAG_TEXT, "DIRECTORY",
     "for issue: the directory of ca.crt and ca.key (default: the current one)"},
    {"host", FLAG_LIST, "HOST",
     "for issue: a name or an address by which clients reach the node; may be repeated (default: localhost, 127.0.0.1 and ::1)"},
    {"client", FLAG_SWITCH, NULL,
     "for issue: a certificate for a program that uses the cluster, not for a node"},
    {"valid-for", FLAG_DURATION, "DURATION",
     "how long the certificate is valid (default: 3650d for init, 365d for issue)"},
    {"days", FLAG_NUMBER, "NUMBER", NULL}, /* older name of --valid-for, of init */
    {"list", FLAG_TEXT, "FILE",
     "for revoke: the file of the list, which the nodes have as tls.revoked (default: revoked)"},
    {"force", FLAG_SWITCH, NULL, "overwrite existing files"},
    {0},
};

static const struct flag_use cert_uses[] = {
    {"out", "init issue secret"},
    {"ca", "issue"},
    {"host", "issue"},
    {"client", "issue"},
    {"valid-for", "init issue"},
    {"days", "init"},
    {"list", "revoke"},
    {"force", "init issue secret"},
    {0},
};

static const struct flag cluster_flags[] = {
    {"nodes", FLAG_NUMBER, "NUMBER", "the number of nodes, from 1 to 9 (default: 3)"},
    {0},
};

/* clang-format off */
const struct command commands[] = {
    {.name = "run", .arguments = "-- COMMAND [ARGUMENT…]", .arguments_max = ARGUMENTS_COMMAND,
     .summary = "run a command in exactly one of many places",
     .help = "Takes part in the election of a group and runs the command only while this candidate has the mandate, which is the right to lead. "
             "The whole process tree of the command is dead before another candidate starts the command; gavel-run(1) lists the exceptions. "
             "Instead of a command, the configuration file (-c or -f FILE) may list children, which gavel then runs and supervises. "
             "The exit code is that of the command: 128 + n if signal n killed it, 127 if it was not found, 126 if it cannot be executed. If gavel itself fails, it is one of those below.",
     .options = OPTIONS_STORE | OPTIONS_CANDIDATE | OPTIONS_SETTINGS | OPTIONS_WORK | OPTIONS_RUN,
     .exits = EXITS(STORE) | EXITS(ID_IN_USE) | EXITS(TIMEOUT) | EXITS(BUDGET),
     .run = command_run},
    {.name = "once", .arguments = "--key KEY -- COMMAND [ARGUMENT…]", .arguments_max = ARGUMENTS_COMMAND,
     .summary = "run a command to success at most once for a key",
     .help = "Runs the command unless it has already succeeded for this key; in that case exits with 0 at once. "
             "While another candidate runs it, stands by and takes over if that one fails or dies. "
             "Ends with the exit code of the command; 0 only if the success was recorded, 4 if it may not have been.",
     .options = OPTIONS_STORE | OPTIONS_CANDIDATE | OPTIONS_SETTINGS | OPTIONS_WORK,
     .exits = EXITS(STORE) | EXITS(ID_IN_USE) | EXITS(TIMEOUT) | EXITS(BUDGET) | EXITS(BUSY),
     .flags = once_flags, .run = command_once},
    {.name = "elect", .arguments = "",
     .summary = "take part in an election; one JSON line per event",
     .help = "Takes part in the election of a group and prints one line of JSON for each event. "
             "On SIGTERM, SIGINT or SIGHUP it releases its mandate, leaves the group and ends with exit code 0; a second signal ends it at once.",
     .options = OPTIONS_STORE | OPTIONS_CANDIDATE | OPTIONS_SETTINGS,
     .exits = EXITS(NO_LEADER) | EXITS(STORE) | EXITS(ID_IN_USE) | EXITS(TIMEOUT) | EXITS(BUDGET),
     .flags = elect_flags, .run = command_elect},
    {.name = "agent", .arguments = "",
     .summary = "take part on behalf of a program that only speaks HTTP",
     .help = "Takes part in the election of a group, and tells a program on this machine over HTTP whether it leads: GET /status, GET /leader, GET /events and more, see gavel-agent(1). "
             "No other candidate leads before the program has reported that its work has stopped, or its time to stop is over. "
             "On SIGTERM, SIGINT or SIGHUP it releases its mandate, leaves the group and ends with exit code 0; a second signal ends it at once.",
     .options = OPTIONS_STORE | OPTIONS_CANDIDATE | OPTIONS_SETTINGS,
     .exits = EXITS(NO_LEADER) | EXITS(STORE) | EXITS(ID_IN_USE) | EXITS(TIMEOUT) | EXITS(BUDGET),
     .flags = agent_flags, .run = command_agent},
    {.name = "leader", .arguments = "",
     .summary = "print who leads",
     .help = "Prints the id of the leader of a group. With --cluster, prints the leader of the cluster, or with --group that of a group of the cluster. Exit code 3 if there is none.",
     .options = OPTIONS_STORE | OPTIONS_CLUSTER | OPTIONS_GROUP,
     .exits = EXITS(NO_LEADER) | EXITS(STORE) | EXITS(TIMEOUT),
     .flags = leader_flags, .run = command_leader},
    {.name = "status", .arguments = "",
     .summary = "show the state of a group, of all groups, or of a cluster",
     .help = "Shows the mandate of a group: who holds it, with which epoch, since when and for how long. "
             "With --cluster, shows the nodes of a cluster: who leads, how far each node is, and what is wrong. "
             "With --cluster and --group, shows that group of the cluster.",
     .options = OPTIONS_STORE | OPTIONS_LISTING | OPTIONS_CLUSTER | OPTIONS_GROUP,
     .exits = EXITS(NO_LEADER) | EXITS(STORE) | EXITS(TIMEOUT),
     .flags = status_flags, .run = command_status},
    {.name = "groups", .arguments = "",
     .summary = "list the groups of a cluster or of a store",
     .help = "Lists all groups with their leaders, epochs and states, sorted by name.",
     .options = OPTIONS_STORE_ALL | OPTIONS_CLUSTER,
     .exits = EXITS(NO_LEADER) | EXITS(STORE) | EXITS(TIMEOUT),
     .flags = groups_flags, .run = command_groups},
    {.name = "group", .arguments = "delete NAME", .arguments_max = 2,
     .summary = "delete a group of a cluster",
     .help = "delete NAME removes a group that nobody leads and nobody takes part in. It never ends a mandate: stop the candidates first. "
             "The epochs of a group that is made anew under this name are higher than all before.",
     .options = OPTIONS_CLUSTER | OPTIONS_NODES,
     .exits = EXITS(NO_LEADER) | EXITS(STORE) | EXITS(TIMEOUT),
     .flags = group_flags, .run = command_group},
    {.name = "candidates", .arguments = "",
     .summary = "list the active candidates of a group",
     .help = "Lists the candidates of a group that were heard from within the candidate time-out. With --cluster, lists those of a group of the cluster.",
     .options = OPTIONS_STORE | OPTIONS_LISTING | OPTIONS_CLUSTER | OPTIONS_GROUP,
     .exits = EXITS(NO_LEADER) | EXITS(STORE) | EXITS(TIMEOUT),
     .run = command_candidates},
    {.name = "watch", .arguments = "",
     .summary = "print each change of leader as it happens",
     .help = "Prints who leads a group, and then a line for each change. With --cluster, prints a line for each event of the nodes, or with --group the changes of that group of the cluster.",
     .options = OPTIONS_STORE | OPTIONS_CLUSTER | OPTIONS_GROUP,
     .exits = EXITS(NO_LEADER) | EXITS(STORE) | EXITS(TIMEOUT),
     .flags = watch_flags, .run = command_watch},
    {.name = "note", .arguments = "ACTION GROUP [KEY] [VALUE]", .arguments_max = 4,
     .summary = "read and write the notes of a group of a cluster",
     .help = "Notes are small values that the leader of a group leaves for the next one. get GROUP KEY prints one. "
             "put GROUP KEY VALUE writes one and prints its revision; VALUE is - to read it from stdin. delete GROUP KEY removes one. list GROUP shows all. "
             "watch GROUP [KEY] prints each change.",
     .options = OPTIONS_CLUSTER | OPTIONS_NODES,
     .exits = EXITS(NO_LEADER) | EXITS(STORE) | EXITS(TIMEOUT) | EXITS(STALE),
     .flags = note_flags, .uses = note_uses, .run = command_note},
    {.name = "handover", .arguments = "",
     .summary = "ask the leader to hand over: of a group, or of a cluster",
     .help = "Asks the leader of a group to hand over, waits until it has, and prints who leads now. The work of the old leader stops first. "
             "A leader hands over only after its minimum mandate, unless --force is given. With --cluster and --group, this is a group of the cluster. "
             "With --cluster alone, the leader of the cluster itself hands over: to the node of --to, once that has caught up, or without --to to whichever node is elected. "
             "If nobody takes over in time, the leader of a cluster, or of a group of a cluster, stays leader.",
     .options = OPTIONS_STORE | OPTIONS_LISTING | OPTIONS_CLUSTER | OPTIONS_GROUP,
     .exits = EXITS(NO_LEADER) | EXITS(STORE) | EXITS(TIMEOUT),
     .flags = handover_flags, .run = command_handover},
    {.name = "check", .arguments = "",
     .summary = "check that the settings add up, or that a cluster is healthy",
     .help = "Prints the timing budget of the settings, the longest time without a leader and the longest overlap of two leaders. "
             "Starts nothing and does not touch the store. Exit code 7 if the times do not add up. "
             "Of the children of a file (-f FILE) it looks up users, directories and programs, as `gavel run` does: exit code 127 if a program was not found, 126 if it cannot be executed. "
             "With --cluster, checks the nodes of a cluster instead: exit code 10 for split brain, 3 if nobody leads, 1 if a node is unhealthy.",
     .options = OPTIONS_STORE | OPTIONS_CANDIDATE | OPTIONS_SETTINGS | OPTIONS_CLUSTER,
     .exits = EXITS(NO_LEADER) | EXITS(STORE) | EXITS(BUDGET) | EXITS(SPLIT_BRAIN),
     .flags = check_flags, .run = command_check},
    {.name = "store", .arguments = "ACTION [ARGUMENT]", .arguments_max = 2,
     .summary = "measure, migrate or back up a store; print its SQL; list the kinds of stores",
     .help = "ping measures how long the store takes to read, claim, renew and release, on the group gavel-store-ping, and says for each preset whether its times fit. "
             "It ends with exit code 7 if those of the store's own preset, or of --preset, do not. "
             "sql mysql prints the SQL that creates the tables, for an administrator. list shows the kinds of stores in this build, with an example of each. "
             "migrate changes a table that another program created so that gavel can share it. backup copies a SQLite store to a new file while it is in use.",
     .options = OPTIONS_STORE_ALL | OPTIONS_CALLS,
     .exits = EXITS(STORE) | EXITS(TIMEOUT) | EXITS(BUDGET),
     .flags = store_flags, .uses = store_uses, .run = command_store},
    {.name = "elections", .arguments = "",
     .summary = "show the elections of a cluster: who stood, who voted for whom, and why not",
     .help = "Shows the elections that the nodes of a cluster remember, newest first: the candidate, the result, how long it took, and the vote of each node with its reason.",
     .options = OPTIONS_CLUSTER | OPTIONS_NODES,
     .exits = EXITS(STORE) | EXITS(TIMEOUT),
     .flags = elections_flags, .run = command_elections},
    {.name = "member", .arguments = "ACTION [NAME [ADDRESS]]", .arguments_max = 3,
     .summary = "list the members of a cluster, or change them",
     .help = "list shows the members of a cluster. "
             "add NAME ADDRESS adds a node that was started with --join; ADDRESS, host:port, is where the other nodes reach it. remove NAME removes a member. "
             "promote NAME makes a learner a voter, demote NAME makes a voter a learner. Changes are made one at a time.",
     .options = OPTIONS_CLUSTER | OPTIONS_NODES,
     .exits = EXITS(NO_LEADER) | EXITS(STORE) | EXITS(TIMEOUT),
     .flags = member_flags, .uses = member_uses, .run = command_member},
    {.name = "cert", .arguments = "ACTION [NAME]", .arguments_max = 2,
     .summary = "make the certificates of a cluster",
     .help = "init CLUSTER creates the CA and the secret of a cluster: ca.crt, ca.key and cluster.secret. "
             "issue NAME creates the certificate and the key of a node, NAME.crt and NAME.key; with --client, those of a program that uses the cluster. "
             "show FILE prints the contents of a certificate. revoke FILE adds a certificate to the list of those that the nodes reject. "
             "secret creates only cluster.secret. Only their owner can read the keys and the secret. Existing files are kept unless --force is given.",
     .flags = cert_flags, .uses = cert_uses, .run = command_cert},
    {.name = "cluster", .arguments = "demo", .arguments_max = 1,
     .summary = "start a cluster on this machine, to try it out",
     .help = "Starts three gaveld on loopback in a temporary directory, says how to reach them, and reports in plain words what happens to them. Ctrl-C ends them and removes the directory.",
     .exits = EXITS(TIMEOUT),
     .flags = cluster_flags, .run = command_cluster},
    {.name = "demo", .arguments = "",
     .summary = "watch three gavel run through hand-over, SIGKILL and SIGSTOP",
     .help = "Starts three gavel run on a SQLite store. Hands over; kills the elector, the guard and the command of leaders; freezes one. "
             "Then prints whose command ran when, and whether two ever ran at once. Fails if they did."},
    {.name = "bench", .arguments = "",
     .summary = "measure how fast gavel is on this machine",
     .help = "Measures the calls of the library, the store, and hand-over and fail-over between real processes: with the library, with gavel run and with three gaveld."},
    {.name = "help", .arguments = "[COMMAND]", .arguments_max = 1,
     .summary = "show how to use a command",
     .help = "Shows how to use the program or one of its commands.",
     .run = command_help},
    {.name = "version", .arguments = "",
     .summary = "print the version",
     .help = "Prints the version.",
     .run = command_version},
    /* Older names. */
    {.name = "resign", .arguments = "",
     .summary = "the same as handover, of a group",
     .help = "The same as `gavel handover` for a group. Without --group the group is `default`, also with --cluster.",
     .options = OPTIONS_STORE | OPTIONS_LISTING | OPTIONS_CLUSTER | OPTIONS_GROUP,
     .exits = EXITS(NO_LEADER) | EXITS(STORE) | EXITS(TIMEOUT),
     .flags = handover_flags, .run = command_resign, .older_name_of = "handover"},
    {.name = "stepdown", .arguments = "",
     .summary = "the same as handover, of the nodes of a cluster",
     .help = "The same as `gavel handover --cluster`: the leader of a cluster stops its work and resigns; the nodes elect another leader, or the same one again.",
     .options = OPTIONS_CLUSTER | OPTIONS_NODES,
     .exits = EXITS(NO_LEADER) | EXITS(STORE) | EXITS(TIMEOUT),
     .flags = stepdown_flags, .run = command_stepdown, .older_name_of = "handover"},
    {.name = "transfer", .arguments = "[NAME]", .arguments_max = 1,
     .summary = "the same as handover --to NAME, of a cluster or of one of its groups",
     .help = "The same as `gavel handover --cluster --to NAME`, or with --group for a group of the cluster. "
             "NAME may be given without --to. The default of --timeout is 30s.",
     .options = OPTIONS_CLUSTER | OPTIONS_NODES | OPTIONS_GROUP,
     .exits = EXITS(NO_LEADER) | EXITS(STORE) | EXITS(TIMEOUT),
     .flags = handover_flags, .run = command_transfer, .older_name_of = "handover"},
    {0},
};
/* clang-format on */

int main(int argc, char **argv) { return program_main(argc, argv); }
