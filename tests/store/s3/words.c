/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the driver `s3` makes of names, settings and answers, without a server:
 * keys, URLs in canonical form, hashes, credentials, targets, XML, costs.
 *
 * The examples of Signature Version 4 are those of the Amazon S3 API Reference
 * ("Authenticating Requests: Using the Authorization Header").
 */
#include "store/s3/cost.h"
#include "store/s3/s3.h"
#include "store/url.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[] = "https://examplebucket.s3.amazonaws.com";
static char no_prefix[] = "plugin=coordinator/";
static char prefix[] = "team a/plugin=coordinator/";

static const struct s3_target target = {.root = root, .prefix = no_prefix};

static void expect_url(const char *key, const struct s3_parameter *parameters, size_t count,
                       const char *wanted)
{
    char *url = s3_url(&target, key, parameters, count);

    assert_non_null(url);
    assert_string_equal(url, wanted);
    free(url);
}

static void test_urls_are_canonical_as_in_the_published_examples(void **state)
{
    (void)state;
    expect_url("test.txt", NULL, 0, "https://examplebucket.s3.amazonaws.com/test.txt");
    expect_url("test$file.text", NULL, 0, "https://examplebucket.s3.amazonaws.com/test%24file.text");
    expect_url("", (const struct s3_parameter[]){{"lifecycle", ""}}, 1,
               "https://examplebucket.s3.amazonaws.com/?lifecycle=");
    expect_url("", (const struct s3_parameter[]){{"prefix", "J"}, {"max-keys", "2"}}, 2,
               "https://examplebucket.s3.amazonaws.com/?max-keys=2&prefix=J");
}

static void test_what_is_not_unreserved_is_encoded_in_paths_and_queries(void **state)
{
    (void)state;
    expect_url("a=b/c d/%2F+~", NULL, 0, "https://examplebucket.s3.amazonaws.com/a%3Db/c%20d/%252F%2B~");
    expect_url("", (const struct s3_parameter[]){{"prefix", "a=b/ü&"}, {"delimiter", "/"}, {"x", ""}}, 3,
               "https://examplebucket.s3.amazonaws.com/?delimiter=%2F&prefix=a%3Db%2F%C3%BC%26&x=");
}

static void test_hashes_are_those_of_the_published_examples(void **state)
{
    char hex[65];

    (void)state;
    s3_body_hash(NULL, 0, hex);
    assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    s3_body_hash("Welcome to Amazon S3.", 21, hex);
    assert_string_equal(hex, "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072");
}

static void test_a_name_is_one_part_of_a_key_and_comes_back(void **state)
{
    static const struct {
        const char *name;
        const char *encoded;
    } names[] = {{"nightly", "nightly"},
                 {"a/b", "a%2Fb"},
                 {"../../etc", "..%2F..%2Fetc"},
                 {"100%", "100%25"},
                 {"%2F", "%252F"},
                 {"a=b", "a%3Db"},
                 {"..", ".."},
                 {"grüße", "gr%C3%BC%C3%9Fe"},
                 {"A b", "A%20b"},
                 {"<&>\"'", "%3C%26%3E%22%27"}};
    const struct s3_target team = {.root = root, .prefix = prefix};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char wanted[200];
        char found[NAME_MAX_BYTES + 1];
        char *key = s3_key_state(&team, names[i].name);
        char *worker = s3_key_worker(&team, "g", names[i].name);
        char *workers = s3_key_workers(&team, "g");
        char *groups = s3_key_groups(&team);

        assert_true(key && worker && workers && groups);
        (void)snprintf(wanted, sizeof wanted, "team a/plugin=coordinator/namespace=%s/state.json",
                       names[i].encoded);
        assert_string_equal(key, wanted);
        assert_true(s3_name_in_key(key, groups, "/state.json", found));
        assert_string_equal(found, names[i].name);
        assert_true(s3_name_in_key(worker, workers, ".json", found));
        assert_string_equal(found, names[i].name);
        free(key);
        free(worker);
        free(workers);
        free(groups);
    }
}

