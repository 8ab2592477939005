/* SPDX-License-Identifier: Apache-2.0 */

/* The program `gavel`: the table of its subcommands. */
#include "cli/cli.h"
#include "cli/program.h"

static const struct flag once_flags[] = {
    {"key", FLAG_TEXT, "KEY", "what is to be done once, such as nightly-2026-11-15"},
    {"no-wait", FLAG_SWITCH, NULL, "if another runs it, do not stand by: end with exit code 8"},
    {"forget", FLAG_SWITCH, NULL, "run nothing: let the key be done again, with a higher epoch"},
    {0},
};

static const struct flag elect_flags[] = {
    {"events", FLAG_TEXT, "NAMES", "print only these, separated by commas (default: all)"},
    {0},
};

static const struct flag agent_flags[] = {
    {"listen", FLAG_TEXT, "ADDRESS",
     "where programs reach it: host:port, port 0 for any, or the path of a socket (default: 127.0.0.1:7700)"},
    {"token-file", FLAG_TEXT, "FILE",
     "a file whose first line callers must show; without it only this machine can be listened on"},
    {"drain", FLAG_SWITCH, NULL,
     "give the mandate up only when the program has said that it has stopped (POST /stopped), or at the "
     "deadline: the default"},
    {"no-drain", FLAG_SWITCH, NULL,
     "wait for nobody: another leads at once, maybe beside the program; for health checks and fenced work"},
    {"alive-within", FLAG_DURATION, "DURATION",
     "lead only while the program says at least so often that it lives (POST /alive)"},
    {0},
};

static const struct flag leader_flags[] = {
    {"wait", FLAG_DURATION, "DURATION",
     "wait so long for a leader if there is none; exit code 6 if there is still none then"},
    {0},
};

static const struct flag status_flags[] = {
    {"all", FLAG_SWITCH, NULL, "list all groups of the store"},
    {"watch", FLAG_PACE, "[DURATION]",
     "of a cluster: look again and again until Ctrl-C (default: every second)"},
    {0},
};

static const struct flag watch_flags[] = {
    {"count", FLAG_NUMBER, "NUMBER", "end after so many lines, at least 1"},
    {"timeout", FLAG_DURATION, "DURATION", "end after so long; exit code 6 if --count was not reached"},
    {0},
};

static const struct flag handover_flags[] = {
    {"to", FLAG_TEXT, "NAME", "who is to lead next: a candidate of the group, or a node"},
    {"force", FLAG_SWITCH, NULL,
     "of a group: also within the minimum mandate; of nodes, with --to: also to one that is behind, or if "
     "the "
     "leader hangs: what that node does not have is lost"},
    {"timeout", FLAG_DURATION, "DURATION", "how long it may take (default: 10s; of nodes: 30s)"},
    {0},
};

static const struct flag check_flags[] = {
    {"candidates", FLAG_NUMBER, "NUMBER", "how many candidates the group has (default: 3)"},
    {"prices", FLAG_TEXT, "PUT,GET,LIST",
     "what an object store bills, in US dollars for a thousand requests (default: 0.005,0.0004,0.005)"},
    {0},
};

static const struct flag store_flags[] = {
    {"count", FLAG_NUMBER, "NUMBER",
     "of ping: so many rounds (default: what fits into 5 seconds, at most 100)"},
    {"read-only", FLAG_SWITCH, NULL, "of ping: only reads; nothing is made or written"},
    {"table", FLAG_TEXT, "NAME", "of sql: the name of the table (default: locks)"},
    {0},
};

static const struct flag elections_flags[] = {
    {"limit", FLAG_NUMBER, "NUMBER", "how many, the newest first (default: 10)"},
    {"pre-votes", FLAG_SWITCH, NULL, "also the rounds of pre-votes that led nowhere"},
    {0},
};

static const struct flag groups_flags[] = {
    {"prefix", FLAG_BEGINNING, "TEXT", "only those whose names begin so"},
    {0},
};

