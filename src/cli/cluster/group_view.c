/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/cluster/group_view.h"

#include "cli/group/leadership.h"
#include "cli/json_out.h"
#include "cli/run/event_json.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* How the last mandate ended, in the words of a store. */
static enum leadership_state state_of_ending(const char *ending)
{
    if (strcmp(ending, "dead") == 0)
        return LEADERSHIP_DEAD;
    if (strcmp(ending, "expired") == 0 || strcmp(ending, "lapsed") == 0)
        return LEADERSHIP_EXPIRED;
    return LEADERSHIP_RELEASED;
}

static enum leadership_state state_of(const json_t *group)
{
    if (json_is_true(json_object_get(group, "done")))
        return LEADERSHIP_DONE;
    if (*json_get_text(group, "leader"))
        return LEADERSHIP_HELD;
    if (!*json_get_text(group, "former_leader"))
        return LEADERSHIP_EMPTY;
    return state_of_ending(json_get_text(group, "former_ending"));
}

const char *group_state(const json_t *group) { return leadership_state_name(state_of(group)); }

const char *group_state_text(const json_t *group)
{
    const char *ending = json_get_text(group, "former_ending");
    enum leadership_state state = state_of(group);

    if (state != LEADERSHIP_EXPIRED)
        return leadership_state_text(state);
    return strcmp(ending, "expired") == 0 ? "the last leader's session expired; no successor yet"
                                          : leadership_state_text(LEADERSHIP_LAPSED);
}

json_t *group_unknown(const char *name)
{
    json_t *json = json_object();

    json_put_text(json, "group", name);
    json_put(json, "candidates", json_array());
    return json;
}

/* As it stands there, or null. */
static json_t *copy_of(const json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);

    return value ? json_incref(value) : json_null();
}

json_t *group_leadership_json(const json_t *group)
{
    bool is_held = state_of(group) == LEADERSHIP_HELD;
    const char *last = is_held ? json_get_text(group, "leader") : json_get_text(group, "former_leader");
    json_t *json = json_object(), *epoch = json_object_get(group, "epoch");

    json_put_text(json, "group", json_get_text(group, "group"));
    json_put_text(json, "state", group_state(group));
    json_put_text_or_null(json, "leader_id", is_held ? json_get_text(group, "leader") : "");
    json_put_text_or_null(json, "leader_address", is_held ? json_get_text(group, "address") : "");
    json_put(json, "epoch", json_is_integer(epoch) ? json_incref(epoch) : json_integer(0));
    json_put_text_or_null(json, "last_leader", last);
    json_put_text_or_null(json, "how",
                          leadership_loss(state_of(group)) ? gavel_loss_name(leadership_loss(state_of(group)))
                                                           : "");
    json_put(json, "since", copy_of(group, "since"));
    json_put(json, "renewed", json_null()); /* a renewal leaves no trace in the table */
    json_put(json, "lease_ms", is_held ? copy_of(group, "ttl_ms") : json_null());
    json_put(json, "remaining_ms", is_held ? copy_of(group, "remaining_ms") : json_null());
    json_put(json, "pid", json_null());
    json_put(json, "policy", copy_of(group, "policy"));
    json_put(json, "wish", copy_of(group, "wish"));
    return json;
}

json_t *group_candidates_json(const json_t *group)
{
    const json_t *candidate, *candidates = json_object_get(group, "candidates");
    const char *leader = json_get_text(group, "leader");
    json_t *json = json_object(), *list = json_array();
    size_t position;

    json_array_foreach(candidates, position, candidate) {
        const char *id = json_get_text(candidate, "candidate");
        json_t *item = json_object();

        json_put_text(item, "candidate", id);
        json_put_text_or_null(item, "address", json_get_text(candidate, "address"));
        json_put_bool(item, "leader", *leader && strcmp(id, leader) == 0);
        json_put_bool(item, "eligible", json_is_true(json_object_get(candidate, "eligible")));
        json_put(item, "priority", copy_of(candidate, "priority"));
        json_put(item, "since", copy_of(candidate, "since"));
        json_put(item, "last_heartbeat", json_null()); /* its session is kept alive, not its candidacy */
        json_put(item, "pid", json_null());
        json_put(item, "metadata", copy_of(candidate, "metadata"));
        json_array_append_new(list, item);
    }
    json_put_text(json, "group", json_get_text(group, "group"));
    json_put(json, "candidates", list);
    return json;
}

