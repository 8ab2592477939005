/* SPDX-License-Identifier: Apache-2.0 */

/* gavel cert: a CA and certificates for the nodes of a cluster and for its clients. */
#include "base/error.h"
#include "cli/cert/cert_make.h"
#include "cli/cert/cert_revoke.h"
#include "cli/cli.h"
#include "cli/json_out.h"
#include "cli/output.h"
#include "os/clock.h"
#include "wire/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define DAY_MS (INT64_C(24) * 3600 * 1000)
#define CA_DAYS 3650
#define DAYS_MAX 36500
#define NODE_DAYS 365
#define SECRET_BYTES 32

/* A file to write. */
struct output_file {
    char path[PATH_MAX];
    mode_t mode;
    const char *text;
};

static enum gavel_status path_in(const char *directory, const char *name, const char *ending,
                                 char ret_path[PATH_MAX], struct gavel_error *error)
{
    int length = snprintf(ret_path, PATH_MAX, "%s/%s%s", directory, name, ending);

    if (length < 0 || length >= PATH_MAX - 16)
        return error_set(error, GAVEL_ERR_INVALID, "the path of the directory is too long");
    return GAVEL_OK;
}

static enum gavel_status make_directory(const char *directory, struct gavel_error *error)
{
    if (mkdir(directory, 0700) && errno != EEXIST)
        return error_set(error, GAVEL_ERR_IO, "cannot create the directory %s: %s", directory,
                         strerror(errno));
    return GAVEL_OK;
}

/* Before anything is written, so that nothing is left half done. */
static enum gavel_status refuse_existing(const struct output_file *files, size_t count,
                                         struct gavel_error *error)
{
    for (size_t i = 0; i < count; i++)
        if (faccessat(AT_FDCWD, files[i].path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            return error_set(
                error, GAVEL_ERR_STATE,
                "%s exists already and was kept; --force overwrites it, --out names another directory",
                files[i].path);
    return GAVEL_OK;
}

/* Whole or not at all, and readable by nobody else at any instant. */
static enum gavel_status write_file(const struct output_file *file, bool is_forced, struct gavel_error *error)
{
    char part[PATH_MAX + 8];
    size_t length = strlen(file->text);
    enum gavel_status status;
    bool is_written;
    int fd;

    (void)snprintf(part, sizeof part, "%s.part", file->path);
    (void)unlink(part); /* of a run that was cut short */
    fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, file->mode);
    is_written = fd >= 0 && write(fd, file->text, length) == (ssize_t)length && fchmod(fd, file->mode) == 0 &&
                 fsync(fd) == 0;
    if (fd >= 0)
        is_written = close(fd) == 0 && is_written;
    if (is_written && renameat2(AT_FDCWD, part, AT_FDCWD, file->path, is_forced ? 0 : RENAME_NOREPLACE) == 0)
        return GAVEL_OK;
    status = error_set(error, GAVEL_ERR_IO, "cannot write %s: %s", file->path, strerror(errno));
    (void)unlink(part); /* it may not even be there */
    return status;
}

static enum gavel_status write_files(const struct cli *cli, const struct output_file *files, size_t count,
                                     struct gavel_error *error)
{
    bool is_forced = cli_flag_is_set(cli, "force");
    enum gavel_status status = is_forced ? GAVEL_OK : refuse_existing(files, count, error);

    for (size_t i = 0; i < count && status == GAVEL_OK; i++)
        status = files[i].text ? write_file(&files[i], is_forced, error)
                               : error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory");
    return status;
}

/* 64 hexadecimal digits and a line end, from the kernel. */
static enum gavel_status make_secret(char ret_text[2 * SECRET_BYTES + 2], struct gavel_error *error)
{
    unsigned char bytes[SECRET_BYTES];

    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return error_set(error, GAVEL_ERR_IO, "the kernel gives no randomness: %s", strerror(errno));
    for (size_t i = 0; i < SECRET_BYTES; i++)
        (void)sprintf(ret_text + 2 * i, "%02x", bytes[i]);
    strcpy(ret_text + 2 * SECRET_BYTES, "\n");
    return GAVEL_OK;
}

static enum gavel_status check_name(const char *what, const char *name, struct gavel_error *error)
{
    if (peer_name_is_good(name))
        return GAVEL_OK;
    return error_set(error, GAVEL_ERR_INVALID,
                     "\"%.70s\" cannot be the name of a %s: up to %d letters, digits, '.', '-' and '_'", name,
                     what, PEER_NAME_MAX);
}

static void print_files(const struct cli *cli, const struct output_file *files, size_t count)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++) {
        if (!cli->config.json)
            printf("%s\n", files[i].path);
        json_array_append_new(list, json_string(files[i].path));
    }
    if (cli->config.json)
        json_print_line(json_pack("{s:o}", "files", list));
    else
        json_decref(list);
}