static const struct flag note_flags[] = {
    {"epoch", FLAG_TEXT, "NUMBER",
     "of put and delete: the epoch of whoever writes; refused with exit code 9 once the group has a newer "
     "one"},
    {"if-revision", FLAG_TEXT, "NUMBER", "of put and delete: only if the note has this revision"},
    {"create", FLAG_SWITCH, NULL, "of put: only if there is no such note"},
    {"prefix", FLAG_BEGINNING, "TEXT", "of list and watch: only keys that begin so"},
    {"after", FLAG_TEXT, "REVISION", "of watch: also what has changed since then (default: from now on)"},
    {"count", FLAG_NUMBER, "NUMBER", "of watch: end after so many lines, at least 1"},
    {"timeout", FLAG_DURATION, "DURATION",
     "of watch: end after so long; exit code 6 if --count was not reached"},
    {0},
};

static const struct flag stepdown_flags[] = {
    {"timeout", FLAG_DURATION, "DURATION", "how long it may take (default: 30s)"},
    {0},
};

static const struct flag member_flags[] = {
    {"api", FLAG_TEXT, "ADDRESS", "of add: where its HTTP API is"},
    {"priority", FLAG_NUMBER, "NUMBER", "of add: the higher, the sooner it leads (default: 0)"},
    {"witness", FLAG_SWITCH, NULL, "of add: it votes and never leads"},
    {"learner", FLAG_SWITCH, NULL, "of add: it follows without a vote until it is promoted"},
    {"timeout", FLAG_DURATION, "DURATION", "how long it may take (default: 30s)"},
    {0},
};

static const struct flag cert_flags[] = {
    {"out", FLAG_TEXT, "FOLDER", "where the files go (default: this folder)"},
    {"ca", FLAG_TEXT, "FOLDER", "of issue: where ca.crt and ca.key are (default: this folder)"},
    {"host", FLAG_LIST, "HOST",
     "of issue: a name or an address that the API of the node is called by; may be given more than once "
     "(default: "
     "localhost, 127.0.0.1 and ::1)"},
    {"client", FLAG_SWITCH, NULL, "of issue: for a program that uses the cluster, and not for a node"},
    {"valid-for", FLAG_DURATION, "DURATION", "how long it is valid (default: 3650d of init, 365d of issue)"},
    {"days", FLAG_NUMBER, "NUMBER", NULL}, /* older name of --valid-for, of init */
    {"list", FLAG_TEXT, "FILE", "of revoke: the list that the nodes have as tls.revoked (default: revoked)"},
    {"force", FLAG_SWITCH, NULL, "replace files that are there"},
    {0},
};

static const struct flag cluster_flags[] = {
    {"nodes", FLAG_NUMBER, "NUMBER", "from 1 to 9 (default: 3)"},
    {0},
};

