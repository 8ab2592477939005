/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Makes contexts from files, and reads the identity in a certificate. Our own
 * certificate is checked as the others will check it: what they would refuse is
 * found here, with the name of the file, and not in their logs.
 */

#include "net/tls.h"

#include "base/error.h"
#include "net/revoked.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A daemon has nobody to ask. */
static int no_password(char *buffer, int size, int is_writing, void *context)
{
    (void)buffer;
    (void)size;
    (void)is_writing;
    (void)context;
    return 0;
}

static enum gavel_status check_readable(const char *what, const char *path, struct gavel_error *error)
{
    if (access(path, R_OK) == 0)
        return GAVEL_OK;
    return error_set(
        error, GAVEL_ERR_IO,
        "the %s %s cannot be read: %s; correct the path or its permissions, or make one with \"gavel cert\"",
        what, path, strerror(errno));
}

static enum gavel_status fail(struct gavel_error *error, const char *what, const char *path, const char *next)
{
    char reason[256];

    tls_reason(NULL, reason, sizeof reason);
    if (strcmp(reason, "PEM lib") == 0 || strcmp(reason, "no start line") == 0)
        (void)snprintf(reason, sizeof reason, "there is none in it");
    return error_set(error, GAVEL_ERR_INVALID, "the %s %s cannot be used: %s; %s", what, path, reason, next);
}

static enum gavel_status load(SSL_CTX *context, const struct tls_files *files, struct gavel_error *error)
{
    enum gavel_status status;

    if (files->ca) {
        status = check_readable("CA", files->ca, error);
        if (status != GAVEL_OK)
            return status;
        if (SSL_CTX_load_verify_locations(context, files->ca, NULL) != 1)
            return fail(error, "CA", files->ca, "it must be a certificate in PEM");
    }
    status = check_readable("certificate", files->cert, error);
    if (status == GAVEL_OK)
        status = check_readable("key", files->key, error);
    if (status != GAVEL_OK)
        return status;
    if (SSL_CTX_use_certificate_chain_file(context, files->cert) != 1)
        return fail(error, "certificate", files->cert, "it must be in PEM, ours first");
    if (SSL_CTX_use_PrivateKey_file(context, files->key, SSL_FILETYPE_PEM) != 1) {
        if (ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH)
            goto mismatch;
        return fail(error, "key", files->key, "it must be in PEM, without a password");
    }
    if (SSL_CTX_check_private_key(context) == 1)
        return GAVEL_OK;
mismatch:
    ERR_clear_error();
    return error_set(
        error, GAVEL_ERR_INVALID,
        "the key %s does not belong to the certificate %s; give the two files that were written together",
        files->key, files->cert);
}

static void write_date(const ASN1_TIME *time, char buffer[32])
{
    struct tm tm;

    if (ASN1_TIME_to_tm(time, &tm) != 1 || strftime(buffer, 32, "%Y-%m-%d %H:%M:%S UTC", &tm) == 0)
        (void)snprintf(buffer, 32, "an unknown day");
}

static enum gavel_status check_dates(const X509 *cert, const char *path, struct gavel_error *error)
{
    char date[32];

    if (X509_cmp_current_time(X509_get0_notAfter(cert)) < 0) {
        write_date(X509_get0_notAfter(cert), date);
        return error_set(error, GAVEL_ERR_INVALID,
                         "the certificate %s has expired, on %s; make a new one with \"gavel cert issue\"",
                         path, date);
    }
    if (X509_cmp_current_time(X509_get0_notBefore(cert)) > 0) {
        write_date(X509_get0_notBefore(cert), date);
        return error_set(error, GAVEL_ERR_INVALID,
                         "the certificate %s is not valid before %s; is the clock of this machine right?",
                         path, date);
    }
    return GAVEL_OK;
}

/* As the others will verify it. */
static enum gavel_status check_signed(SSL_CTX *context, const struct tls_files *files,
                                      struct gavel_error *error)
{
    enum gavel_status status = GAVEL_OK;
    STACK_OF(X509) *between = NULL;
    X509_STORE_CTX *check = X509_STORE_CTX_new();

    (void)SSL_CTX_get0_chain_certs(context, &between); /* leaves NULL if there are none */
    if (!check || X509_STORE_CTX_init(check, SSL_CTX_get_cert_store(context),
                                      SSL_CTX_get0_certificate(context), between) != 1)
        status = error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory");
    else if (X509_verify_cert(check) != 1)
        status = error_set(
            error, GAVEL_ERR_INVALID,
            "the certificate %s was not signed by the CA %s: %s; give the CA that \"gavel cert issue\" used",
            files->cert, files->ca, X509_verify_cert_error_string(X509_STORE_CTX_get_error(check)));
    X509_STORE_CTX_free(check);
    ERR_clear_error();
    return status;
}

static void set_up(SSL_CTX *context, const struct tls_files *files, enum tls_use use)
{
    (void)SSL_CTX_set_min_proto_version(context, use == TLS_PEER ? TLS1_3_VERSION : TLS1_2_VERSION);
    SSL_CTX_set_default_passwd_cb(context, no_password);
    /* No resumption: whoever comes again shows a certificate that is still good. */
    (void)SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    (void)SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
    (void)SSL_CTX_set_num_tickets(context, 0);
    (void)SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
    if (use == TLS_PEER) {
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
        SSL_CTX_set_client_CA_list(context, SSL_load_client_CA_file(files->ca));
    }
}

enum gavel_status tls_context_make(const struct tls_files *files, enum tls_use use, SSL_CTX **ret_context,
                                   struct gavel_error *error)
{
    enum gavel_status status;
    SSL_CTX *context;

