/* SPDX-License-Identifier: Apache-2.0 */

/* Time on the stage of the quorum, and the commands that move it. What else a story can say is in command.c.
 */

#include "trace/quorum.h"

#include "trace/command.h"
#include "trace/words.h"

#include <stdlib.h>
#include <string.h>

#define STEPS_MAX 2000000
#define UNTIL_MAX (60 * NS_PER_S)

struct quorum *quorum_new(FILE *out)
{
    struct quorum *quorum = calloc(1, sizeof *quorum);

    quorum->out = quorum->loud = out;
    quorum->seed = 1;
    quorum->load_at = NEVER;
    raft_settings_default(&quorum->settings);
    quorum->settings.verify = post_verify;
    quorum->settings.sign = post_sign;
    for (size_t i = 0; i <= NODES_MAX; i++)
        for (size_t j = 0; j <= NODES_MAX; j++)
            quorum->links[i][j].delay = POST_DELAY;
    return quorum;
}

void quorum_free(struct quorum *quorum)
{
    for (size_t i = 0; i <= NODES_MAX; i++)
        node_free(&quorum->nodes[i]);
    for (size_t i = 0; i < quorum->agreed_count; i++)
        free(quorum->agreed[i].text);
    free(quorum->agreed);
    free(quorum->leaders);
    letters_free(&quorum->post);
    free(quorum);
}

/* A proposal to whoever works, as clients would send it; nobody is told. */
static void propose_load(struct quorum *quorum)
{
    const struct raft_entry entry = {.kind = RAFT_ENTRY_DATA, .size = 1, .data = (const uint8_t *)"."};

    quorum->load_at = quorum->now + quorum->load_every;
    for (raft_id id = 1; id <= NODES_MAX; id++) {
        struct node *node = &quorum->nodes[id];

        if (node->is_alive && node->is_working && !node->is_hung &&
            node_feed(quorum, node,
                      (struct raft_event){.kind = RAFT_PROPOSE,
                                          .propose = {.entries = &entry, .count = 1}}) == GAVEL_OK)
            quorum->load_count++;
    }
}

/* Carries out what is due next if it is due by `end`; false if nothing is. */
static bool advance(struct quorum *quorum, gavel_ns end)
{
    struct letter *letter = post_next(quorum);
    struct node *next = NULL;
    gavel_ns at = NEVER;

    for (raft_id id = 1; id <= NODES_MAX; id++) {
        gavel_ns due = node_due_at(quorum, &quorum->nodes[id]);

        if (due < at) {
            at = due;
            next = &quorum->nodes[id];
        }
    }
    if (letter && letter->at < at)
        at = letter->at;
    else
        letter = NULL;
    if (ns_min(at, quorum->load_at) > end)
        return false;
    quorum->now = ns_max(quorum->now, ns_min(at, quorum->load_at));
    if (quorum->load_at < at)
        propose_load(quorum);
    else if (letter)
        post_deliver(quorum, letter);
    else
        node_do_due(quorum, next);
    return true;
}

static bool run_for(struct quorum *quorum, gavel_ns length)
{
    gavel_ns end = quorum->now + length;
    int steps = 0;

    while (advance(quorum, end)) {
        if (++steps > STEPS_MAX) {
            fprintf(quorum->loud, "ALARM: time stands still: a node is due again and again\n");
            return true;
        }
    }
    quorum->now = end;
    return true;
}

static bool is_so(const struct node *node, char **words, size_t count)
{
    const struct raft *raft = &node->raft;

    if (!node->is_alive)
        return false;
    if (strcmp(words[2], "leads") == 0)
        return raft->role == RAFT_LEADER;
    if (strcmp(words[2], "works") == 0)
        return node->is_working && !node->is_hung && raft->work == RAFT_WORK_RUNNING;
    if (strcmp(words[2], "idle") == 0)
        return !node->is_working;
    if (strcmp(words[2], "follows") == 0 && count == 4)
        return raft->leader == (raft_id)(words[3][0] - 'a' + 1) && raft->role <= RAFT_FOLLOWER;
    if (strcmp(words[2], "applied") == 0 && count == 4)
        return node->applied >= strtoull(words[3], NULL, 10);
    return strcmp(words[2], raft_role_name(raft->role)) == 0;
}

