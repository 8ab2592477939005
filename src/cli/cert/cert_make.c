/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/cert/cert_make.h"

#include "base/error.h"
#include "net/tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SERIAL_BYTES 16
#define BACK_S 300 /* a clock that is a little behind must not refuse a new certificate */

/* What OpenSSL has to say, in one place. */
static enum gavel_status refused(struct gavel_error *error, const char *what)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());

    ERR_clear_error();
    return error_set(error, GAVEL_ERR_IO, "cannot make %s: OpenSSL says %s", what,
                     reason ? reason : "nothing");
}

void cert_pair_done(struct cert_pair *pair)
{
    X509_free(pair->certificate);
    EVP_PKEY_free(pair->key);
    *pair = (struct cert_pair){0};
}

static bool set_name(X509_NAME *name, const char *cluster, const char *common)
{
    return X509_NAME_add_entry_by_NID(name, NID_organizationName, MBSTRING_UTF8,
                                      (const unsigned char *)cluster, -1, -1, 0) == 1 &&
           X509_NAME_add_entry_by_NID(name, NID_commonName, MBSTRING_UTF8, (const unsigned char *)common, -1,
                                      -1, 0) == 1;
}

/* Random, so that two CAs of one name never give out the same number. */
static bool set_serial(X509 *certificate)
{
    unsigned char bytes[SERIAL_BYTES];
    BIGNUM *number;
    bool is_set;

    if (RAND_bytes(bytes, sizeof bytes) != 1)
        return false;
    bytes[0] = (unsigned char)((bytes[0] & 0x7f) | 0x40); /* positive, and of full length */
    number = BN_bin2bn(bytes, sizeof bytes, NULL);
    is_set = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate));
    BN_free(number);
    return is_set;
}

static bool set_times(X509 *certificate, const X509 *ca, gavel_ms valid_ms)
{
    time_t now = time(NULL);
    const ASN1_TIME *last = ca ? X509_get0_notAfter(ca) : NULL;

    if (!ASN1_TIME_set(X509_getm_notBefore(certificate), now - BACK_S) ||
        !ASN1_TIME_set(X509_getm_notAfter(certificate), now + (time_t)(valid_ms / 1000)))
        return false;
    if (last && ASN1_TIME_compare(X509_get0_notAfter(certificate), last) > 0)
        return X509_set1_notAfter(certificate, last) == 1;
    return true;
}

static bool add_extension(X509 *certificate, X509 *issuer, int nid, const char *value)
{
    X509_EXTENSION *extension;
    X509V3_CTX context;
    bool is_added;

    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    X509V3_set_ctx_nodb(&context);
    extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    is_added = extension && X509_add_ext(certificate, extension, -1) == 1;
    X509_EXTENSION_free(extension);
    return is_added;
}

/* A certificate with a key, a name and its times; extensions and signature are still to come. */
static bool begin(const struct cert_pair *ca, const char *cluster, const char *common, gavel_ms valid_ms,
                  struct cert_pair *ret_pair)
{
    struct cert_pair pair = {.certificate = X509_new(), .key = EVP_EC_gen("P-256")};
    X509 *certificate = pair.certificate;
    const X509_NAME *issuer;

    if (certificate && pair.key && X509_set_version(certificate, X509_VERSION_3) == 1 &&
        set_serial(certificate) && set_name(X509_get_subject_name(certificate), cluster, common) &&
        set_times(certificate, ca ? ca->certificate : NULL, valid_ms) &&
        X509_set_pubkey(certificate, pair.key) == 1) {
        issuer = X509_get_subject_name(ca ? ca->certificate : certificate);
        if (X509_set_issuer_name(certificate, issuer) == 1) {
            *ret_pair = pair;
            return true;
        }
    }
    cert_pair_done(&pair);
    return false;
}

enum gavel_status cert_make_ca(const char *cluster, gavel_ms valid_ms, struct cert_pair *ret_pair,
                               struct gavel_error *error)
{
    struct cert_pair pair = {0};
    char common[CERT_NAME_MAX + 8];
    X509 *own;

    (void)snprintf(common, sizeof common, "%.*s CA", CERT_NAME_MAX - 3, cluster);
    if (!begin(NULL, cluster, common, valid_ms, &pair))
        return refused(error, "the certificate of the CA");
    own = pair.certificate;
    if (!add_extension(own, own, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
        !add_extension(own, own, NID_key_usage, "critical,keyCertSign,cRLSign") ||
        !add_extension(own, own, NID_subject_key_identifier, "hash") ||
        !add_extension(own, own, NID_authority_key_identifier, "keyid:always") ||
        !X509_sign(own, pair.key, EVP_sha256())) {
        cert_pair_done(&pair);
        return refused(error, "the certificate of the CA");
    }
    *ret_pair = pair;
    return GAVEL_OK;
}

/* Letters, digits, dots and dashes, so that nothing of it is taken for syntax; '_' because nodes may have
 * it. */
static bool is_host_name(const char *host)
{
    size_t length = strlen(host);

    return length > 0 && length <= 253 && host[0] != '-' && host[0] != '.' &&
           strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_*") == length;
}

/* One name of the certificate: an address if it is one. */
static enum gavel_status add_host(GENERAL_NAMES *names, const char *host, struct gavel_error *error)
{
    ASN1_OCTET_STRING *address = a2i_IPADDRESS(host);
    ASN1_IA5STRING *text = address ? NULL : ASN1_IA5STRING_new();
    GENERAL_NAME *name = GENERAL_NAME_new();
    enum gavel_status status = GAVEL_OK;