static int init(const struct cli *cli, const char *cluster)
{
    const char *directory = cli_flag_text(cli, "out") ? cli_flag_text(cli, "out") : ".";
    const gavel_ms most_ms = (gavel_ms)DAYS_MAX * DAY_MS;
    gavel_ms valid_ms = cli_flag_number(cli, "days", CA_DAYS) * DAY_MS;
    struct output_file files[3] = {{.mode = 0644}, {.mode = 0600}, {.mode = 0600}};
    char secret[2 * SECRET_BYTES + 2] = "";
    char *certificate = NULL, *key = NULL;
    struct cert_pair ca = {0};
    struct gavel_error error = {0};
    int code;

    if (cli_flag_text(cli, "days") && cli_flag_text(cli, "valid-for"))
        return cli_fail(cli, GAVEL_ERR_INVALID, "--days is an older name of --valid-for: give one of them");
    valid_ms = cli_flag_duration(cli, "valid-for", valid_ms);
    if (valid_ms < 1000 || valid_ms > most_ms)
        return cli_fail(cli, GAVEL_ERR_INVALID, "--valid-for must be from a second to %d days", DAYS_MAX);
    if (check_name("cluster", cluster, &error) != GAVEL_OK || make_directory(directory, &error) != GAVEL_OK ||
        path_in(directory, "ca", ".crt", files[0].path, &error) != GAVEL_OK ||
        path_in(directory, "ca", ".key", files[1].path, &error) != GAVEL_OK ||
        path_in(directory, "cluster", ".secret", files[2].path, &error) != GAVEL_OK ||
        cert_make_ca(cluster, valid_ms, &ca, &error) != GAVEL_OK || make_secret(secret, &error) != GAVEL_OK)
        goto out;
    files[0].text = certificate = cert_pem(ca.certificate);
    files[1].text = key = cert_key_pem(ca.key);
    files[2].text = secret;
    (void)write_files(cli, files, 3, &error); /* told below */
out:
    if (error.status != GAVEL_OK) {
        code = cli_fail(cli, error.status, "%s", error.message);
    } else {
        print_files(cli, files, 3);
        if (!cli->config.json)
            printf(
                "\n"
                "Keep ca.key away from the nodes. Next, for each node: gavel cert issue NODE --ca %s --host HOST\n",
                directory);
        code = cli_finish(cli, CLI_EXIT_OK);
    }
    if (key)
        explicit_bzero(key, strlen(key));
    explicit_bzero(secret, sizeof secret);
    free(key);
    free(certificate);
    cert_pair_done(&ca);
    return code;
}

/* Only the secret, for nodes that talk on loopback without TLS. */
static int secret(const struct cli *cli)
{
    const char *directory = cli_flag_text(cli, "out") ? cli_flag_text(cli, "out") : ".";
    struct output_file file = {.mode = 0600};
    char text[2 * SECRET_BYTES + 2] = "";
    struct gavel_error error = {0};

    if (make_directory(directory, &error) == GAVEL_OK &&
        path_in(directory, "cluster", ".secret", file.path, &error) == GAVEL_OK &&
        make_secret(text, &error) == GAVEL_OK) {
        file.text = text;
        (void)write_files(cli, &file, 1, &error); /* told below */
    }
    explicit_bzero(text, sizeof text);
    if (error.status != GAVEL_OK)
        return cli_fail(cli, error.status, "%s", error.message);
    print_files(cli, &file, 1);
    if (!cli->config.json)
        printf("\nAdd to the gaveld.yaml of every node: secret: %s\n", file.path);
    return cli_finish(cli, CLI_EXIT_OK);
}

/* Splits "a,b" in place. */
static size_t split_hosts(char *text, const char *hosts[CERT_HOSTS_MAX])
{
    size_t count = 0;
    char *rest = NULL;

    for (char *host = strtok_r(text, ", ", &rest); host && count < CERT_HOSTS_MAX;
         host = strtok_r(NULL, ", ", &rest))
        hosts[count++] = host;
    return count;
}

