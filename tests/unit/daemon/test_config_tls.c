/* SPDX-License-Identifier: Apache-2.0 */

/* Certificates in the configuration of gaveld: what the other nodes would refuse is refused here, by name. */
#include "../net/certs.h"
#include "daemon/config/read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#define DAY_S (24L * 3600)

struct fixture {
    struct certs certs;
    struct paths paths;
    char file[80];
    struct daemon_config config;
    struct config_warnings warnings;
    struct gavel_error error;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    certs_init(&f->certs);
    (void)snprintf(f->file, sizeof f->file, "%s/gaveld.yaml", f->certs.directory);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    config_done(&f->config);
    certs_done(&f->certs);
    free(f);
    return 0;
}

static void issue(struct fixture *f, struct issue issue)
{
    (void)certs_issue(&f->certs, &issue, &f->paths); /* the paths are what is wanted */
    assert_int_equal(chmod(f->paths.key, 0600), 0);
}

/* The node n1 of the cluster "test", with the files of the last issue. */
static enum gavel_status load(struct fixture *f)
{
    const struct config_input input = {.file = f->file};
    FILE *file = fopen(f->file, "w");

    assert_non_null(file);
    (void)fprintf(file, "cluster: test\nnode: n1\ndata: d1\ntls:\n  ca: %s\n  cert: %s\n  key: %s\n",
                  f->paths.ca, f->paths.cert, f->paths.key);
    assert_int_equal(fclose(file), 0);
    config_done(&f->config);
    f->config = (struct daemon_config){0};
    f->warnings = (struct config_warnings){0};
    f->error = (struct gavel_error){0};
    return config_read(&input, &f->config, &f->warnings, &f->error);
}

static void assert_good(struct fixture *f)
{
    if (load(f) != GAVEL_OK)
        fail_msg("%s", f->error.message);
}

/* With the line of the certificate in the file, these words, and the way out. */
static void assert_refused(struct fixture *f, const char *words, const char *next)
{
    char prefix[128];

    (void)snprintf(prefix, sizeof prefix, "%s:6: ", f->file);
    if (load(f) == GAVEL_OK)
        fail_msg("taken, but should not be: %s", words);
    if (strncmp(f->error.message, prefix, strlen(prefix)) != 0 || !strstr(f->error.message, words) ||
        !strstr(f->error.message, next))
        fail_msg("not \"%s … %s … %s\", but: %s", prefix, words, next, f->error.message);
}

static void test_a_certificate_that_fits_is_taken_without_a_word(void **state)
{
    struct fixture *f = *state;

    issue(f, (struct issue){.node = "n1", .until_s = 90 * DAY_S});
    assert_good(f);
    assert_true(f->config.has_tls);
    assert_string_equal(f->config.tls_cert, f->paths.cert);
    if (f->warnings.count)
        fail_msg("%s", f->warnings.texts[0]);
}

static void test_a_certificate_of_another_cluster_is_refused(void **state)
{
    struct fixture *f = *state;

    issue(f, (struct issue){.cluster = "shop", .node = "n1"});
    assert_refused(f, "is for cluster \"shop\" (O), and this is \"test\"", "gavel cert issue n1");
}

static void test_a_certificate_of_another_node_is_refused(void **state)
{
    struct fixture *f = *state;

    issue(f, (struct issue){.node = "n2"});
    assert_refused(f, "is for node \"n2\" (CN), and this is \"n1\"", "gavel cert issue n1");
}

static void test_a_certificate_that_has_expired_is_refused(void **state)
{
    struct fixture *f = *state;

    issue(f, (struct issue){.node = "n1", .from_s = -3 * DAY_S, .until_s = -60});
    assert_refused(f, "has expired", "gavel cert issue n1");
}

static void test_a_certificate_of_tomorrow_is_refused(void **state)
{
    struct fixture *f = *state;

    issue(f, (struct issue){.node = "n1", .from_s = DAY_S, .until_s = 90 * DAY_S});
    assert_refused(f, "is not valid before", "is the clock of this machine right?");
}

static void test_a_month_before_it_expires_there_is_a_warning(void **state)
{
    struct fixture *f = *state;

    issue(f, (struct issue){.node = "n1", .until_s = 29 * DAY_S + 3600});
    assert_good(f);
    assert_int_equal(f->warnings.count, 1);
    assert_non_null(strstr(f->warnings.texts[0], f->paths.cert));
    assert_non_null(strstr(f->warnings.texts[0], "expires in 29 days"));
    assert_non_null(strstr(f->warnings.texts[0], "SIGHUP"));
    issue(f, (struct issue){.node = "n1", .until_s = 30 * DAY_S + 3600});
    assert_good(f);
    assert_int_equal(f->warnings.count, 0);
}

static void test_a_key_of_another_certificate_is_refused(void **state)
{
    struct fixture *f = *state;
    char key[sizeof f->paths.key];

    issue(f, (struct issue){.node = "n2", .until_s = 90 * DAY_S});
    strcpy(key, f->paths.key);
    issue(f, (struct issue){.node = "n1", .until_s = 90 * DAY_S});
    strcpy(f->paths.key, key);
    assert_refused(f, "does not belong to the certificate", "give the two files that were written together");
}

static void test_a_certificate_of_another_authority_is_refused(void **state)
{
    struct fixture *f = *state;

    issue(f, (struct issue){.node = "n1", .is_of_other_ca = true, .until_s = 90 * DAY_S});
    assert_refused(f, "was not signed by the CA", "give the CA");
}

static void test_what_is_no_certificate_is_refused(void **state)
{
    struct fixture *f = *state;

    issue(f, (struct issue){.node = "n1", .until_s = 90 * DAY_S});
    strcpy(f->paths.cert, f->paths.key);
    assert_refused(f, f->paths.key, "PEM");
}

static void test_a_key_that_everybody_may_read_is_worth_a_word(void **state)
{
    struct fixture *f = *state;

    issue(f, (struct issue){.node = "n1", .until_s = 90 * DAY_S});
    assert_int_equal(chmod(f->paths.key, 0644), 0);
    assert_good(f);
    assert_int_equal(f->warnings.count, 1);
    assert_non_null(strstr(f->warnings.texts[0], "chmod 600"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(test_a_certificate_that_fits_is_taken_without_a_word),
        TEST(test_a_certificate_of_another_cluster_is_refused),
        TEST(test_a_certificate_of_another_node_is_refused),
        TEST(test_a_certificate_that_has_expired_is_refused),
        TEST(test_a_certificate_of_tomorrow_is_refused),
        TEST(test_a_month_before_it_expires_there_is_a_warning),
        TEST(test_a_key_of_another_certificate_is_refused),
        TEST(test_a_certificate_of_another_authority_is_refused),
        TEST(test_what_is_no_certificate_is_refused),
        TEST(test_a_key_that_everybody_may_read_is_worth_a_word),
#undef TEST
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