    if (!address)
        ERR_clear_error(); /* a name, then */
    if (!address && !is_host_name(host))
        status = error_set(error, GAVEL_ERR_INVALID, "\"%.60s\" is neither a host name nor an address", host);
    else if (!name || (!address && (!text || !ASN1_STRING_set(text, host, -1))) ||
             !sk_GENERAL_NAME_push(names, name))
        status = error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory");
    if (status != GAVEL_OK) {
        ASN1_OCTET_STRING_free(address);
        ASN1_IA5STRING_free(text);
        GENERAL_NAME_free(name);
    } else if (address) {
        GENERAL_NAME_set0_value(name, GEN_IPADD, address);
    } else {
        GENERAL_NAME_set0_value(name, GEN_DNS, text);
    }
    return status;
}

/* What it is: a node or a client, of this cluster and of this name. */
static enum gavel_status add_uri(GENERAL_NAMES *names, enum tls_kind kind, const char *cluster,
                                 const char *name, struct gavel_error *error)
{
    char uri[TLS_URI_MAX];
    ASN1_IA5STRING *text = ASN1_IA5STRING_new();
    GENERAL_NAME *entry = GENERAL_NAME_new();

    if (!text || !entry || !ASN1_STRING_set(text, tls_uri_write(kind, cluster, name, uri), -1) ||
        !sk_GENERAL_NAME_push(names, entry)) {
        ASN1_IA5STRING_free(text);
        GENERAL_NAME_free(entry);
        return error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory");
    }
    GENERAL_NAME_set0_value(entry, GEN_URI, text);
    return GAVEL_OK;
}

/* A certificate that is to be made. */
struct wanted {
    enum tls_kind kind;
    const char *name;
    const char *const *hosts; /* of a node */
    size_t host_count;
    gavel_ms valid_ms;
};

/* A node's own name comes first; whoever resolves it reaches the node. */
static enum gavel_status add_names(X509 *certificate, const char *cluster, const struct wanted *wanted,
                                   struct gavel_error *error)
{
    GENERAL_NAMES *names = sk_GENERAL_NAME_new_null();
    enum gavel_status status = GAVEL_OK;

    if (!names)
        return error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory");
    if (wanted->kind == TLS_KIND_NODE)
        status = add_host(names, wanted->name, error);
    for (size_t i = 0; i < wanted->host_count && status == GAVEL_OK; i++)
        status = add_host(names, wanted->hosts[i], error);
    if (status == GAVEL_OK)
        status = add_uri(names, wanted->kind, cluster, wanted->name, error);
    if (status == GAVEL_OK &&
        X509_add1_ext_i2d(certificate, NID_subject_alt_name, names, 0, X509V3_ADD_DEFAULT) != 1)
        status = refused(error, "the names of the certificate");
    GENERAL_NAMES_free(names);
    return status;
}

static enum gavel_status check_ca(const struct cert_pair *ca, char ret_cluster[static CERT_NAME_MAX + 1],
                                  struct gavel_error *error)
{
    cert_subject(ca->certificate, NID_organizationName, ret_cluster);
    if (!*ret_cluster)
        return error_set(
            error, GAVEL_ERR_INVALID,
            "the certificate of the CA names no cluster (O); make one with `gavel cert init CLUSTER`");
    if (X509_check_private_key(ca->certificate, ca->key) != 1) {
        ERR_clear_error();
        return error_set(error, GAVEL_ERR_INVALID, "the key of the CA does not belong to its certificate");
    }
    if (X509_cmp_current_time(X509_get0_notAfter(ca->certificate)) <= 0)
        return error_set(
            error, GAVEL_ERR_INVALID,
            "the certificate of the CA has expired; `gavel cert init --force` makes another, and then all nodes need new ones");
    return GAVEL_OK;
}

static enum gavel_status issue(const struct cert_pair *ca, const struct wanted *wanted,
                               struct cert_pair *ret_pair, struct gavel_error *error)
{
    const char *use = wanted->kind == TLS_KIND_NODE ? "serverAuth,clientAuth" : "clientAuth";
    char cluster[CERT_NAME_MAX + 1];
    struct cert_pair pair = {0};
    enum gavel_status status = check_ca(ca, cluster, error);