static void say_next(const struct cli *cli, const struct cert_pair *pair, const char *node, const char *ca)
{
    char ends[25], cluster[CERT_NAME_MAX + 1];

    if (cli->config.json)
        return;
    wall_time_format(cert_wall_ms(X509_get0_notAfter(pair->certificate)), ends);
    printf("\n"
           "Valid until %s. Copy both to %s with ca.crt and cluster.secret%s%s, and add to its gaveld.yaml:\n"
           "\n"
           "  cluster: %s\n"
           "  node: %s\n"
           "  secret: cluster.secret\n"
           "  tls: {ca: ca.crt, cert: %s.crt, key: %s.key}\n",
           ends, node, strcmp(ca, ".") ? " of " : "", strcmp(ca, ".") ? ca : "",
           cert_subject(pair->certificate, NID_organizationName, cluster), node, node, node);
}

/* A client needs no secret, and the nodes need not know of it. */
static void say_next_client(const struct cli *cli, const struct cert_pair *pair, const char *name)
{
    char ends[25];

    if (cli->config.json)
        return;
    wall_time_format(cert_wall_ms(X509_get0_notAfter(pair->certificate)), ends);
    printf(
        "\n"
        "Valid until %s. Copy both with ca.crt to where the program %s runs, and give it this store, with the\n"
        "addresses that the nodes have as \"clients\":\n"
        "\n"
        "  gavel://HOST:PORT,HOST:PORT,HOST:PORT?ca=ca.crt&cert=%s.crt&key=%s.key\n",
        ends, name, name, name);
}

static int issue(const struct cli *cli, const char *node)
{
    bool is_client = cli_flag_is_set(cli, "client");
    const char *directory = cli_flag_text(cli, "out") ? cli_flag_text(cli, "out") : ".";
    const char *ca_directory = cli_flag_text(cli, "ca") ? cli_flag_text(cli, "ca") : ".";
    gavel_ms valid_ms = cli_flag_duration(cli, "valid-for", NODE_DAYS * DAY_MS);
    struct output_file files[2] = {{.mode = 0644}, {.mode = 0600}};
    char *names = strdup(cli_flag_text(cli, "host") ? cli_flag_text(cli, "host") : "localhost,127.0.0.1,::1");
    char certificate_path[PATH_MAX], key_path[PATH_MAX], *certificate = NULL, *key = NULL;
    const char *hosts[CERT_HOSTS_MAX];
    struct cert_pair ca = {0}, pair = {0};
    struct gavel_error error = {0};
    int code;

    if (!names)
        return cli_fail(cli, GAVEL_ERR_NO_MEMORY, "out of memory");
    if (valid_ms < 1000) {
        free(names);
        return cli_fail(cli, GAVEL_ERR_INVALID, "--valid-for must be at least a second");
    }
    if (is_client && cli_flag_text(cli, "host")) {
        free(names);
        return cli_fail(cli, GAVEL_ERR_INVALID, "--host is for nodes; a client has no address");
    }
    if (check_name(is_client ? "client" : "node", node, &error) != GAVEL_OK ||
        path_in(ca_directory, "ca", ".crt", certificate_path, &error) != GAVEL_OK ||
        path_in(ca_directory, "ca", ".key", key_path, &error) != GAVEL_OK ||
        path_in(directory, node, ".crt", files[0].path, &error) != GAVEL_OK ||
        path_in(directory, node, ".key", files[1].path, &error) != GAVEL_OK ||
        cert_read(certificate_path, &ca.certificate, &error) != GAVEL_OK ||
        cert_read_key(key_path, &ca.key, &error) != GAVEL_OK ||
        make_directory(directory, &error) != GAVEL_OK ||
        (is_client ? cert_make_client(&ca, node, valid_ms, &pair, &error)
                   : cert_make_node(&ca, node, hosts, split_hosts(names, hosts), valid_ms, &pair, &error)))
        goto out;
    files[0].text = certificate = cert_pem(pair.certificate);
    files[1].text = key = cert_key_pem(pair.key);
    (void)write_files(cli, files, 2, &error); /* told below */
out:
    if (error.status == GAVEL_ERR_IO && !ca.certificate) {
        code = cli_fail(cli, error.status,
                        "%s; `gavel cert init CLUSTER` creates a CA, --ca says where it is", error.message);
    } else if (error.status != GAVEL_OK) {
        code = cli_fail(cli, error.status, "%s", error.message);
    } else {
        print_files(cli, files, 2);
        if (is_client)
            say_next_client(cli, &pair, node);
        else
            say_next(cli, &pair, node, ca_directory);
        code = cli_finish(cli, CLI_EXIT_OK);
    }
    if (key)
        explicit_bzero(key, strlen(key));
    free(key);
    free(certificate);
    free(names);
    cert_pair_done(&ca);
    cert_pair_done(&pair);
    return code;
}

