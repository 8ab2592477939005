/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What was last seen under a key, so that a renewal is one request: it knows
 * the mod revision that it has to compare with, and the record that it changes.
 * What is known may be old; the comparison tells.
 */
#include "store/etcd/etcd.h"

#include <stdlib.h>
#include <string.h>

static int compare(const struct etcd_known *a, const struct etcd_known *b) { return strcmp(a->key, b->key); }

/* Not RB_GENERATE_STATIC: it counts on a macro that headers of Linux may take away. */
RB_GENERATE_INTERNAL(etcd_known_tree, etcd_known, by_key, compare, static __attribute__((__unused__)))

struct etcd_known *etcd_known_find(struct etcd_known_tree *tree, const char *key)
{
    struct etcd_known *known = RB_ROOT(tree);

    while (known) {
        int order = strcmp(key, known->key);

        if (order == 0)
            break;
        known = order < 0 ? RB_LEFT(known, by_key) : RB_RIGHT(known, by_key);
    }
    return known;
}

struct etcd_known *etcd_known_get(struct etcd_known_tree *tree, const char *key)
{
    struct etcd_known *known = etcd_known_find(tree, key);
    size_t size = strlen(key) + 1;

    if (known)
        return known;
    known = calloc(1, sizeof *known + size);
    if (!known)
        return NULL;
    memcpy(known->key, key, size);
    (void)RB_INSERT(etcd_known_tree, tree, known); /* it was not there */
    return known;
}

void etcd_known_drop(struct etcd_known_tree *tree, const char *key)
{
    struct etcd_known *known = etcd_known_find(tree, key);

    if (!known)
        return;
    (void)RB_REMOVE(etcd_known_tree, tree, known);
    free(known->value);
    free(known);
}

/* As deep as the tree is, which is balanced. */
static void free_below(struct etcd_known *known)
{
    if (!known)
        return;
    free_below(RB_LEFT(known, by_key));
    free_below(RB_RIGHT(known, by_key));
    free(known->value);
    free(known);
}

void etcd_known_clear(struct etcd_known_tree *tree)
{
    free_below(RB_ROOT(tree));
    RB_INIT(tree);
}