/* Whether is_so() can tell; says so if not. */
static bool is_state(struct quorum *quorum, char **words, size_t count)
{
    static const char *const states[] = {"leads", "works", "idle"};
    const char *word = words[2];

    if (count == 4 && strcmp(word, "follows") == 0)
        return command_node(quorum, words[3]) != NULL;
    if (count == 4 && strcmp(word, "applied") == 0)
        return words[3][0] != '\0' && words[3][strspn(words[3], "0123456789")] == '\0';
    for (size_t i = 0; count == 3 && i < sizeof states / sizeof *states; i++)
        if (strcmp(word, states[i]) == 0)
            return true;
    for (unsigned role = 0; count == 3 && role < RAFT_ROLE_COUNT; role++)
        if (strcmp(word, raft_role_name((enum raft_role)role)) == 0)
            return true;
    fprintf(quorum->out, "\"%s\" is no state of a node to wait for\n", word);
    return false;
}

/* until a works, until one works, until a follows b, until a applied 7, until a candidate */
static bool run_until(struct quorum *quorum, char **words, size_t count)
{
    gavel_ns end = quorum->now + UNTIL_MAX;
    struct node *one = count >= 3 ? command_node(quorum, words[1]) : NULL;

    if (count < 3 || (!one && strcmp(words[1], "one") != 0) || !is_state(quorum, words, count))
        return false;
    for (int steps = 0;; steps++) {
        for (raft_id id = 1; id <= NODES_MAX; id++)
            if ((!one || one == &quorum->nodes[id]) && quorum->nodes[id].is_made &&
                is_so(&quorum->nodes[id], words, count))
                return true;
        if (!advance(quorum, end) || steps > STEPS_MAX) {
            fprintf(quorum->loud, "ALARM: it did not come to that within a minute\n");
            return true;
        }
    }
}

/* elect a: quietly, for stories that begin with a leader; everybody has heard of it in the end */
static bool elect(struct quorum *quorum, char **words, size_t count)
{
    char works[] = "works";
    char *until[] = {words[0], words[1], works};
    struct node *node = count == 2 ? command_node(quorum, words[1]) : NULL;
    char *told = NULL;
    size_t size = 0;

    if (!node)
        return false;
    quorum->out = open_memstream(&told, &size);
    (void)node_feed(quorum, node, (struct raft_event){.kind = RAFT_CAMPAIGN});
    (void)run_until(quorum, until, 3);
    (void)run_for(quorum, 2 * quorum->settings.heartbeat);
    fclose(quorum->out);
    free(told);
    quorum->out = quorum->loud;
    tell(quorum, node, "has been elected in term %llu, and works with token %llu/%llu",
         (unsigned long long)node->raft.state.term, (unsigned long long)node->work_term,
         (unsigned long long)node->work_epoch);
    return true;
}

void quorum_command(struct quorum *quorum, const char *command)
{
    char *words[WORDS_MAX];
    char *copy = strdup(command);
    size_t count = words_split(copy, words);
    bool is_understood = false;
    gavel_ns length;

    if (count == 2 && strcmp(words[0], "run") == 0)
        is_understood = words_take_duration(quorum->out, words[1], &length) && run_for(quorum, length);
    else if (count > 0 && strcmp(words[0], "until") == 0)
        is_understood = run_until(quorum, words, count);
    else if (count > 0 && strcmp(words[0], "elect") == 0)
        is_understood = elect(quorum, words, count);
    else if (count > 0)
        is_understood = command_run(quorum, words, count);
    if (!is_understood)
        fprintf(quorum->out, "cannot be understood:%s\n", command);
    free(copy);
}
