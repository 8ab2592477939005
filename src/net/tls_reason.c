/* SPDX-License-Identifier: Apache-2.0 */

/*
 * OpenSSL's errors in words. An alert is what the other side says about us; the
 * result of the verification is what we say about the other side.
 */

#include "net/tls.h"

#include <openssl/err.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <string.h>

struct words {
    int code;
    const char *text;
};

/* The other side does not want to go on, and says so. */
static const struct words alerts[] = {
    {SSL_AD_BAD_CERTIFICATE, "the other side says that our certificate is bad"},
    {SSL_AD_UNSUPPORTED_CERTIFICATE, "the other side cannot use our kind of certificate"},
    {SSL_AD_CERTIFICATE_REVOKED, "the other side says that our certificate was revoked"},
    {SSL_AD_CERTIFICATE_EXPIRED, "the other side says that our certificate has expired"},
    {SSL_AD_CERTIFICATE_UNKNOWN, "the other side does not accept our certificate"},
    {SSL_AD_UNKNOWN_CA, "the other side does not know the CA of our certificate"},
    {SSL_AD_ACCESS_DENIED, "the other side does not let us in"},
    {SSL_AD_DECRYPT_ERROR, "the other side does not accept our signature"},
    {SSL_AD_PROTOCOL_VERSION, "the other side speaks another version of TLS"},
    {SSL_AD_HANDSHAKE_FAILURE, "the other side found no common way to speak TLS"},
    {SSL_AD_CERTIFICATE_REQUIRED, "the other side requires a certificate and got none"},
    {SSL_AD_INTERNAL_ERROR, "the other side failed by itself"},
};

/* What we found ourselves. */
static const struct words causes[] = {
    {SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE, "the other side presented no certificate"},
    {SSL_R_WRONG_VERSION_NUMBER, "the other side does not speak TLS; give it certificates too"},
    {SSL_R_HTTP_REQUEST, "the other side speaks HTTP; this is the port for peers"},
    {SSL_R_HTTPS_PROXY_REQUEST, "the other side speaks HTTP; this is the port for peers"},
    {SSL_R_PACKET_LENGTH_TOO_LONG, "the other side does not speak TLS; give it certificates too"},
    {SSL_R_RECORD_LENGTH_MISMATCH, "the other side does not speak TLS; give it certificates too"},
    {SSL_R_UNSUPPORTED_PROTOCOL, "the other side speaks an older version of TLS"},
    {SSL_R_UNEXPECTED_EOF_WHILE_READING, "the other side closed the connection"},
    {SSL_R_NO_SHARED_CIPHER, "there is no cipher that both sides know"},
};

static const struct words verdicts[] = {
    {X509_V_ERR_CERT_HAS_EXPIRED, "the certificate of the other side has expired"},
    {X509_V_ERR_CERT_NOT_YET_VALID, "the certificate of the other side is not valid yet; compare the clocks"},
    {X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, "the certificate of the other side was signed by no CA"},
    {X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, "the certificate of the other side was signed by an unknown CA"},
    {X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
     "the certificate of the other side was signed by an unknown CA"},
    {X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, "the certificate of the other side was signed by an unknown CA"},
    {X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE,
     "the certificate of the other side was signed by an unknown CA"},
    {X509_V_ERR_CERT_SIGNATURE_FAILURE, "the certificate of the other side was signed by an unknown CA"},
    {X509_V_ERR_CERT_REVOKED, "the certificate of the other side was revoked"},
    {X509_V_ERR_INVALID_PURPOSE, "the certificate of the other side is not made for this use"},
};

static const char *find(const struct words *words, size_t count, int code)
{
    for (size_t i = 0; i < count; i++)
        if (words[i].code == code)
            return words[i].text;
    return NULL;
}

#define FIND(words, code) find(words, sizeof(words) / sizeof(words)[0], code)

static const char *verdict_of(SSL *ssl)
{
    long result = ssl ? SSL_get_verify_result(ssl) : X509_V_OK;
    const char *text;

    if (result == X509_V_OK)
        return NULL;
    text = FIND(verdicts, (int)result);
    return text ? text : X509_verify_cert_error_string(result);
}

static const char *cause_of(unsigned long error)
{
    int reason = ERR_GET_REASON(error);

    if (ERR_GET_LIB(error) != ERR_LIB_SSL)
        return NULL;
    if (reason >= SSL_AD_REASON_OFFSET)
        return FIND(alerts, reason - SSL_AD_REASON_OFFSET);
    return FIND(causes, reason);
}

void tls_reason_of(SSL *ssl, const unsigned long *errors, size_t count, char *buffer, size_t size)
{
    const char *text = verdict_of(ssl);

    for (size_t i = 0; i < count && !text; i++)
        text = cause_of(errors[i]);
    if (!text && count > 0)
        text = ERR_reason_error_string(errors[count - 1]);
    (void)snprintf(buffer, size, "%s", text ? text : "the other side closed the connection");
}

bool tls_is_plain(const unsigned long *errors, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int reason = ERR_GET_REASON(errors[i]);

        if (ERR_GET_LIB(errors[i]) == ERR_LIB_SSL &&
            (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_PACKET_LENGTH_TOO_LONG ||
             reason == SSL_R_RECORD_LENGTH_MISMATCH))
            return true;
    }
    return false;
}

#define ERRORS_MAX 8

void tls_reason(SSL *ssl, char *buffer, size_t size)
{
    unsigned long errors[ERRORS_MAX];
    size_t count = 0;

    while (count < ERRORS_MAX && (errors[count] = ERR_get_error()) != 0)
        count++;
    ERR_clear_error();
    tls_reason_of(ssl, errors, count, buffer, size);
}
