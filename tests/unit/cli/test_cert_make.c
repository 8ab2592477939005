/* SPDX-License-Identifier: Apache-2.0 */

/* Certificates: who they say they are, how long, and what is refused. tests/e2e/cluster/cert.sh lets
 * openssl(1) judge them. */
#include "cli/cert/cert_make.h"

#include <openssl/x509v3.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define DAY_MS (INT64_C(24) * 3600 * 1000)

struct fixture {
    struct cert_pair ca;
    struct cert_pair node;
    struct gavel_error error;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    if (!f || cert_make_ca("prod", 30 * DAY_MS, &f->ca, &f->error) != GAVEL_OK)
        return -1;
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    cert_pair_done(&f->ca);
    cert_pair_done(&f->node);
    free(f);
    return 0;
}

static enum gavel_status make(struct fixture *f, const char *host, gavel_ms valid_ms)
{
    cert_pair_done(&f->node);
    return cert_make_node(&f->ca, "n1", &host, 1, valid_ms, &f->node, &f->error);
}

static void test_a_certificate_names_cluster_and_node(void **state)
{
    struct fixture *f = *state;
    char name[CERT_NAME_MAX + 1];

    assert_int_equal(make(f, "10.0.0.1", DAY_MS), GAVEL_OK);
    assert_string_equal(cert_subject(f->node.certificate, NID_organizationName, name), "prod");
    assert_string_equal(cert_subject(f->node.certificate, NID_commonName, name), "n1");
    assert_string_equal(cert_issuer(f->node.certificate, NID_commonName, name), "prod CA");
    assert_int_equal(X509_verify(f->node.certificate, f->ca.key), 1);
    assert_int_equal(X509_check_ca(f->node.certificate), 0);
    assert_int_equal(X509_check_ca(f->ca.certificate), 1);
}

static void test_hosts_are_names_or_addresses(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(make(f, "10.0.0.1", DAY_MS), GAVEL_OK);
    assert_int_equal(X509_check_ip_asc(f->node.certificate, "10.0.0.1", 0), 1);
    assert_int_equal(X509_check_host(f->node.certificate, "n1", 0, 0, NULL), 1);
    assert_int_equal(make(f, "fe80::1", DAY_MS), GAVEL_OK);
    assert_int_equal(X509_check_ip_asc(f->node.certificate, "fe80::1", 0), 1);
    assert_int_equal(make(f, "db.example.com", DAY_MS), GAVEL_OK);
    assert_int_equal(X509_check_host(f->node.certificate, "db.example.com", 0, 0, NULL), 1);
    assert_int_equal(X509_check_host(f->node.certificate, "other.example.com", 0, 0, NULL), 0);
}

static void test_a_host_that_is_neither_is_refused(void **state)
{
    static const char *const bad[] = {"", "a b", "a,DNS:b", "-x", "http://host", "h\nx"};
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(make(f, bad[i], DAY_MS), GAVEL_ERR_INVALID);
        assert_null(f->node.certificate);
    }
}

static void test_it_never_outlives_its_ca(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(make(f, "h", 29 * DAY_MS), GAVEL_OK);
    assert_true(ASN1_TIME_compare(X509_get0_notAfter(f->node.certificate),
                                  X509_get0_notAfter(f->ca.certificate)) < 0);
    assert_int_equal(make(f, "h", 31 * DAY_MS), GAVEL_OK);
    assert_int_equal(
        ASN1_TIME_compare(X509_get0_notAfter(f->node.certificate), X509_get0_notAfter(f->ca.certificate)), 0);
}

static void test_the_key_of_another_ca_is_refused(void **state)
{
    struct fixture *f = *state;
    struct cert_pair other = {0}, mixed;

    assert_int_equal(cert_make_ca("prod", DAY_MS, &other, &f->error), GAVEL_OK);
    mixed = (struct cert_pair){.certificate = f->ca.certificate, .key = other.key};
    assert_int_equal(cert_make_node(&mixed, "n1", NULL, 0, DAY_MS, &f->node, &f->error), GAVEL_ERR_INVALID);
    assert_non_null(strstr(f->error.message, "does not belong"));
    cert_pair_done(&other);
}

static void test_an_expired_ca_signs_nothing(void **state)
{
    struct fixture *f = *state;

    assert_non_null(ASN1_TIME_set(X509_getm_notAfter(f->ca.certificate), 1));
    assert_int_equal(make(f, "h", DAY_MS), GAVEL_ERR_INVALID);
    assert_non_null(strstr(f->error.message, "has expired"));
}

static void test_two_certificates_share_nothing(void **state)
{
    struct fixture *f = *state;
    struct cert_pair other = {0};

    assert_int_equal(make(f, "h", DAY_MS), GAVEL_OK);
    assert_int_equal(cert_make_node(&f->ca, "n1", NULL, 0, DAY_MS, &other, &f->error), GAVEL_OK);
    assert_int_not_equal(ASN1_INTEGER_cmp(X509_get0_serialNumber(f->node.certificate),
                                          X509_get0_serialNumber(other.certificate)),
                         0);
    assert_int_equal(EVP_PKEY_eq(f->node.key, other.key), 0);
    cert_pair_done(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define WITH_CA(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
        WITH_CA(test_a_certificate_names_cluster_and_node), WITH_CA(test_hosts_are_names_or_addresses),
        WITH_CA(test_a_host_that_is_neither_is_refused),    WITH_CA(test_it_never_outlives_its_ca),
        WITH_CA(test_the_key_of_another_ca_is_refused),     WITH_CA(test_an_expired_ca_signs_nothing),
        WITH_CA(test_two_certificates_share_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
