/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A question to the cluster: which endpoint is asked, for how long, and what
 * its answer means.
 *
 *     the endpoint did not get it,        the next one, at once, also with a write;
 *     or knows that it must not do it     when all have refused, the call has failed
 *     nobody knows what became of it      a look goes on to the next one; a write has failed
 *                                         and may have been applied: the job reads back
 *     it wants a (new) token              the call logs in, then asks again
 *
 * Every call says "hasleader", so a member that is cut off from the others
 * refuses at once instead of keeping the caller waiting.
 *
 * A transaction that was sent again by libcurl, on a connection that turned out
 * to be closed, does no harm: its comparison fails, and the job finds its own
 * write there.
 */
#include "store/etcd/etcd.h"

#include "os/clock.h"
#include "store/plain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOGIN_PATH "/v3/auth/authenticate"
#define SILENCE (300 * NS_PER_MS)  /* a shorter one may be the caller's haste */
#define TRY_LONGEST (5 * NS_PER_S) /* of a call that has no deadline */

/* Codes of gRPC, which stand in answers that are none. */
enum {
    CODE_CANCELLED = 1,
    CODE_UNKNOWN = 2,
    CODE_DEADLINE = 4,
    CODE_ABORTED = 10,
    CODE_INTERNAL = 13,
    CODE_UNAVAILABLE = 14
};

enum verdict { VERDICT_DONE, VERDICT_REFUSED, VERDICT_UNKNOWN, VERDICT_LOG_IN };

/* What etcd says, by how it begins; the words are in its api/v3rpc/rpctypes. */
static const struct {
    const char *says;
    enum verdict verdict;
    enum gavel_status status;
    const char *means; /* NULL: what it says */
} sayings[] = {
    {"etcdserver: no leader", VERDICT_REFUSED, GAVEL_ERR_STORE_UNAVAILABLE,
     "it has no leader: too few of its members are up and reach each other"},
    {"etcdserver: invalid auth token", VERDICT_LOG_IN, GAVEL_ERR_STORE_DENIED, NULL},
    {"etcdserver: revision of auth store is old", VERDICT_LOG_IN, GAVEL_ERR_STORE_DENIED, NULL},
    {"etcdserver: user name is empty", VERDICT_LOG_IN, GAVEL_ERR_STORE_DENIED,
     "it requires a login; name a user in the URL and give the password with GAVEL_ETCD_PASSWORD or credentials=FILE, then try `gavel store ping`"},
    {"etcdserver: authentication failed", VERDICT_DONE, GAVEL_ERR_STORE_DENIED,
     "the name or the password is wrong; check GAVEL_ETCD_USER and GAVEL_ETCD_PASSWORD, or the file of credentials=, then try `gavel store ping`"},
    {"etcdserver: permission denied", VERDICT_DONE, GAVEL_ERR_STORE_DENIED,
     "its role may not do this; grant the role readwrite on the prefix with `etcdctl role grant-permission`"},
    /* The transaction that first finds too little space is carried out before this is said. */
    {"etcdserver: mvcc: database space exceeded", VERDICT_UNKNOWN, GAVEL_ERR_STORE_FULL,
     "its space is used up; compact and defragment it, then `etcdctl alarm disarm`"},
    {"etcdserver: too many requests", VERDICT_DONE, GAVEL_ERR_STORE_UNAVAILABLE, NULL},
    {"etcdserver: requested lease not found", VERDICT_DONE, GAVEL_ERR_NOT_FOUND, NULL},
};

void etcd_ask(struct etcd_call *call, const char *path, char *body, bool is_write)
{
    free(call->body);
    call->body = body;
    call->path = path;
    call->is_write = is_write;
    call->tries = 0;
    call->refusals = 0;
    call->has_logged_in = false;
}

__attribute__((format(printf, 3, 4))) static void end(struct etcd_call *call, enum gavel_status status,
                                                      const char *format, ...)
{
    va_list arguments;

    call->status = status;
    va_start(arguments, format);
    (void)vsnprintf(call->message, sizeof call->message, format, arguments);
    va_end(arguments);
}