static void test_a_key_that_gavel_did_not_write_has_no_name(void **state)
{
    static const char *const keys[] = {"w=",          "w=.json",     "x=a.json",    "w=a",
                                       "w=a%2.json",  "w=a%.json",   "w=a%zz.json", "w=a/b.json",
                                       "w=a%0A.json", "w=a%FF.json", "w=ä.json",    "w=%.json"};
    char name[NAME_MAX_BYTES + 1];
    char long_key[400];

    (void)state;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        assert_false(s3_name_in_key(keys[i], "w=", ".json", name));
    memset(long_key, 'n', sizeof long_key);
    memcpy(long_key, "w=", 2);
    memcpy(long_key + 2 + NAME_MAX_BYTES + 1, ".json", 6);
    assert_false(s3_name_in_key(long_key, "w=", ".json", name));
    memcpy(long_key + 2 + NAME_MAX_BYTES, ".json", 6);
    assert_true(s3_name_in_key(long_key, "w=", ".json", name));
}

static struct s3_span span(const char *text) { return (struct s3_span){text, strlen(text)}; }

static void test_elements_of_an_answer_are_found(void **state)
{
    static const char text[] =
        "<?xml version=\"1.0\"?><ListBucketResult xmlns=\"x\"><IsTruncated>true</IsTruncated>"
        "<Contents><Key>a&amp;b&#x3d;&#61;&lt;</Key><ETag>&quot;e1&quot;</ETag></Contents>"
        "<Contents ><Key>second</Key></Contents><Empty/><KeyCount>2</KeyCount></ListBucketResult>";
    struct s3_span content;
    struct s3_span rest = span(text);
    char value[32];

    (void)state;
    assert_true(s3_xml_find(rest, "Contents", &content, &rest));
    assert_true(s3_xml_text(content, "Key", value, sizeof value));
    assert_string_equal(value, "a&b==<");
    assert_true(s3_xml_text(content, "ETag", value, sizeof value));
    assert_string_equal(value, "\"e1\"");
    assert_true(s3_xml_find(rest, "Contents", &content, &rest));
    assert_true(s3_xml_text(content, "Key", value, sizeof value));
    assert_string_equal(value, "second");
    assert_false(s3_xml_text(content, "ETag", value, sizeof value));
    assert_false(s3_xml_find(rest, "Contents", &content, &rest));
    assert_true(s3_xml_text(span(text), "Empty", value, sizeof value));
    assert_string_equal(value, "");
}

static void test_answers_that_make_no_sense_are_not_read_beyond_their_end(void **state)
{
    static const char *const texts[] = {"",       "<",      "<Key",
                                        "<Key>",  "<Key>a", "<Key>a</Key",
                                        "</Key>", "<Key/",  "<KeyCount>1</KeyCount>",
                                        "a<b<c",  "<Key>&", "<Key>&#"};
    char value[8];
    struct s3_span content;

    (void)state;
    assert_false(s3_xml_text((struct s3_span){NULL, 0}, "Key", value, sizeof value));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char *copy = strndup(texts[i], strlen(texts[i])); /* so that a sanitizer sees its end */
        struct s3_span rest = {copy, strlen(texts[i])};

        assert_non_null(copy);
        assert_false(s3_xml_find(rest, "Key", &content, &rest));
        free(copy);
    }
    assert_false(s3_xml_text(span("<Key>too long for it</Key>"), "Key", value, sizeof value));
    assert_true(s3_xml_text(span("<Key>&x;&#0;</Key>"), "Key", value, sizeof value));
    assert_string_equal(value, "&x;&#0;"); /* what is not known stays as it is */
}

