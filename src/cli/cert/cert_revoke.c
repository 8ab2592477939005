/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/cert/cert_revoke.h"

#include "base/error.h"
#include "cli/cert/cert_make.h"
#include "cli/json_out.h"
#include "net/tls.h"
#include "os/clock.h"

#include <errno.h>
#include <openssl/evp.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

#define DIGEST_TEXT (2 * EVP_MAX_MD_SIZE + 1)

const char *cert_kind(const X509 *certificate)
{
    struct tls_identity identity;

    if (!tls_identity_of_cert(certificate, &identity) || identity.kind == TLS_KIND_UNKNOWN)
        return "";
    return identity.kind == TLS_KIND_NODE ? "node" : "client";
}

static void write_digest(const X509 *certificate, char ret_text[DIGEST_TEXT])
{
    unsigned char bytes[EVP_MAX_MD_SIZE];
    unsigned length = 0;

    ret_text[0] = '\0';
    if (X509_digest(certificate, EVP_sha256(), bytes, &length) != 1)
        return;
    for (unsigned i = 0; i < length; i++)
        (void)sprintf(ret_text + 2 * (size_t)i, "%02x", bytes[i]);
}

/* Whether a line of the list begins with it. A list that is not there has no lines. */
static bool is_listed(const char *list, const char *digest)
{
    FILE *file = fopen(list, "re");
    char line[512];
    bool is_found = false;

    while (file && !is_found && fgets(line, sizeof line, file))
        is_found = strncasecmp(line, digest, strlen(digest)) == 0;
    if (file)
        (void)fclose(file); /* it was only read */
    return is_found;
}

/* An editor may have left the last line without its end; what is added would become part of it. */
static bool lacks_end(const char *list)
{
    FILE *file = fopen(list, "re");
    bool is_lacking = file && fseek(file, -1, SEEK_END) == 0 && fgetc(file) != '\n';

    if (file)
        (void)fclose(file); /* it was only read */
    return is_lacking;
}

/* One line, written at once, so that a node that reads it meanwhile finds all of it or nothing. */
static enum gavel_status add_line(const char *list, const X509 *certificate, const char *digest,
                                  struct gavel_error *error)
{
    char name[CERT_NAME_MAX + 1], day[25], line[512];
    const char *end = lacks_end(list) ? "\n" : "";
    FILE *file = fopen(list, "ae");
    bool is_written;

    wall_time_format(clock_wall_ms(), day);
    (void)snprintf(line, sizeof line, "%s%s  %s, revoked %s\n", end, digest,
                   cert_subject(certificate, NID_commonName, name), day);
    is_written = file && setvbuf(file, NULL, _IOFBF, 2 * sizeof line) == 0 && fputs(line, file) >= 0 &&
                 fflush(file) == 0;
    if (file)
        is_written = fclose(file) == 0 && is_written;
    return is_written ? GAVEL_OK
                      : error_set(error, GAVEL_ERR_IO, "cannot write %s: %s", list, strerror(errno));
}

int cert_revoke(const struct cli *cli, const char *path)
{
    const char *list = cli_flag_text(cli, "list") ? cli_flag_text(cli, "list") : "revoked";
    char digest[DIGEST_TEXT], name[CERT_NAME_MAX + 1];
    struct gavel_error error = {0};
    X509 *certificate = NULL;
    bool is_new;

    if (cert_read(path, &certificate, &error) != GAVEL_OK)
        return cli_fail(cli, error.status, "%s", error.message);
    if (X509_check_ca(certificate) == 1) {
        X509_free(certificate);
        return cli_fail(
            cli, GAVEL_ERR_INVALID,
            "%s is a CA, and a CA cannot be revoked; to replace it, create another with `gavel cert init`, issue every certificate again, and remove the old one from tls.ca of the nodes and ca of the clients",
            path);
    }
    write_digest(certificate, digest);
    cert_subject(certificate, NID_commonName, name);
    is_new = !is_listed(list, digest);
    if (is_new)
        (void)add_line(list, certificate, digest, &error); /* told below */
    X509_free(certificate);
    if (error.status != GAVEL_OK)
        return cli_fail(cli, error.status, "%s", error.message);
    if (cli->config.json)
        json_print_line(json_pack("{s:s, s:s, s:b}", "list", list, "sha256", digest, "is_new", is_new));
    else
        printf("%s: the certificate of %s is %s\n"
               "\n"
               "Copy the list to every node, where tls.revoked names it, and send SIGHUP to each gaveld.\n",
               list, name, is_new ? "revoked" : "on the list already");
    return cli_finish(cli, CLI_EXIT_OK);
}