/*
 * A look that one endpoint does not answer shall be answered by another, so each
 * gets its share of the time. Of a write, another endpoint may tell what became
 * of it, which takes a moment; a server that is alone and slow needs all of the
 * time, and what it has not answered by then the caller finds by its nonce.
 */
static gavel_ns until(const struct etcd_call *call)
{
    gavel_ns now = clock_now();
    gavel_ns left = call->give_up_at == NEVER ? TRY_LONGEST : call->give_up_at - now;

    if (call->is_write && !call->is_logging_in)
        return now + (call->etcd->endpoint_count > 1 ? left / 4 * 3 : left);
    if (call->etcd->endpoint_count > call->tries)
        return now + left / (gavel_ns)(call->etcd->endpoint_count - call->tries);
    return now + left;
}

struct curl_slist *etcd_headers(struct etcd_store *etcd, bool with_token)
{
    static const char *const fixed[] = {"Content-Type: application/json", "Grpc-Metadata-hasleader: true"};
    struct curl_slist *list = NULL;
    char *authorization = NULL;
    bool is_short = false;

    pthread_mutex_lock(&etcd->push.lock);
    if (etcd->token && with_token)
        is_short = asprintf(&authorization, "Authorization: %s", etcd->token) < 0;
    pthread_mutex_unlock(&etcd->push.lock);
    for (size_t i = 0; i < 3 && !is_short; i++) {
        const char *line = i < 2 ? fixed[i] : authorization;
        struct curl_slist *longer = line ? curl_slist_append(list, line) : list;

        is_short = !longer;
        list = longer ? longer : list;
    }
    free(authorization);
    if (is_short) {
        curl_slist_free_all(list);
        return NULL;
    }
    return list;
}

/* Points the HTTP call at the endpoint of today; false when out of memory. */
static bool aim(struct etcd_call *call, struct http_call *http)
{
    struct etcd_store *etcd = call->etcd;

    pthread_mutex_lock(&etcd->push.lock);
    call->endpoint = etcd->current;
    pthread_mutex_unlock(&etcd->push.lock);
    curl_slist_free_all(call->headers);
    call->headers = etcd_headers(etcd, !call->is_logging_in); /* with one that ended it would be refused */
    (void)snprintf(call->url, sizeof call->url, "%s%s", etcd->endpoints[call->endpoint].base,
                   call->is_logging_in ? LOGIN_PATH : call->path);
    http->method = "POST";
    http->url = call->url;
    http->headers = call->headers;
    http->body = call->is_logging_in ? call->login : call->body;
    http->body_size = http->body ? strlen(http->body) : 0;
    http->give_up_at = call->until = until(call);
    call->sent_at = clock_now();
    call->tries++;
    return call->headers && http->body;
}

/* The endpoint did not do what it should: the next is tried first from now on. */
static void turn_away(struct etcd_call *call)
{
    struct etcd_store *etcd = call->etcd;

    pthread_mutex_lock(&etcd->push.lock);
    if (etcd->current == call->endpoint)
        etcd->current = (call->endpoint + 1) % etcd->endpoint_count;
    /* Who does not answer for that long does not tell of changes either. */
    if (etcd->stream && etcd->stream_endpoint == call->endpoint && clock_now() - call->sent_at >= SILENCE)
        http_cancel(etcd->stream);
    pthread_mutex_unlock(&etcd->push.lock);
}

/* "etcd://… refuses", and whom, if we have said who we are: the name may come from three places. */
static void name_refused(const struct etcd_call *call, char *buffer, size_t size)
{
    struct etcd_store *etcd = call->etcd;

    pthread_mutex_lock(&etcd->push.lock);
    if (etcd->user)
        (void)snprintf(buffer, size, "%s refuses the user \"%.40s\"", etcd->where, etcd->user);
    else
        (void)snprintf(buffer, size, "%s refuses", etcd->where);
    pthread_mutex_unlock(&etcd->push.lock);
    text_make_plain(buffer); /* the name may be cut within a character */
}

