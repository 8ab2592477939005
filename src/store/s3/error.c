/* SPDX-License-Identifier: Apache-2.0 */

/* What a refusal of an object store means, in words: what happened, why, what to do next. */
#include "store/s3/s3.h"

#include "os/clock.h"

#include <stdio.h>
#include <string.h>

#define NEARLY (10 * NS_PER_MS) /* libcurl counts in milliseconds, and rounds down */

/* What the codes of S3 mean to the one who has to do something about it. @ is the store. */
static const struct {
    const char *code;
    enum gavel_status status;
    const char *meaning;
} meanings[] = {
    {"NoSuchBucket", GAVEL_ERR_STORE_DENIED, "the bucket of @ does not exist; create it, or name another"},
    {"InvalidBucketName", GAVEL_ERR_STORE_DENIED, "the server knows no bucket by a name like that of @"},
    {"InvalidAccessKeyId", GAVEL_ERR_STORE_DENIED,
     "the server of @ does not know our access key; check AWS_ACCESS_KEY_ID or the credentials file"},
    {"SignatureDoesNotMatch", GAVEL_ERR_STORE_DENIED,
     "the server of @ refuses our signature: the secret is not that of the access key; check AWS_SECRET_ACCESS_KEY or the credentials file"},
    {"AccessDenied", GAVEL_ERR_STORE_DENIED,
     "we may not do that on @; the access key needs to get, put, delete and list objects below its prefix"},
    {"AllAccessDisabled", GAVEL_ERR_STORE_DENIED, "all access to @ is disabled; ask its owner"},
    {"ExpiredToken", GAVEL_ERR_STORE_DENIED,
     "our session token for @ has expired; a file named by credentials= is read again when it is renewed"},
    {"InvalidToken", GAVEL_ERR_STORE_DENIED,
     "the server of @ does not accept our session token; check AWS_SESSION_TOKEN or the credentials file"},
    {"RequestTimeTooSkewed", GAVEL_ERR_STORE_UNAVAILABLE,
     "the clocks of this host and of the server of @ are more than a quarter of an hour apart, so it rejects our signatures; set them right"},
    {"RequestExpired", GAVEL_ERR_STORE_UNAVAILABLE,
     "to the server of @ our requests are too old: one of the two clocks is wrong; set it right"},
    {"AuthorizationHeaderMalformed", GAVEL_ERR_STORE_DENIED,
     "the server of @ expects another region than we signed for; name it with region= or AWS_REGION"},
    {"PermanentRedirect", GAVEL_ERR_STORE_DENIED,
     "the bucket of @ is elsewhere: in another region or behind another endpoint; name it with region= or endpoint="},
    {"SlowDown", GAVEL_ERR_STORE_UNAVAILABLE,
     "the server of @ asks us to slow down; fewer candidates or a longer heartbeat send it less"},
    {"NotImplemented", GAVEL_ERR_STORE_UNSUPPORTED,
     "the server of @ does not have a kind of request that gavel needs: PUT with If-Match and If-None-Match, and ListObjectsV2"},
    {"QuotaExceeded", GAVEL_ERR_STORE_FULL, "there is no space left on @; its quota is used up"},
};

static void tell(const char *meaning, const char *where, char *ret_message, size_t size)
{
    size_t before = strcspn(meaning, "@");
    const char *after = meaning[before] ? meaning + before + 1 : "";

    (void)snprintf(ret_message, size, "%.*s%s%s", (int)before, meaning, where, after);
}

/* For answers without a code that we know. */
static enum gavel_status explain_number(const struct s3_store *s3, int number, const char *code,
                                        char *ret_message, size_t size)
{
    const char *where = s3->target.where;

    if (number == 429 || number == 503) {
        (void)snprintf(ret_message, size,
                       "the server of %s is overloaded or starting (%d); it is tried again", where, number);
        return GAVEL_ERR_STORE_UNAVAILABLE;
    }
    if (number == 301 || number == 307 || number == 308) {
        (void)snprintf(
            ret_message, size,
            "the server of %s sends us elsewhere (%d): the bucket is in another region or behind another endpoint; name it with region= or endpoint=",
            where, number);
        return GAVEL_ERR_STORE_DENIED;
    }
    if (number == 401 || number == 403) {
        (void)snprintf(ret_message, size,
                       "the server of %s denies us access (%d %s); check the access key and its rights",
                       where, number, code);
        return GAVEL_ERR_STORE_DENIED;
    }
    if (number >= 500) {
        (void)snprintf(ret_message, size, "the server of %s failed (%d %s); it is tried again", where, number,
                       code);
        return GAVEL_ERR_STORE_UNAVAILABLE;
    }
    (void)snprintf(ret_message, size,
                   "the server of %s answers %d %s, which gavel does not expect; is it an S3 server?", where,
                   number, code);
    return GAVEL_ERR_IO;
}

/* To be put behind the words of libcurl: a server with TLS takes plain requests for noise, and the other way
 * round. */
static const char *advice(const struct http_call *call)
{
    bool is_plain = strncmp(call->url, "http:", 5) == 0;

    if (is_plain && call->fate == HTTP_UNKNOWN && strstr(call->error, "Empty reply"))
        return "; if it wants TLS, write https:// in endpoint=";
    if (!is_plain &&
        (strstr(call->error, "wrong version number") || strstr(call->error, "unexpected TLS packet")))
        return "; if it has no TLS, write http:// in endpoint=";
    return http_advice(call);
}

enum gavel_status s3_explain(const struct s3_store *s3, const struct s3_object *object, char *ret_message,
                             size_t size)
{
    const struct http_call *call = object->call;
    char code[64] = "";

    if (call->fate != HTTP_ANSWERED) {
        bool is_late = call->give_up_at != NEVER && clock_now() + NEARLY >= call->give_up_at;

        (void)snprintf(ret_message, size, "the server of %s %s: %.120s%s", s3->target.where,
                       is_late ? "has not answered in time" : "cannot be reached", call->error, advice(call));
        return is_late ? GAVEL_ERR_TIMEOUT : GAVEL_ERR_STORE_UNAVAILABLE;
    }
    (void)s3_xml_text((struct s3_span){call->answer, call->answer_size}, "Code", code, sizeof code);
    for (char *c = code; *c; c++) /* it goes to terminals and logs */
        if (*c <= ' ' || *c > '~')
            *c = '?';
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++) {
        if (strcmp(meanings[i].code, code) != 0)
            continue;
        tell(meanings[i].meaning, s3->target.where, ret_message, size);
        return meanings[i].status;
    }
    return explain_number(s3, call->status, code, ret_message, size);
}