/* Settings as the driver reads them: the URL and the environment. */
static void forget_environment(void)
{
    static const char *const names[] = {
        "AWS_ACCESS_KEY_ID",           "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION",
        "AWS_DEFAULT_REGION",          "AWS_ENDPOINT_URL_S3",   "AWS_ENDPOINT_URL",  "AWS_PROFILE",
        "AWS_SHARED_CREDENTIALS_FILE", "AWS_CA_BUNDLE"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_int_equal(unsetenv(names[i]), 0);
}

static enum gavel_status find_target(const char *rest, struct s3_target *ret_target,
                                     struct gavel_error *error)
{
    static const char *const options[] = {"endpoint",    "region",  "path_style", "ca",
                                          "credentials", "profile", NULL};
    static const struct url_form form = {
        .scheme = "s3", .example = "s3://b", .hosts_max = 1, .options = options};
    struct url url;
    enum gavel_status status = url_parse(&form, rest, &url, error);

    *ret_target = (struct s3_target){0};
    if (status == GAVEL_OK)
        status = s3_target_find(&url, ret_target, error);
    url_done(&url);
    return status;
}

static void test_a_bucket_is_found_where_its_settings_say(void **state)
{
    static const struct {
        const char *rest;
        const char *root;
        const char *prefix;
    } targets[] = {
        {"//b", "https://b.s3.us-east-1.amazonaws.com", "plugin=coordinator/"},
        {"//b/p/q/?region=eu-central-1", "https://b.s3.eu-central-1.amazonaws.com",
         "p/q/plugin=coordinator/"},
        {"//b.c/p", "https://s3.us-east-1.amazonaws.com/b.c", "p/plugin=coordinator/"},
        {"//b/p?path_style=yes", "https://s3.us-east-1.amazonaws.com/b", "p/plugin=coordinator/"},
        {"//b/p?endpoint=http://127.0.0.1:9000", "http://127.0.0.1:9000/b", "p/plugin=coordinator/"},
        {"//b/p?endpoint=https://s3.example.org/", "https://s3.example.org/b", "p/plugin=coordinator/"},
        {"//b/p?endpoint=http://[::1]:9000", "http://[::1]:9000/b", "p/plugin=coordinator/"},
        {"//b/p?endpoint=https://s3.example.org&path_style=no", "https://b.s3.example.org",
         "p/plugin=coordinator/"},
    };

    (void)state;
    forget_environment();
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        struct s3_target found;
        struct gavel_error error = {0};

        assert_int_equal(find_target(targets[i].rest, &found, &error), GAVEL_OK);
        assert_string_equal(found.root, targets[i].root);
        assert_string_equal(found.prefix, targets[i].prefix);
        s3_target_done(&found);
    }
}

static void test_the_environment_says_what_the_url_does_not(void **state)
{
    struct s3_target found;

    (void)state;
    forget_environment();
    assert_int_equal(setenv("AWS_ENDPOINT_URL", "http://general:1", 1), 0);
    assert_int_equal(setenv("AWS_DEFAULT_REGION", "eu-west-3", 1), 0);
    assert_int_equal(find_target("//b", &found, NULL), GAVEL_OK);
    assert_string_equal(found.root, "http://general:1/b");
    assert_string_equal(found.region, "eu-west-3");
    s3_target_done(&found);
    assert_int_equal(setenv("AWS_ENDPOINT_URL_S3", "http://special:2", 1), 0);
    assert_int_equal(setenv("AWS_REGION", "eu-west-2", 1), 0);
    assert_int_equal(find_target("//b", &found, NULL), GAVEL_OK);
    assert_string_equal(found.root, "http://special:2/b");
    assert_string_equal(found.region, "eu-west-2");
    s3_target_done(&found);
    assert_int_equal(find_target("//b?endpoint=http://named:3&region=here", &found, NULL), GAVEL_OK);
    assert_string_equal(found.root, "http://named:3/b");
    assert_string_equal(found.region, "here");
    s3_target_done(&found);
    forget_environment();
}

static void test_settings_that_make_no_sense_are_refused(void **state)
{
    static const char *const bad[] = {
        "//",
        "//b:9000/p",
        "//key@b/p",
        "//key:secret@b/p",
        "//..",
        "//b%20c",
        "//b/../c",
        "//b/./c",
        "//b/p?nonsense=1",
        "//b/p?endpoint=ftp://h",
        "//b/p?endpoint=h:9000",
        "//b/p?endpoint=127.0.0.1:9000",
        "//b/p?endpoint=h",
        "//b/p?endpoint=k:s@h",
        "//b/p?endpoint=http://k:s@h",
        "//b/p?endpoint=http://h/path",
        "//b/p?endpoint=http://h?x",
        "//b/p?endpoint=http://",
        "//b/p?endpoint=http://h:99999",
        "//b/p?endpoint=http://h%20x",
        "//b/p?region=a:b",
        "//b/p?region=a%20b",
        "//b/p?path_style=maybe",
        "//b/p?ca=/nowhere/ca.pem",
    };
    char long_prefix[600] = "//b/";
    struct s3_target found;

    (void)state;
    forget_environment();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct gavel_error error = {0};

        if (find_target(bad[i], &found, &error) != GAVEL_ERR_INVALID)
            fail_msg("%s is accepted", bad[i]);
        assert_true(error.message[0]);
        /* Of what may hold a secret nothing is repeated. */
        assert_null(strstr(error.message, "k:s@"));
        assert_int_equal(strstr(error.message, "lacks its scheme") != NULL,
                         strstr(bad[i], "endpoint=") && !strstr(bad[i], "://"));
        s3_target_done(&found);
    }
    memset(long_prefix + 4, 'p', 500);
    assert_int_equal(find_target(long_prefix, &found, NULL), GAVEL_ERR_INVALID);
    s3_target_done(&found);
}