/* An answer that is an error; *ret_text may be NULL. */
static enum verdict judge_error(struct etcd_call *call, const struct http_call *http)
{
    json_t *json = json_loadb(http->answer ? http->answer : "", http->answer_size, 0, NULL);
    const char *text = json_string_value(json_object_get(json, "error"));
    json_int_t code = json_integer_value(json_object_get(json, "code"));
    const char *where = call->etcd->where;
    enum verdict verdict = VERDICT_DONE;
    char refused[160];
    size_t i = 0;

    for (; text && i < sizeof sayings / sizeof *sayings; i++)
        if (strncmp(text, sayings[i].says, strlen(sayings[i].says)) == 0)
            break;
    if (text && i < sizeof sayings / sizeof *sayings) {
        verdict = sayings[i].verdict;
        if (sayings[i].status == GAVEL_ERR_STORE_DENIED)
            name_refused(call, refused, sizeof refused);
        else
            (void)snprintf(refused, sizeof refused, "%s refuses", where);
        end(call, sayings[i].status, "%s: %s", refused, sayings[i].means ? sayings[i].means : text);
    } else if (http->status >= 500 || code == CODE_CANCELLED || code == CODE_UNKNOWN ||
               code == CODE_DEADLINE || code == CODE_ABORTED || code == CODE_INTERNAL ||
               code == CODE_UNAVAILABLE) {
        verdict = VERDICT_UNKNOWN;
        end(call, GAVEL_ERR_STORE_UNAVAILABLE, "%s failed: %.120s; see its log", where,
            text ? text : "the answer is an error without a message");
    } else if (text) {
        end(call, GAVEL_ERR_STORE_UNSUPPORTED, "%s refuses: %.140s", where, text);
    } else {
        end(call, GAVEL_ERR_STORE_UNSUPPORTED,
            "%s answers %d and does not have the v3 API at /v3; gavel needs etcd 3.4 or later", where,
            http->status);
    }
    json_decref(json); /* safe on NULL */
    return verdict;
}

static enum verdict judge(struct etcd_call *call, const struct http_call *http)
{
    const char *where = call->etcd->where;
    bool is_late = clock_now() + NS_PER_MS >= call->until;

    if (http->fate == HTTP_ANSWERED && http->status == 200) {
        call->answer = json_loadb(http->answer ? http->answer : "", http->answer_size, 0, NULL);
        call->status = GAVEL_OK;
        if (!call->answer)
            end(call, GAVEL_ERR_STORE_UNSUPPORTED, "%s answers something that is not JSON; is it etcd?",
                where);
        return call->answer ? VERDICT_DONE : VERDICT_UNKNOWN;
    }
    if (http->fate == HTTP_ANSWERED)
        return judge_error(call, http);
    if (is_late)
        end(call, GAVEL_ERR_TIMEOUT, "%s did not answer in time; it may be overloaded, frozen or cut off",
            where);
    else
        end(call, GAVEL_ERR_STORE_UNAVAILABLE, "%s cannot be reached: %.100s%s", where, http->error,
            http->fate == HTTP_UNKNOWN && strncmp(call->url, "http:", 5) == 0
                ? "; if it wants TLS, add tls=on to the URL"
                : http_advice(http));
    return http->fate == HTTP_NOT_SENT ? VERDICT_REFUSED : VERDICT_UNKNOWN;
}

static bool has_time(const struct etcd_call *call)
{
    return call->give_up_at == NEVER || clock_now() + NS_PER_MS < call->give_up_at;
}

static bool has_user(struct etcd_store *etcd)
{
    bool has_one;

    pthread_mutex_lock(&etcd->push.lock);
    has_one = etcd->user;
    pthread_mutex_unlock(&etcd->push.lock);
    return has_one;
}

/* Whether the same is asked once more, of another endpoint or with a token. */
static bool asks_again(struct etcd_call *call, enum verdict verdict)
{
    struct etcd_store *etcd = call->etcd;

    if (verdict == VERDICT_DONE)
        return false;
    if (verdict == VERDICT_LOG_IN) {
        if (!has_user(etcd) || call->has_logged_in || call->is_logging_in)
            return false;
        call->login = etcd_user_login(etcd);
        call->is_logging_in = call->login != NULL;
        call->has_logged_in = true;
        return call->login && has_time(call);
    }
    turn_away(call);
    call->refusals += verdict == VERDICT_REFUSED;
    if (verdict == VERDICT_REFUSED)
        return call->refusals < etcd->endpoint_count && has_time(call);
    return (!call->is_write || call->is_logging_in) && call->tries <= 2 * etcd->endpoint_count &&
           has_time(call);
}