int64_t group_time(const char *text)
{
    struct tm parts = {0};
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &parts);
    unsigned ms = 0;

    if (!rest || (*rest != 'Z' && sscanf(rest, ".%3uZ", &ms) != 1))
        return 0;
    return (int64_t)timegm(&parts) * 1000 + ms;
}

/* Whether somebody led and was lost, rather than gave up. */
static bool was_lost(const json_t *change)
{
    return state_of_ending(json_get_text(change, "reason")) != LEADERSHIP_RELEASED;
}

json_t *group_change_json(const char *kind, const json_t *change, int64_t now_wall_ms)
{
    bool is_elected = strcmp(kind, "elected") == 0, is_vacant = strcmp(kind, "vacant") == 0;
    const char *who = json_get_text(change, "candidate");
    json_t *json;

    if (!is_elected && !is_vacant)
        return NULL;
    json = json_object();
    json_put_time(json, "time", now_wall_ms);
    json_put_text(json, "event", is_vacant && was_lost(change) ? "leader_down" : "leader_changed");
    json_put_text(json, "group", json_get_text(change, "group"));
    json_put_text_or_null(json, "leader_address", is_elected ? json_get_text(change, "address") : "");
    json_put(json, "epoch", copy_of(change, "epoch"));
    json_put(json, "revision", copy_of(change, "revision"));
    if (is_elected)
        event_json_put_change(json, json_get_text(change, "former_leader"), who);
    else if (was_lost(change))
        event_json_put_loss(json, who, leadership_loss(state_of_ending(json_get_text(change, "reason"))));
    else
        event_json_put_change(json, who, "");
    if (is_vacant)
        json_put_text(json, "reason", json_get_text(change, "reason"));
    return json;
}

const char *group_change_words(const char *kind, const json_t *change, char *buffer, size_t size)
{
    static const struct {
        const char *reason;
        const char *words;
    } endings[] = {
        {"dead", "died"},
        {"expired", "did not keep its session alive"},
        {"lapsed", "did not renew in time"},
        {"resigned", "gave up"},
        {"released", "gave up"},
        {"handed_over", "hands over"},
        {"closed", "left the group"},
    };
    const char *who = json_get_text(change, "candidate"), *words = "no longer leads";

    buffer[0] = '\0';
    if (strcmp(kind, "elected") == 0)
        (void)snprintf(buffer, size, "%s leads with epoch %" JSON_INTEGER_FORMAT, who,
                       json_integer_value(json_object_get(change, "epoch")));
    if (strcmp(kind, "vacant") != 0)
        return buffer;
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++)
        if (strcmp(endings[i].reason, json_get_text(change, "reason")) == 0)
            words = endings[i].words;
    (void)snprintf(buffer, size, "nobody leads: %s %s", who, words);
    return buffer;
}

char *group_value(const json_t *note, size_t *ret_length)
{
    const char *text = json_string_value(json_object_get(note, "value_base64"));
    size_t length = text ? strlen(text) : 1, padding = 0;
    unsigned char *bytes;
    int decoded;

    if (length % 4 != 0 || length > INT32_MAX)
        return NULL;
    while (padding < 2 && padding < length && text[length - 1 - padding] == '=')
        padding++;
    bytes = malloc(length / 4 * 3 + 1);
    if (!bytes)
        return NULL;
    decoded = length ? EVP_DecodeBlock(bytes, (const unsigned char *)text, (int)length) : 0;
    if (decoded < (int)padding) {
        free(bytes);
        return NULL;
    }
    *ret_length = (size_t)decoded - padding;
    bytes[*ret_length] = '\0';
    return (char *)bytes;
}

bool group_is_text(const char *bytes, size_t length)
{
    json_t *text = memchr(bytes, '\0', length) ? NULL : json_stringn(bytes, length);
    bool is_text = text;

    json_decref(text);
    return is_text;
}

void group_put_value(json_t *json, const char *bytes, size_t length)
{
    json_t *text = json_stringn(bytes, length);
    unsigned char *encoded;

    if (text) {
        json_put(json, "value", text);
        return;
    }
    encoded = malloc(length / 3 * 4 + 8);
    if (!encoded)
        abort(); /* as json_out.h does */
    (void)EVP_EncodeBlock(encoded, (const unsigned char *)bytes, (int)length);
    json_put_text(json, "value_base64", (const char *)encoded);
    free(encoded);
}