/* clang-format off */
const struct command commands[] = {
    {.name = "run", .arguments = "-- COMMAND [ARGUMENT…]", .arguments_max = ARGUMENTS_COMMAND,
     .summary = "run a command in exactly one of many places",
     .help = "Takes part in the election of a group and runs the command only while it leads. When the mandate "
             "ends, the whole process tree of the command is dead before another candidate may start its own. "
             "With -f FILE instead of a command, the children listed in that file are run and supervised. Ends "
             "with the exit code of the command, 128 + n if signal n killed it, 127 if it is not there, 126 if "
             "it cannot be executed.",
     .options = OPTIONS_STORE | OPTIONS_CANDIDATE | OPTIONS_SETTINGS | OPTIONS_WORK | OPTIONS_RUN,
     .exits = EXITS(NO_LEADER) | EXITS(STORE) | EXITS(ID_IN_USE) | EXITS(TIMEOUT) | EXITS(BUDGET),
     .run = command_run},
    {.name = "once", .arguments = "--key KEY -- COMMAND [ARGUMENT…]", .arguments_max = ARGUMENTS_COMMAND,
     .summary = "run a command to success at most once for a key",
     .help = "Runs the command unless somebody has done so for this key and succeeded; then it ends with exit "
             "code 0 at once. While another runs it, it stands by and takes over if that one fails or dies. "
             "Ends with the exit code of the command; 0 only if the success is recorded, 4 if it may not be.",
     .options = OPTIONS_STORE | OPTIONS_CANDIDATE | OPTIONS_SETTINGS | OPTIONS_WORK,
     .exits = EXITS(NO_LEADER) | EXITS(STORE) | EXITS(ID_IN_USE) | EXITS(TIMEOUT) | EXITS(BUDGET) | EXITS(BUSY),
     .flags = once_flags, .run = command_once},
    {.name = "elect", .arguments = "",
     .summary = "take part in an election; one JSON line per event",
     .help = "Takes part in the election of a group until SIGTERM, SIGINT or SIGHUP, and prints one line of "
             "JSON for each event. Then it gives up what it leads, leaves the group and ends with exit code 0; "
             "a second signal ends it at once.",
     .options = OPTIONS_STORE | OPTIONS_CANDIDATE | OPTIONS_SETTINGS,
     .exits = EXITS(NO_LEADER) | EXITS(STORE) | EXITS(ID_IN_USE) | EXITS(TIMEOUT) | EXITS(BUDGET),
     .flags = elect_flags, .run = command_elect},
    {.name = "agent", .arguments = "",
     .summary = "take part on behalf of a program that only speaks HTTP",
     .help = "Takes part in the election of a group, and tells a program on this machine by HTTP whether it "
             "leads: GET /status, GET /leader, GET /events and more, see gavel-agent(1). No other candidate "
             "leads before the program has said that its work has stopped, or has had its time for that. "
             "SIGTERM, SIGINT or SIGHUP: it gives up what it leads, leaves the group and ends with exit code "
             "0; a second signal ends it at once.",
     .options = OPTIONS_STORE | OPTIONS_CANDIDATE | OPTIONS_SETTINGS,
     .exits = EXITS(NO_LEADER) | EXITS(STORE) | EXITS(ID_IN_USE) | EXITS(TIMEOUT) | EXITS(BUDGET),
     .flags = agent_flags, .run = command_agent},
    {.name = "leader", .arguments = "",
     .summary = "print who leads",
     .help = "Prints the id of the leader of a group; with --cluster, of the group that --group names there, "
             "or of the nodes themselves. Exit code 3 if there is none.",
     .options = OPTIONS_STORE | OPTIONS_CLUSTER | OPTIONS_GROUP,
     .exits = EXITS(NO_LEADER) | EXITS(STORE) | EXITS(TIMEOUT),
     .flags = leader_flags, .run = command_leader},
    {.name = "status", .arguments = "",
     .summary = "show the state of a group, of all groups, or of a cluster",
     .help = "Shows the mandate of a group: who holds it, with which epoch, since when and for how long. With "
             "--cluster it shows the nodes of a cluster: who leads, how far each is, and what is wrong; with "
             "--group besides, that group of the cluster.",
     .options = OPTIONS_STORE | OPTIONS_LISTING | OPTIONS_CLUSTER | OPTIONS_GROUP,
     .exits = EXITS(NO_LEADER) | EXITS(STORE) | EXITS(TIMEOUT),
     .flags = status_flags, .run = command_status},
    {.name = "groups", .arguments = "",
     .summary = "list the groups of a cluster or of a store",
     .help = "Lists all groups with their leaders, epochs and states, sorted by name; of a cluster page by "
             "page, however many there are.",
     .options = OPTIONS_PLACE | OPTIONS_CLUSTER,
     .exits = EXITS(NO_LEADER) | EXITS(STORE) | EXITS(TIMEOUT),
     .flags = groups_flags, .run = command_groups},
    {.name = "candidates", .arguments = "",
     .summary = "list the active candidates of a group",
     .help = "Lists who takes part in a group and was heard of within the candidate time-out; with --cluster, "
             "of a group of the cluster.",
     .options = OPTIONS_STORE | OPTIONS_LISTING | OPTIONS_CLUSTER | OPTIONS_GROUP,
     .exits = EXITS(NO_LEADER) | EXITS(STORE) | EXITS(TIMEOUT),
     .run = command_candidates},
    {.name = "watch", .arguments = "",
     .summary = "print each change of leader as it happens",
     .help = "Prints who leads a group now, and then a line for each change; with --cluster, of the group that "
             "--group names there, or a line for each event of its nodes.",
     .options = OPTIONS_STORE | OPTIONS_CLUSTER | OPTIONS_GROUP,
     .exits = EXITS(NO_LEADER) | EXITS(STORE) | EXITS(TIMEOUT),
     .flags = watch_flags, .run = command_watch},
    {.name = "note", .arguments = "ACTION GROUP [KEY] [VALUE]", .arguments_max = 4,
     .summary = "read and write the notes of a group of a cluster",
     .help = "Notes are small values that the leader of a group leaves for the next one. get GROUP KEY prints "
             "one. put GROUP KEY VALUE writes one and prints its revision; VALUE is - to read it from stdin. "
             "delete GROUP KEY removes one. list GROUP shows all. watch GROUP [KEY] prints each change.",
     .options = OPTIONS_CLUSTER | OPTIONS_NODES,
     .exits = EXITS(NO_LEADER) | EXITS(STORE) | EXITS(TIMEOUT) | EXITS(STALE),
     .flags = note_flags, .run = command_note},
    {.name = "handover", .arguments = "",
     .summary = "ask the leader to hand over: of a group, or of a cluster",
     .help = "Asks the leader of a group to hand over, waits until it has, and says who leads then. Its work "
             "stops first. It hands over only after its minimum mandate, unless --force is given. With "
             "--cluster it is the group of a cluster that --group names; without --group, the cluster itself: "
             "its leader stops its work, brings the node of --to level and lets it lead, or without --to lets "
             "the nodes elect one. If the other does not take over in time, the leader of a cluster or of a "
             "group there goes on.",
     .options = OPTIONS_STORE | OPTIONS_LISTING | OPTIONS_CLUSTER | OPTIONS_GROUP,
     .exits = EXITS(NO_LEADER) | EXITS(STORE) | EXITS(TIMEOUT),
     .flags = handover_flags, .run = command_handover},
    {.name = "check", .arguments = "",
     .summary = "say whether the settings add up, or whether a cluster is well",
     .help = "Prints the timing budget of the settings, the longest time without a leader and the longest "
             "overlap of two. Nothing is started and the store is not touched. Exit code 7 if the times do not "
             "add up. With --cluster it looks for two leaders at once instead, and for nodes that are not "
             "well: exit code 10 for split brain, 3 if nobody leads, 1 if a node is not well.",
     .options = OPTIONS_STORE | OPTIONS_CANDIDATE | OPTIONS_SETTINGS | OPTIONS_CLUSTER,
     .exits = EXITS(NO_LEADER) | EXITS(STORE) | EXITS(BUDGET) | EXITS(SPLIT_BRAIN),
     .flags = check_flags, .run = command_check},
    {.name = "store", .arguments = "ACTION [ARGUMENT]", .arguments_max = 2,
     .summary = "measure a store, print its SQL, list the kinds of stores, migrate or back up one",
     .help = "ping measures how long the store takes to read, claim, renew and release, on the group "
             "gavel-store-ping, and says for each preset whether its times fit: exit code 7 if those of the "
             "store's own preset, or of --preset, do not. sql mysql prints the SQL that makes the tables, for "
             "an administrator. list shows the kinds of stores that this build has, with an example of each. "
             "migrate changes a table that another program made so that gavel can share it. backup copies a "
             "store of SQLite to a new file, while it is in use.",
     .options = OPTIONS_PLACE | OPTIONS_CALLS,
     .exits = EXITS(STORE) | EXITS(TIMEOUT) | EXITS(BUDGET),
     .flags = store_flags, .run = command_store},
    {.name = "elections", .arguments = "",
     .summary = "tell of the elections of a cluster: who stood, who voted for whom, why not",
     .help = "Puts together what the nodes of a cluster remember of their elections, the newest first: the "
             "candidate, the result, how long it took, and the vote of each node with its reason.",
     .options = OPTIONS_CLUSTER | OPTIONS_NODES,
     .exits = EXITS(STORE) | EXITS(TIMEOUT),
     .flags = elections_flags, .run = command_elections},
    {.name = "member", .arguments = "ACTION [NAME [ADDRESS]]", .arguments_max = 3,
     .summary = "list the members of a cluster, or change them",
     .help = "list shows the members of a cluster. add NAME ADDRESS takes in a node that was started with "
             "--join; ADDRESS is where the other nodes reach it, host:port. remove NAME takes one out. promote "
             "NAME makes a learner a voter, demote NAME a voter a learner. One change at a time.",
     .options = OPTIONS_CLUSTER | OPTIONS_NODES,
     .exits = EXITS(NO_LEADER) | EXITS(STORE) | EXITS(TIMEOUT),
     .flags = member_flags, .run = command_member},
    {.name = "cert", .arguments = "ACTION [NAME]", .arguments_max = 2,
     .summary = "make the certificates of a cluster",
     .help = "init CLUSTER makes a CA and the secret of a cluster: ca.crt, ca.key and cluster.secret. issue "
             "NAME makes the certificate of a node and its key, NAME.crt and NAME.key; with --client that of a "
             "program that uses the cluster. show FILE prints what a certificate says. revoke FILE adds a "
             "certificate to the list of those that the nodes take no more. secret makes only cluster.secret. "
             "Keys and the secret can be read by their owner only, and nothing is replaced unless --force is "
             "given.",
     .flags = cert_flags, .run = command_cert},
    {.name = "cluster", .arguments = "demo", .arguments_max = 1,
     .summary = "start a cluster on this machine, to try",
     .help = "Starts three gaveld on loopback in a temporary folder, says how to talk to them, and prints what "
             "happens to them in plain words. Ctrl-C ends them and removes the folder.",
     .exits = EXITS(TIMEOUT),
     .flags = cluster_flags, .run = command_cluster},
    {.name = "demo", .arguments = "",
     .summary = "watch three gavel run through hand-over, SIGKILL and SIGSTOP",
     .help = "Runs three gavel run on a SQLite store: hands over, kills the elector, the guard and the command "
             "of leaders, freezes one, prints whose command ran when, and says whether two ever ran at once. "
             "Fails if they did."},
    {.name = "bench", .arguments = "",
     .summary = "measure how fast gavel is on this machine",
     .help = "Measures the calls of the library, the store, hand-over and fail-over between real processes, "
             "with the library, with gavel run and with three gaveld."},
    {.name = "help", .arguments = "[COMMAND]", .arguments_max = 1,
     .summary = "say how a command is used",
     .help = "Says how the program or one of its commands is used.",
     .run = command_help},
    {.name = "version", .arguments = "",
     .summary = "print the version",
     .help = "Prints the version.",
     .run = command_version},
    /* Older names. */
    {.name = "resign", .arguments = "",
     .summary = "the same as handover, of a group",
     .help = "The same as `gavel handover` of a group, which is named `default` if --group does not say "
             "otherwise, also with --cluster.",
     .options = OPTIONS_STORE | OPTIONS_LISTING | OPTIONS_CLUSTER | OPTIONS_GROUP,
     .exits = EXITS(NO_LEADER) | EXITS(STORE) | EXITS(TIMEOUT),
     .flags = handover_flags, .run = command_resign, .older_name_of = "handover"},
    {.name = "stepdown", .arguments = "",
     .summary = "the same as handover, of the nodes of a cluster",
     .help = "The same as `gavel handover --cluster`: the leader of a cluster stops its work and gives up; the "
             "nodes elect another, or it again.",
     .options = OPTIONS_CLUSTER | OPTIONS_NODES,
     .exits = EXITS(NO_LEADER) | EXITS(STORE) | EXITS(TIMEOUT),
     .flags = stepdown_flags, .run = command_stepdown, .older_name_of = "handover"},
    {.name = "transfer", .arguments = "[NAME]", .arguments_max = 1,
     .summary = "the same as handover --to NAME, of a cluster or of one of its groups",
     .help = "The same as `gavel handover --cluster --to NAME`, or with --group that of a group of the "
             "cluster. NAME may stand without --to. It may take 30s unless --timeout says otherwise.",
     .options = OPTIONS_CLUSTER | OPTIONS_NODES | OPTIONS_GROUP,
     .exits = EXITS(NO_LEADER) | EXITS(STORE) | EXITS(TIMEOUT),
     .flags = handover_flags, .run = command_transfer, .older_name_of = "handover"},
    {0},
};
/* clang-format on */

int main(int argc, char **argv) { return program_main(argc, argv); }