/* The token is there, or it needs none; false: the call has failed. */
static bool has_token(struct etcd_call *call)
{
    struct etcd_store *etcd = call->etcd;
    const char *told = json_string_value(json_object_get(call->answer, "token"));
    char *token;

    if (call->status != GAVEL_OK)
        return false;
    token = told ? strdup(told) : NULL;
    if (!token || strpbrk(token, "\r\n")) {
        free(token);
        end(call, GAVEL_ERR_STORE_UNSUPPORTED, "%s returned no token for the login", etcd->where);
        return false;
    }
    pthread_mutex_lock(&etcd->push.lock);
    free(etcd->token);
    etcd->token = token;
    pthread_mutex_unlock(&etcd->push.lock);
    return true;
}

/* Frees what was made for logging in: a password is in it. */
static void forget_login(struct etcd_call *call)
{
    if (call->login)
        explicit_bzero(call->login, strlen(call->login));
    free(call->login);
    call->login = NULL;
    call->is_logging_in = false;
}

/* The job takes the answer; whether it asks something else. */
static bool hand_over(struct etcd_call *call)
{
    bool goes_on = call->on_answer(call);

    json_decref(call->answer); /* safe on NULL */
    call->answer = NULL;
    return goes_on;
}

/* Sends what was asked; false if there is nothing (any more). */
static bool proceed(struct etcd_call *call, struct http_call *http)
{
    while (!aim(call, http)) {
        end(call, GAVEL_ERR_NO_MEMORY, "out of memory while asking %s", call->etcd->where);
        call->may_be_applied = false;
        if (!hand_over(call))
            return false;
    }
    return true;
}

static bool on_done(struct http_call *http)
{
    struct etcd_call *call = http->user;
    enum verdict verdict = judge(call, http);
    bool goes_on = asks_again(call, verdict);

    http_call_done(http);
    if (!goes_on && call->is_logging_in) {
        goes_on = has_token(call);
        forget_login(call);
        json_decref(call->answer); /* safe on NULL */
        call->answer = NULL;
        call->tries = call->refusals = 0; /* the question itself was refused, but not for good */
        verdict = VERDICT_DONE;
    }
    if (!goes_on) {
        call->may_be_applied = call->is_write && call->status != GAVEL_OK && verdict == VERDICT_UNKNOWN;
        goes_on = hand_over(call);
    }
    return goes_on && proceed(call, http);
}

void etcd_calls_run(struct etcd_store *etcd, struct http *http, struct etcd_call *calls, size_t count)
{
    struct http_call *sent = calloc(count ? count : 1, sizeof *sent);
    size_t sent_count = 0;

    for (size_t i = 0; i < count; i++) {
        calls[i].etcd = etcd;
        if (!sent) {
            end(&calls[i], GAVEL_ERR_NO_MEMORY, "out of memory while asking %s", etcd->where);
            while (hand_over(&calls[i]))
                continue; /* what else it asks fails for the same reason */
            continue;
        }
        sent[sent_count] = (struct http_call){.on_done = on_done, .user = &calls[i]};
        sent_count += proceed(&calls[i], &sent[sent_count]);
    }
    http_run(http, sent, sent_count);
    for (size_t i = 0; i < count; i++) {
        curl_slist_free_all(calls[i].headers);
        calls[i].headers = NULL;
        free(calls[i].body);
        calls[i].body = NULL;
        forget_login(&calls[i]);
    }
    free(sent);
}

enum gavel_status etcd_http_new(const struct etcd_store *etcd, struct http **ret_http)
{
    const struct http_settings settings = {
        .ca_file = etcd->ca_file, .cert_file = etcd->cert_file, .key_file = etcd->key_file};

    return http_new(&settings, ret_http);
}