    if (use == TLS_PEER && !files->ca)
        return error_set(error, GAVEL_ERR_INVALID,
                         "TLS between nodes needs a CA; set tls: ca, or make one with \"gavel cert init\"");
    ERR_clear_error();
    context = SSL_CTX_new(TLS_method());
    if (!context)
        return error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory");
    SSL_CTX_set_default_passwd_cb(context, no_password);
    status = load(context, files, error);
    if (status == GAVEL_OK)
        status = check_dates(SSL_CTX_get0_certificate(context), files->cert, error);
    if (status == GAVEL_OK && files->ca)
        status = check_signed(context, files, error);
    if (status == GAVEL_OK && files->revoked && files->revoked[0])
        status = revoked_load(files->revoked, context, error);
    if (status != GAVEL_OK) {
        SSL_CTX_free(context);
        return status;
    }
    set_up(context, files, use);
    *ret_context = context;
    return GAVEL_OK;
}

/* Exactly one such name, without a NUL in it: what is shown must be what is compared. */
static bool take_name(const X509 *cert, int nid, char ret_name[TLS_NAME_MAX])
{
    const X509_NAME *subject = X509_get_subject_name(cert);
    int at = X509_NAME_get_index_by_NID(subject, nid, -1);
    unsigned char *text;
    int length;
    bool is_good;

    if (at < 0 || X509_NAME_get_index_by_NID(subject, nid, at) >= 0)
        return false;
    length = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
    if (length < 0)
        return false;
    is_good = length > 0 && length < TLS_NAME_MAX && strlen((const char *)text) == (size_t)length;
    if (is_good)
        memcpy(ret_name, text, (size_t)length + 1);
    OPENSSL_free(text);
    return is_good;
}

const char *tls_uri_write(enum tls_kind kind, const char *cluster, const char *name,
                          char buffer[static TLS_URI_MAX])
{
    (void)snprintf(buffer, TLS_URI_MAX, "urn:gavel:%s:%s:%s", cluster,
                   kind == TLS_KIND_NODE ? "node" : "client", name); /* names are much shorter */
    return buffer;
}

static bool is_uri_of(const GENERAL_NAME *name, const char *text)
{
    const ASN1_IA5STRING *uri = name->d.uniformResourceIdentifier;

    return (size_t)ASN1_STRING_length(uri) == strlen(text) &&
           memcmp(ASN1_STRING_get0_data(uri), text, strlen(text)) == 0;
}

/* Exactly one URI of ours, and that of its own name; a certificate with two could be both. */
static enum tls_kind take_kind(const X509 *cert, const struct tls_identity *identity)
{
    static const char ours[] = "urn:gavel:";
    GENERAL_NAMES *names = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
    enum tls_kind kind = TLS_KIND_UNKNOWN;
    char uri[TLS_URI_MAX];
    int count = 0;

    for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);

        if (name->type != GEN_URI ||
            (size_t)ASN1_STRING_length(name->d.uniformResourceIdentifier) < strlen(ours) ||
            memcmp(ASN1_STRING_get0_data(name->d.uniformResourceIdentifier), ours, strlen(ours)) != 0)
            continue;
        count++;
        if (is_uri_of(name, tls_uri_write(TLS_KIND_NODE, identity->cluster, identity->node, uri)))
            kind = TLS_KIND_NODE;
        else if (is_uri_of(name, tls_uri_write(TLS_KIND_CLIENT, identity->cluster, identity->node, uri)))
            kind = TLS_KIND_CLIENT;
    }
    GENERAL_NAMES_free(names);
    return count == 1 ? kind : TLS_KIND_UNKNOWN;
}

static bool take_identity(const X509 *cert, struct tls_identity *ret_identity)
{
    struct tls_identity identity = {0};
    struct tm tm;

    if (!take_name(cert, NID_organizationName, identity.cluster) ||
        !take_name(cert, NID_commonName, identity.node))
        return false;
    if (ASN1_TIME_to_tm(X509_get0_notAfter(cert), &tm) != 1)
        return false;
    identity.expires_wall_s = timegm(&tm);
    identity.kind = take_kind(cert, &identity);
    *ret_identity = identity;
    return true;
}

bool tls_identity_of(SSL *ssl, struct tls_identity *ret_identity)
{
    X509 *cert = SSL_get1_peer_certificate(ssl);
    bool is_known = cert && take_identity(cert, ret_identity);

    if (is_known)
        ret_identity->is_revoked = revoked_has(SSL_get_SSL_CTX(ssl), cert);
    X509_free(cert);
    return is_known;
}

bool tls_identity_of_cert(const X509 *cert, struct tls_identity *ret_identity)
{
    return take_identity(cert, ret_identity);
}

bool tls_is_revoked(const SSL_CTX *context, const SSL *ssl)
{
    X509 *cert = context && ssl ? SSL_get1_peer_certificate(ssl) : NULL;
    bool is_revoked = cert && revoked_has(context, cert);

    X509_free(cert);
    return is_revoked;
}

enum gavel_status tls_identity_of_file(const char *path, struct tls_identity *ret_identity,
                                       struct gavel_error *error)
{
    enum gavel_status status = check_readable("certificate", path, error);
    X509 *cert = NULL;
    FILE *file;

    if (status != GAVEL_OK)
        return status;
    file = fopen(path, "re");
    if (file) {
        cert = PEM_read_X509(file, NULL, no_password, NULL);
        (void)fclose(file); /* it was only read */
    }
    if (!cert)
        return fail(error, "certificate", path, "it must be in PEM");
    if (!take_identity(cert, ret_identity))
        status = error_set(
            error, GAVEL_ERR_INVALID,
            "the certificate %s does not say who it is for; it needs O = cluster and CN = node, once each, as \"gavel cert issue\" writes them",
            path);
    X509_free(cert);
    return status;
}
