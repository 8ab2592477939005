/* SPDX-License-Identifier: Apache-2.0 */

/* Addresses of nodes as people write them, events in words, and options of which there may be many. */
#include "cli/cluster/client.h"
#include "cli/cluster/events.h"
#include "cli/settings/args.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct flag flags[] = {
    {"host", FLAG_LIST, "HOST", "a list"},
    {"watch", FLAG_PACE, "[DURATION]", "a pace"},
    {0},
};

/* The program's own table is in main.c; args.c takes whichever there is. */
static int do_nothing(const struct cli *cli, int argc, char **argv)
{
    (void)cli;
    (void)argc;
    (void)argv;
    return 0;
}

const struct command commands[] = {
    {.name = "try",
     .arguments = "",
     .arguments_max = 2,
     .summary = "",
     .help = "",
     .options = OPTIONS_STORE | OPTIONS_CLUSTER,
     .flags = flags,
     .run = do_nothing},
    {0},
};

static void assert_url(const char *text, const char *scheme, const char *wanted)
{
    char url[CLUSTER_URL_MAX] = "";
    struct gavel_error error = {0};

    assert_int_equal(cluster_url_read(text, strlen(text), scheme, url, &error), GAVEL_OK);
    assert_string_equal(url, wanted);
}

static void test_addresses_get_a_scheme_and_a_port(void **state)
{
    (void)state;
    assert_url("127.0.0.1:7501", "http", "http://127.0.0.1:7501");
    assert_url("127.0.0.1", "http", "http://127.0.0.1:7500");
    assert_url("node.example.com", "https", "https://node.example.com:7500");
    assert_url("https://node.example.com", "http", "https://node.example.com:7500");
    assert_url("http://node.example.com:80/", "https", "http://node.example.com:80");
    assert_url("[::1]:7501", "http", "http://[::1]:7501");
}

static void test_what_is_no_address_is_refused(void **state)
{
    static const char *const bad[] = {"ftp://host",       "host:port",  "http://",
                                      "http://host/path", "host:99999", "a b"};
    char url[CLUSTER_URL_MAX] = "untouched";
    struct gavel_error error = {0};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(cluster_url_read(bad[i], strlen(bad[i]), "http", url, &error), GAVEL_ERR_INVALID);
    assert_string_equal(url, "untouched");
}

static void test_a_list_of_addresses_has_each_once(void **state)
{
    struct cluster_options options = {.urls = "a:1, b,,http://a:1\n", .timeout_ms = 1};
    struct cluster_client client;
    struct gavel_error error = {0};

    (void)state;
    assert_int_equal(cluster_client_init(&options, &client, &error), GAVEL_OK);
    assert_int_equal(client.url_count, 2);
    assert_string_equal(client.urls[0], "http://a:1");
    assert_string_equal(client.urls[1], "http://b:7500");
    cluster_client_done(&client);
    options.urls = " , ";
    assert_int_equal(cluster_client_init(&options, &client, &error), GAVEL_ERR_INVALID);
    cluster_client_done(&client);
}

static void assert_words(const char *name, const char *node, const char *text, const char *wanted)
{
    struct cluster_event event = {
        .teller = "n1", .name = name, .at = "", .node = node, .previous = "", .text = text, .term = 4};
    char words[128];

    assert_string_equal(cluster_event_words(&event, words, sizeof words), wanted);
}

static void test_events_are_told_in_words(void **state)
{
    (void)state;
    assert_words("became_leader", "n1", "", "n1 leads in term 4");
    assert_words("lost_leadership", "", "the lease lapsed", "n1 no longer leads: the lease lapsed");
    assert_words("lost_leadership", "", "", "n1 no longer leads");
    assert_words("leader_changed", "n2", "", "n1 follows n2");
    assert_words("leader_changed", "", "", "n1 knows no leader");
    assert_words("leader_changed", "n1", "", "n1 has won the election");
    assert_words("leader_down", "n2", "", "n1 has proof that n2 is dead");
    assert_words("of_tomorrow", "", "why", "n1 reports of_tomorrow: why");
}

static void test_words_of_an_event_are_cut_to_their_room(void **state)
{
    struct cluster_event event = {
        .teller = "n1", .name = "became_leader", .at = "", .node = "", .previous = "", .text = "", .term = 4};
    char words[6];

    (void)state;
    assert_string_equal(cluster_event_words(&event, words, sizeof words), "n1 le");
}

/* Takes a command line apart; the values are given back at once. */
static enum gavel_status parse(char **argv, struct args *args)
{
    struct setting_values values = {0};
    struct gavel_error error = {0};
    enum gavel_status status;
    int argc = 0;

    while (argv[argc])
        argc++;
    status = args_parse(argc, argv, &values, args, &error);
    setting_values_done(&values);
    return status;
}

static void test_a_list_is_given_as_often_as_one_likes(void **state)
{
    char *argv[] = {strdup("gavel"),      strdup("try"),    strdup("--host"), strdup("a"),
                    strdup("--host=b,c"), strdup("--host"), strdup("d"),      NULL};
    char *copy[sizeof argv / sizeof argv[0]];
    struct args args;

    (void)state;
    memcpy(copy, argv, sizeof argv); /* argv is reordered */
    assert_int_equal(parse(argv, &args), GAVEL_OK);
    assert_string_equal(args.flag_texts[0], "a,b,c,d");
    args_done(&args);
    for (size_t i = 0; copy[i]; i++)
        free(copy[i]);
}