/* A file with that content; the caller removes it. */
static void write_file(char *path, const char *text)
{
    int fd;

    (void)strcpy(path, "/tmp/gavel-s3-XXXXXX");
    fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(close(fd), 0);
}

static enum gavel_status read_profile(const char *text, const char *profile,
                                      struct s3_credentials *ret_credentials, struct gavel_error *error)
{
    char path[64];
    struct s3_credentials_source source = {0};
    enum gavel_status status;

    write_file(path, text);
    source.file = strdup(path);
    source.profile = strdup(profile);
    assert_true(source.file && source.profile);
    status = s3_credentials_read(&source, ret_credentials, error);
    s3_credentials_source_done(&source);
    assert_int_equal(unlink(path), 0);
    return status;
}

static void test_credentials_are_read_from_a_profile(void **state)
{
    static const char text[] =
        "# by hand\n[default]\naws_access_key_id=AKIA1\n  aws_secret_access_key = s/1+=  \n"
        "\n[other]\n; comment\nAWS_ACCESS_KEY_ID = AKIA2\naws_secret_access_key=s2\n"
        "aws_session_token = tok/en==\nregion = x\n[profile third]\naws_access_key_id=k\n";
    struct s3_credentials got = {0};
    struct gavel_error error = {0};

    (void)state;
    assert_int_equal(read_profile(text, "default", &got, &error), GAVEL_OK);
    assert_string_equal(got.key, "AKIA1");
    assert_string_equal(got.secret, "s/1+=");
    assert_string_equal(got.token, "");
    assert_int_equal(read_profile(text, "other", &got, &error), GAVEL_OK);
    assert_string_equal(got.key, "AKIA2");
    assert_string_equal(got.token, "tok/en==");
    assert_int_equal(read_profile(text, "third", &got, &error), GAVEL_ERR_STORE_DENIED);
    assert_non_null(strstr(error.message, "aws_secret_access_key"));
    assert_int_equal(read_profile(text, "fourth", &got, &error), GAVEL_ERR_STORE_DENIED);
    assert_non_null(strstr(error.message, "[fourth]"));
    assert_int_equal(read_profile("", "default", &got, &error), GAVEL_ERR_STORE_DENIED);
}

static void test_credentials_that_are_none_are_refused_and_never_shown(void **state)
{
    static const char *const bad[] = {"[default]\naws_access_key_id=a:b\naws_secret_access_key=hidden\n",
                                      "[default]\naws_access_key_id=a\naws_secret_access_key=hid den\n",
                                      "[default]\naws_access_key_id=a\naws_secret_access_key=hid\x01"
                                      "den\n",
                                      "[default]\naws_access_key_id=a\naws_secret_access_key=\n",
                                      "[default\naws_access_key_id=a\naws_secret_access_key=hidden\n",
                                      "aws_access_key_id=a\naws_secret_access_key=hidden\n"};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct s3_credentials got = {.key = "before"};
        struct gavel_error error = {0};

        assert_int_equal(read_profile(bad[i], "default", &got, &error), GAVEL_ERR_STORE_DENIED);
        assert_string_equal(got.key, "before");
        assert_null(strstr(error.message, "hid"));
    }
}