    if (status != GAVEL_OK)
        return status;
    if (!begin(ca, cluster, wanted->name, wanted->valid_ms, &pair))
        return refused(error, "the certificate");
    status = add_names(pair.certificate, cluster, wanted, error);
    if (status == GAVEL_OK &&
        (!add_extension(pair.certificate, ca->certificate, NID_basic_constraints, "critical,CA:FALSE") ||
         !add_extension(pair.certificate, ca->certificate, NID_key_usage, "critical,digitalSignature") ||
         !add_extension(pair.certificate, ca->certificate, NID_ext_key_usage, use) ||
         !add_extension(pair.certificate, ca->certificate, NID_subject_key_identifier, "hash") ||
         !add_extension(pair.certificate, ca->certificate, NID_authority_key_identifier, "keyid:always") ||
         !X509_sign(pair.certificate, ca->key, EVP_sha256())))
        status = refused(error, "the certificate");
    if (status != GAVEL_OK)
        cert_pair_done(&pair);
    else
        *ret_pair = pair;
    return status;
}

enum gavel_status cert_make_node(const struct cert_pair *ca, const char *node, const char *const *hosts,
                                 size_t host_count, gavel_ms valid_ms, struct cert_pair *ret_pair,
                                 struct gavel_error *error)
{
    return issue(ca,
                 &(struct wanted){.kind = TLS_KIND_NODE,
                                  .name = node,
                                  .hosts = hosts,
                                  .host_count = host_count,
                                  .valid_ms = valid_ms},
                 ret_pair, error);
}

enum gavel_status cert_make_client(const struct cert_pair *ca, const char *name, gavel_ms valid_ms,
                                   struct cert_pair *ret_pair, struct gavel_error *error)
{
    return issue(ca, &(struct wanted){.kind = TLS_KIND_CLIENT, .name = name, .valid_ms = valid_ms}, ret_pair,
                 error);
}

static enum gavel_status open_pem(const char *path, FILE **ret_file, struct gavel_error *error)
{
    FILE *file = fopen(path, "re");

    if (!file)
        return error_set(error, GAVEL_ERR_IO, "cannot read %s: %s", path, strerror(errno));
    *ret_file = file;
    return GAVEL_OK;
}

/* Keys with a passphrase are refused rather than asked for. */
static int no_passphrase(char *buffer, int size, int is_writing, void *user)
{
    (void)buffer;
    (void)size;
    (void)is_writing;
    (void)user;
    return -1;
}

enum gavel_status cert_read(const char *path, X509 **ret_certificate, struct gavel_error *error)
{
    FILE *file = NULL;
    enum gavel_status status = open_pem(path, &file, error);
    X509 *certificate;

    if (status != GAVEL_OK)
        return status;
    certificate = PEM_read_X509(file, NULL, no_passphrase, NULL);
    (void)fclose(file); /* it was only read */
    ERR_clear_error();
    if (!certificate)
        return error_set(error, GAVEL_ERR_INVALID, "%s has no certificate in PEM format", path);
    *ret_certificate = certificate;
    return GAVEL_OK;
}

enum gavel_status cert_read_key(const char *path, EVP_PKEY **ret_key, struct gavel_error *error)
{
    FILE *file = NULL;
    enum gavel_status status = open_pem(path, &file, error);
    EVP_PKEY *key;

    if (status != GAVEL_OK)
        return status;
    key = PEM_read_PrivateKey(file, NULL, no_passphrase, NULL);
    (void)fclose(file); /* it was only read */
    ERR_clear_error();
    if (!key)
        return error_set(error, GAVEL_ERR_INVALID, "%s has no key in PEM format, or one with a passphrase",
                         path);
    *ret_key = key;
    return GAVEL_OK;
}

/* What was written into memory, as a string. */
static char *take(BIO *memory, bool is_written)
{
    char *bytes = NULL, *text = NULL;
    long length = memory && is_written ? BIO_get_mem_data(memory, &bytes) : 0;

    if (length > 0)
        text = malloc((size_t)length + 1);
    if (text) { /* not strndup: what OpenSSL holds does not end with a zero */
        memcpy(text, bytes, (size_t)length);
        text[length] = '\0';
    }
    BIO_free(memory);
    return text;
}

char *cert_pem(X509 *certificate)
{
    BIO *memory = BIO_new(BIO_s_mem());

    return take(memory, memory && PEM_write_bio_X509(memory, certificate) == 1);
}

char *cert_key_pem(EVP_PKEY *key)
{
    BIO *memory = BIO_new(BIO_s_secmem());

    return take(memory, memory && PEM_write_bio_PrivateKey(memory, key, NULL, NULL, 0, NULL, NULL) == 1);
}

static const char *entry_of(const X509_NAME *name, int nid, char *buffer)
{
    if (X509_NAME_get_text_by_NID(name, nid, buffer, CERT_NAME_MAX + 1) < 0)
        buffer[0] = '\0';
    return buffer;
}

const char *cert_subject(const X509 *certificate, int nid, char buffer[static CERT_NAME_MAX + 1])
{
    return entry_of(X509_get_subject_name(certificate), nid, buffer);
}

const char *cert_issuer(const X509 *certificate, int nid, char buffer[static CERT_NAME_MAX + 1])
{
    return entry_of(X509_get_issuer_name(certificate), nid, buffer);
}

int64_t cert_wall_ms(const ASN1_TIME *time)
{
    struct tm parts = {0};

    return ASN1_TIME_to_tm(time, &parts) == 1 ? (int64_t)timegm(&parts) * 1000 : 0;
}