static void test_a_pace_may_be_left_out(void **state)
{
    char gavel[] = "gavel", try[] = "try", watch[] = "--watch", pace[] = "2s", word[] = "word",
         attached[] = "--watch=5s", plain[] = "--watch=5";
    char *bare[] = {gavel, try, watch, word, NULL}, *with[] = {gavel, try, watch, pace, NULL},
         *glued[] = {gavel, try, attached, NULL}, *without[] = {gavel, try, plain, NULL};
    struct args args;

    (void)state;
    assert_int_equal(parse(bare, &args), GAVEL_OK);
    assert_string_equal(args.flag_texts[1], "");
    assert_int_equal(args.count, 1);
    args_done(&args);
    assert_int_equal(parse(with, &args), GAVEL_OK);
    assert_string_equal(args.flag_texts[1], "2s");
    assert_int_equal(args.count, 0);
    args_done(&args);
    assert_int_equal(parse(glued, &args), GAVEL_OK);
    assert_string_equal(args.flag_texts[1], "5s");
    args_done(&args);
    assert_int_equal(parse(without, &args), GAVEL_ERR_INVALID);
    args_done(&args);
}

static enum gavel_status choose(enum value_source cluster, enum value_source store, const char **ret_cluster)
{
    unsigned groups = OPTIONS_STORE | OPTIONS_CLUSTER;
    struct setting_values values = {0};
    struct gavel_error error = {0};
    struct config config;
    enum gavel_status status;

    setting_values_note(&values, setting_by_flag("cluster"), cluster, "127.0.0.1:1", 1);
    setting_values_note(&values, setting_by_flag("store"), store, "memory:x", 1);
    status = setting_values_resolve(&values, groups, &config, &error);
    *ret_cluster = status != GAVEL_OK ? NULL : config.cluster;
    setting_values_done(&values);
    return status;
}

/* The same with another option than --store, for a command that takes settings. */
static bool means_cluster(enum value_source cluster, const char *flag, const char *text)
{
    unsigned groups = OPTIONS_STORE | OPTIONS_CLUSTER | OPTIONS_SETTINGS | OPTIONS_COMMON;
    struct setting_values values = {0};
    struct gavel_error error = {0};
    struct config config;

    setting_values_note(&values, setting_by_flag("cluster"), cluster, "127.0.0.1:1", 1);
    setting_values_note(&values, setting_by_flag(flag), SOURCE_FLAG, text, 0);
    assert_int_equal(setting_values_resolve(&values, groups, &config, &error), GAVEL_OK);
    setting_values_done(&values);
    return config.cluster != NULL;
}

static void test_a_setting_on_the_command_line_means_no_cluster_of_the_environment(void **state)
{
    (void)state;
    assert_false(means_cluster(SOURCE_ENVIRONMENT, "lease", "12s"));
    assert_false(means_cluster(SOURCE_ENVIRONMENT, "group", "x"));
    assert_false(means_cluster(SOURCE_ENVIRONMENT, "config", "gavel.yaml"));
    assert_true(means_cluster(SOURCE_FILE, "config", "gavel.yaml"));
    assert_true(means_cluster(SOURCE_ENVIRONMENT, "json", "true"));
    assert_true(means_cluster(SOURCE_FLAG, "config", "gavel.yaml"));
}

static void test_whichever_is_closer_to_the_command_line_is_meant(void **state)
{
    const char *cluster;

    (void)state;
    assert_int_equal(choose(SOURCE_FLAG, SOURCE_ENVIRONMENT, &cluster), GAVEL_OK);
    assert_non_null(cluster);
    assert_int_equal(choose(SOURCE_ENVIRONMENT, SOURCE_FLAG, &cluster), GAVEL_OK);
    assert_null(cluster);
    assert_int_equal(choose(SOURCE_ENVIRONMENT, SOURCE_ENVIRONMENT, &cluster), GAVEL_OK);
    assert_non_null(cluster);
    assert_int_equal(choose(SOURCE_FILE, SOURCE_ENVIRONMENT, &cluster), GAVEL_OK);
    assert_null(cluster);
    assert_int_equal(choose(SOURCE_FLAG, SOURCE_FLAG, &cluster), GAVEL_ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_addresses_get_a_scheme_and_a_port),
        cmocka_unit_test(test_what_is_no_address_is_refused),
        cmocka_unit_test(test_a_list_of_addresses_has_each_once),
        cmocka_unit_test(test_events_are_told_in_words),
        cmocka_unit_test(test_words_of_an_event_are_cut_to_their_room),
        cmocka_unit_test(test_a_list_is_given_as_often_as_one_likes),
        cmocka_unit_test(test_a_pace_may_be_left_out),
        cmocka_unit_test(test_a_setting_on_the_command_line_means_no_cluster_of_the_environment),
        cmocka_unit_test(test_whichever_is_closer_to_the_command_line_is_meant),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
