/* SPDX-License-Identifier: Apache-2.0 */

#include "certs.h"

#include <dirent.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void add_name(X509_NAME *name, const char *field, const char *value)
{
    assert_int_equal(
        X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8, (const unsigned char *)value, -1, -1, 0), 1);
}

static void add_uri(X509 *cert, const char *cluster, const char *kind, const char *node, bool is_nowhere)
{
    char text[256];
    X509_EXTENSION *extension;

    (void)snprintf(text, sizeof text, "URI:urn:gavel:%s:%s:%s%s", cluster, kind, node,
                   strcmp(kind, "node") == 0 && !is_nowhere ? ",DNS:localhost,IP:127.0.0.1,IP:::1" : "");
    extension = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, text);
    assert_non_null(extension);
    assert_int_equal(X509_add_ext(cert, extension, -1), 1);
    X509_EXTENSION_free(extension);
}

/* Signed by `by`, or by itself if NULL. */
static struct authority make(const char *cluster, const char *node, const char *kind,
                             const struct authority *by, long from_s, long until_s, bool is_nowhere)
{
    static long serial;
    struct authority made = {.cert = X509_new(), .key = EVP_EC_gen("P-256")};
    X509_NAME *name = X509_get_subject_name(made.cert);

    assert_non_null(made.key);
    assert_int_equal(X509_set_version(made.cert, X509_VERSION_3), 1);
    assert_int_equal(ASN1_INTEGER_set(X509_get_serialNumber(made.cert), ++serial), 1);
    add_name(name, "O", cluster);
    add_name(name, "CN", node);
    assert_non_null(X509_gmtime_adj(X509_getm_notBefore(made.cert), from_s));
    assert_non_null(X509_gmtime_adj(X509_getm_notAfter(made.cert), until_s));
    assert_int_equal(X509_set_pubkey(made.cert, made.key), 1);
    assert_int_equal(X509_set_issuer_name(made.cert, by ? X509_get_subject_name(by->cert) : name), 1);
    if (!by) {
        X509_EXTENSION *extension =
            X509V3_EXT_conf_nid(NULL, NULL, NID_basic_constraints, "critical,CA:TRUE");

        assert_int_equal(X509_add_ext(made.cert, extension, -1), 1);
        X509_EXTENSION_free(extension);
    } else if (kind[0]) {
        add_uri(made.cert, cluster, kind, node, is_nowhere);
    }
    assert_true(X509_sign(made.cert, by ? by->key : made.key, EVP_sha256()) > 0);
    return made;
}

static void free_authority(struct authority *authority)
{
    X509_free(authority->cert);
    EVP_PKEY_free(authority->key);
}

static void write_cert(const char *path, X509 *cert)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(PEM_write_X509(file, cert), 1);
    assert_int_equal(fclose(file), 0);
}

void certs_init(struct certs *certs)
{
    char path[128];

    strcpy(certs->directory, "/tmp/gavel-certs-XXXXXX");
    assert_non_null(mkdtemp(certs->directory));
    certs->ca = make("test", "ca", "", NULL, -3600, 36000, false);
    certs->other_ca = make("test", "another ca", "", NULL, -3600, 36000, false);
    (void)snprintf(path, sizeof path, "%s/ca.crt", certs->directory);
    write_cert(path, certs->ca.cert);
}

void certs_done(struct certs *certs)
{
    DIR *directory = opendir(certs->directory);
    const struct dirent *entry;

    while ((entry = readdir(directory))) {
        char path[512];

        (void)snprintf(path, sizeof path, "%s/%s", certs->directory, entry->d_name);
        (void)unlink(path); /* fails for . and .. */
    }
    (void)closedir(directory);
    (void)rmdir(certs->directory);
    free_authority(&certs->ca);
    free_authority(&certs->other_ca);
}

struct tls_files certs_issue(struct certs *certs, const struct issue *issue, struct paths *paths)
{
    struct authority made =
        make(issue->cluster ? issue->cluster : "test", issue->node, issue->kind ? issue->kind : "node",
             issue->is_of_other_ca ? &certs->other_ca : &certs->ca, issue->from_s != 0 ? issue->from_s : -60,
             issue->until_s != 0 ? issue->until_s : 3600, issue->is_nowhere);
    FILE *file;

    (void)snprintf(paths->ca, sizeof paths->ca, "%s/ca.crt", certs->directory);
    (void)snprintf(paths->cert, sizeof paths->cert, "%s/%s.crt", certs->directory, issue->node);
    (void)snprintf(paths->key, sizeof paths->key, "%s/%s.key", certs->directory, issue->node);
    write_cert(paths->cert, made.cert);
    file = fopen(paths->key, "w");
    assert_non_null(file);
    assert_int_equal(PEM_write_PrivateKey(file, made.key, NULL, NULL, 0, NULL, NULL), 1);
    assert_int_equal(fclose(file), 0);
    free_authority(&made);
    return (struct tls_files){.ca = paths->ca, .cert = paths->cert, .key = paths->key};
}