/* A pipe would keep whoever opens it waiting for a writer. */
static void test_credentials_in_no_file_are_refused_at_once(void **state)
{
    char directory[] = "/tmp/gavel-s3-XXXXXX";
    char path[60];
    char profile[] = "default";
    const struct s3_credentials_source source = {.file = path, .profile = profile};
    struct s3_credentials got = {0};
    struct gavel_error error = {0};

    (void)state;
    forget_environment();
    assert_non_null(mkdtemp(directory));
    (void)snprintf(path, sizeof path, "%s/pipe", directory);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(s3_credentials_read(&source, &got, &error), GAVEL_ERR_STORE_DENIED);
    assert_non_null(strstr(error.message, "it is a pipe"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(directory), 0);
}

static void test_credentials_of_the_environment_come_in_pairs(void **state)
{
    const struct s3_credentials_source source = {.is_environment = true};
    struct s3_credentials got = {0};
    struct gavel_error error = {0};

    (void)state;
    forget_environment();
    assert_int_equal(setenv("AWS_ACCESS_KEY_ID", "AKIA1", 1), 0);
    assert_int_equal(s3_credentials_read(&source, &got, &error), GAVEL_ERR_STORE_DENIED);
    assert_non_null(strstr(error.message, "set both"));
    assert_int_equal(setenv("AWS_SECRET_ACCESS_KEY", "s1", 1), 0);
    assert_int_equal(setenv("AWS_SESSION_TOKEN", "t1", 1), 0);
    assert_int_equal(s3_credentials_read(&source, &got, &error), GAVEL_OK);
    assert_string_equal(got.key, "AKIA1");
    assert_string_equal(got.secret, "s1");
    assert_string_equal(got.token, "t1");
    forget_environment();
}

static void test_etags_lose_their_quotes(void **state)
{
    static const char *const pairs[][2] = {{"\"abc\"", "abc"}, {"abc", "abc"}, {"", ""},
                                           {"\"", "\""},       {"\"\"", ""},   {"W/\"abc\"", "W/\"abc\""}};
    char etag[S3_ETAG_MAX + 1];

    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        s3_etag_bare(pairs[i][0], etag);
        assert_string_equal(etag, pairs[i][1]);
    }
}

static bool is_about(double a, double b) { return a > b * 0.999 && a < b * 1.001; }

static void test_requests_and_their_price(void **state)
{
    struct gavel_settings settings;
    struct s3_requests one;
    struct s3_requests many;

    (void)state;
    assert_int_equal(gavel_settings_preset("object-store", &settings), GAVEL_OK);
    settings.heartbeat_ms = settings.election_interval_ms = 5000;
    settings.heartbeat_jitter_ms = 0;
    settings.candidate_timeout_ms = 20000;
    /* Alone: two PUTs a heartbeat, a list in four. */
    one = s3_requests_per_hour(&settings, 0, 1);
    assert_true(is_about(one.puts, 1440) && is_about(one.lists, 180) && one.gets < 0.5);
    /* Ten standbys: each a PUT, a list and a look; and ten GETs of the others after every twenty lists. */
    many = s3_requests_per_hour(&settings, 10, 1);
    assert_true(is_about(many.puts, 1440 + 7200));
    assert_true(is_about(many.lists, 180 + 7200));
    assert_true(is_about(many.gets, 7200 + (180 + 7200) * 10 / 20.0));
    assert_true(is_about(s3_requests_per_hour(&settings, 10, 20).gets, 20 * many.gets));
    assert_true(is_about(s3_requests_cost(many, s3_prices_default),
                         (8640 * 0.005 + 7380 * 0.005 + 10890 * 0.0004) / 1000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_urls_are_canonical_as_in_the_published_examples),
        cmocka_unit_test(test_what_is_not_unreserved_is_encoded_in_paths_and_queries),
        cmocka_unit_test(test_hashes_are_those_of_the_published_examples),
        cmocka_unit_test(test_a_name_is_one_part_of_a_key_and_comes_back),
        cmocka_unit_test(test_a_key_that_gavel_did_not_write_has_no_name),
        cmocka_unit_test(test_elements_of_an_answer_are_found),
        cmocka_unit_test(test_answers_that_make_no_sense_are_not_read_beyond_their_end),
        cmocka_unit_test(test_a_bucket_is_found_where_its_settings_say),
        cmocka_unit_test(test_the_environment_says_what_the_url_does_not),
        cmocka_unit_test(test_settings_that_make_no_sense_are_refused),
        cmocka_unit_test(test_credentials_are_read_from_a_profile),
        cmocka_unit_test(test_credentials_that_are_none_are_refused_and_never_shown),
        cmocka_unit_test(test_credentials_in_no_file_are_refused_at_once),
        cmocka_unit_test(test_credentials_of_the_environment_come_in_pairs),
        cmocka_unit_test(test_etags_lose_their_quotes),
        cmocka_unit_test(test_requests_and_their_price),
    };

    return cmocka_run_group_tests_name("s3 without a server", tests, NULL, NULL);
}