/* The names and addresses of a certificate. */
static json_t *hosts_of(const X509 *certificate)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    json_t *list = json_array();

    for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
        BIO *memory = BIO_new(BIO_s_mem());
        char *bytes = NULL;
        long length;

        if (memory && (name->type == GEN_DNS || name->type == GEN_IPADD)) {
            if (name->type == GEN_DNS)
                (void)ASN1_STRING_print(memory, name->d.dNSName);
            else
                (void)GENERAL_NAME_print(memory,
                                         (GENERAL_NAME *)(uintptr_t)name); /* "IP Address:127.0.0.1" */
            length = BIO_get_mem_data(memory, &bytes);
            if (name->type == GEN_IPADD && length > 11) {
                bytes += 11;
                length -= 11;
            }
            json_array_append_new(list, json_stringn(bytes, length > 0 ? (size_t)length : 0));
        }
        BIO_free(memory);
    }
    GENERAL_NAMES_free(names);
    return list;
}

static json_t *describe(X509 *certificate)
{
    char name[CERT_NAME_MAX + 1], digest[3 * EVP_MAX_MD_SIZE] = "";
    unsigned char bytes[EVP_MAX_MD_SIZE];
    bool is_ca = X509_check_ca(certificate) == 1;
    int64_t ends = cert_wall_ms(X509_get0_notAfter(certificate));
    unsigned length = 0;
    json_t *json = json_object();

    json_put_text_or_null(json, "cluster", cert_subject(certificate, NID_organizationName, name));
    json_put_text_or_null(json, is_ca ? "name" : "node", cert_subject(certificate, NID_commonName, name));
    json_put_bool(json, "is_ca", is_ca);
    json_put_text_or_null(json, "kind", cert_kind(certificate));
    json_put(json, "hosts", hosts_of(certificate));
    json_put_text_or_null(json, "issuer", cert_issuer(certificate, NID_commonName, name));
    json_put_time(json, "valid_from", cert_wall_ms(X509_get0_notBefore(certificate)));
    json_put_time(json, "valid_until", ends);
    json_put_number(json, "remaining_ms", ends - clock_wall_ms());
    json_put_bool(json, "expired", ends <= clock_wall_ms());
    if (X509_digest(certificate, EVP_sha256(), bytes, &length) == 1)
        for (unsigned i = 0; i < length; i++)
            (void)sprintf(digest + 2 * (size_t)i, "%02x", bytes[i]);
    json_put_text(json, "sha256", digest);
    return json;
}

static int show(const struct cli *cli, const char *path)
{
    struct gavel_error error = {0};
    X509 *certificate = NULL;
    const json_t *value;
    const char *key;
    json_t *json;

    if (cert_read(path, &certificate, &error) != GAVEL_OK)
        return cli_fail(cli, error.status, "%s", error.message);
    json = describe(certificate);
    X509_free(certificate);
    if (cli->config.json) {
        json_print_line(json);
        return cli_finish(cli, CLI_EXIT_OK);
    }
    json_object_foreach(json, key, value) {
        bool is_bad = strcmp(key, "expired") == 0 && json_is_true(value);

        if (strcmp(key, "remaining_ms") == 0)
            continue;
        printf("%s%-12s%s%s", style_begin(cli, STYLE_DIM), key, style_end(cli, STYLE_DIM),
               style_begin(cli, is_bad ? STYLE_RED : STYLE_PLAIN));
        if (json_is_string(value))
            printf("%s", json_string_value(value));
        else if (json_is_boolean(value))
            printf("%s", json_is_true(value) ? "yes" : "no");
        for (size_t i = 0; i < json_array_size(value); i++)
            printf("%s%s", i ? ", " : "", json_string_value(json_array_get(value, i)));
        printf("%s\n", style_end(cli, is_bad ? STYLE_RED : STYLE_PLAIN));
    }
    json_decref(json);
    return cli_finish(cli, CLI_EXIT_OK);
}

int command_cert(const struct cli *cli, int argc, char **argv)
{
    const char *action = argc > 0 ? argv[0] : "";

    if (argc == 2 && strcmp(action, "init") == 0)
        return init(cli, argv[1]);
    if (argc == 2 && strcmp(action, "issue") == 0)
        return issue(cli, argv[1]);
    if (argc == 2 && strcmp(action, "show") == 0)
        return show(cli, argv[1]);
    if (argc == 2 && strcmp(action, "revoke") == 0)
        return cert_revoke(cli, argv[1]);
    if (argc == 1 && strcmp(action, "secret") == 0)
        return secret(cli);
    return cli_fail(
        cli, GAVEL_ERR_INVALID,
        "usage: gavel cert init CLUSTER, gavel cert issue NAME, gavel cert show FILE, gavel cert revoke FILE, or gavel cert secret");
}
