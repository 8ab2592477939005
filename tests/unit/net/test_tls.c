/* SPDX-License-Identifier: Apache-2.0 */

/* TLS between nodes: who has the right certificate may speak; who has not is told why, and so is the
 * other. */
#include "certs.h"
#include "world.h"

#include "net/seal.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <openssl/pem.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
    struct world *world;
    struct certs certs;
    struct paths paths[SIDES_MAX];
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    f->world = world_new();
    certs_init(&f->certs);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    for (size_t i = 0; i < SIDES_MAX; i++)
        SSL_CTX_free(f->world->sides[i].settings.tls);
    world_free(f->world);
    certs_done(&f->certs);
    free(f);
    return 0;
}

static SSL_CTX *context_of(const struct tls_files *files)
{
    struct gavel_error error;
    SSL_CTX *context;

    if (tls_context_make(files, TLS_PEER, &context, &error) != GAVEL_OK)
        fail_msg("%s", error.message);
    return context;
}

/* The certificate by hand, past the checks of tls_context_make(): as it is when one goes bad while
 * running. */
static SSL_CTX *bad_context_of(const struct tls_files *files)
{
    SSL_CTX *context = SSL_CTX_new(TLS_method());

    assert_int_equal(SSL_CTX_load_verify_locations(context, files->ca, NULL), 1);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    if (files->cert) {
        assert_int_equal(SSL_CTX_use_certificate_chain_file(context, files->cert), 1);
        assert_int_equal(SSL_CTX_use_PrivateKey_file(context, files->key, SSL_FILETYPE_PEM), 1);
    }
    return context;
}

static void give_good(struct fixture *f, size_t which)
{
    struct side *side = world_side(f->world, which);
    struct issue issue = {.node = side->name};
    struct tls_files files = certs_issue(&f->certs, &issue, &f->paths[which]);

    side->settings.tls = context_of(&files);
}

static void give_bad(struct fixture *f, size_t which, const struct issue *issue)
{
    struct tls_files files = certs_issue(&f->certs, issue, &f->paths[which]);

    world_side(f->world, which)->settings.tls = bad_context_of(&files);
}

static void start_two(struct fixture *f)
{
    struct side *a = world_side(f->world, 0), *b = world_side(f->world, 1);

    world_start(a);
    world_start(b);
}

/* a has something wrong. It dials b, or is dialled; each says its own half of it. */
static void expect_refusal(struct fixture *f, const char *text_of_a, const char *text_of_b)
{
    struct side *a = world_side(f->world, 0), *b = world_side(f->world, 1);

    start_two(f);
    world_peer(a, b, NULL);
    WAIT_FOR(f->world, find_news_about(a, TRANSPORT_REFUSED, text_of_a));
    WAIT_FOR(f->world, find_news_about(b, TRANSPORT_REFUSED, text_of_b));
    assert_false(is_up(a, b));
    a->news_count = b->news_count = 0;

    transport_set_peers(a->transport, NULL, 0);
    world_stop(a);
    world_stop(b);
    a->port = b->port = 0;
    start_two(f);
    world_peer(b, a, NULL);
    WAIT_FOR(f->world, find_news_about(a, TRANSPORT_REFUSED, text_of_a));
    WAIT_FOR(f->world, find_news_about(b, TRANSPORT_REFUSED, text_of_b));
    assert_false(is_up(b, a));
}

static void test_nodes_with_certificates_speak(void **state)
{
    struct fixture *f = *state;
    struct side *a = world_side(f->world, 0), *b = world_side(f->world, 1);
    struct raft_message beat = heartbeat(a, b, 5), snapshot;
    size_t size = (size_t)3 << 20;
    uint8_t *bytes = calloc(1, size);

    give_good(f, 0);
    give_good(f, 1);
    start_two(f);
    world_connect(f->world);
    WAIT_FOR(f->world, is_up(a, b) && is_up(b, a));
    snapshot = snapshot_of(a, b, bytes, size);
    transport_send(a->transport, &snapshot);
    free(bytes);
    for (int i = 0; i < 100; i++)
        transport_send(a->transport, &beat);
    WAIT_FOR(f->world, b->message_count == 101);
    assert_int_equal(b->snapshot.size, size);
    transport_send(a->transport, &beat);
    transport_flush(a->transport);
    world_stop(a);
    WAIT_FOR(f->world, b->message_count == 102);
    WAIT_FOR(f->world, count_news(b, TRANSPORT_LOST) == 2);
}

/* A program with a certificate of the cluster that calls itself by the name of a member. */
static void test_a_client_is_no_node(void **state)
{
    struct fixture *f = *state;

    give_bad(f, 0, &(struct issue){.node = "a", .kind = "client"});
    give_good(f, 1);
    expect_refusal(f, "the certificate of a is a client's", "the certificate of a is a client's");
}

static void test_a_certificate_of_before_is_no_node(void **state)
{
    struct fixture *f = *state;

    give_bad(f, 0, &(struct issue){.node = "a", .kind = ""});
    give_good(f, 1);
    expect_refusal(f, "issue it again with \"gavel cert issue a --force\"",
                   "issue it again with \"gavel cert issue a --force\"");
}

/* One that says to be both is neither; nor is one that names another. */
static void test_the_uri_must_be_that_of_its_name(void **state)
{
    struct fixture *f = *state;

    give_bad(f, 0, &(struct issue){.node = "a", .kind = "client:a,URI:urn:gavel:test:node"});
    give_good(f, 1);
    expect_refusal(f, "does not say that it is a node's", "does not say that it is a node's");
}

static void write_list(const struct fixture *f, const char *text)
{
    char path[128];
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/revoked", f->certs.directory);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static enum gavel_status load_list(const struct fixture *f, size_t which, SSL_CTX **ret_context,
                                   struct gavel_error *error)
{
    const struct paths *paths = &f->paths[which];
    struct tls_files files = {.ca = paths->ca, .cert = paths->cert, .key = paths->key};
    char path[128];

    (void)snprintf(path, sizeof path, "%s/revoked", f->certs.directory);
    files.revoked = path;
    return tls_context_make(&files, TLS_PEER, ret_context, error);
}

static void write_digest(const struct paths *paths, char ret_text[2 * 32 + 2])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    FILE *file = fopen(paths->cert, "r");
    X509 *cert = PEM_read_X509(file, NULL, NULL, NULL);

    (void)fclose(file);
    assert_int_equal(X509_digest(cert, EVP_sha256(), digest, &length), 1);
    X509_free(cert);
    for (unsigned i = 0; i < length; i++)
        (void)sprintf(ret_text + 2 * i, "%02x", digest[i]);
    strcat(ret_text, "\n");
}

static void test_a_revoked_certificate_ends_its_connections(void **state)
{
    struct fixture *f = *state;
    struct side *a = world_side(f->world, 0), *b = world_side(f->world, 1);
    struct gavel_error error;
    char line[2 * 32 + 2] = "";
    SSL_CTX *context;

    give_good(f, 0);
    give_good(f, 1);
    start_two(f);
    world_connect(f->world);
    WAIT_FOR(f->world, is_up(a, b) && is_up(b, a) && link_of(b, a).is_heard);
    write_digest(&f->paths[0], line);
    write_list(f, line);
    assert_int_equal(load_list(f, 1, &context, &error), GAVEL_OK);
    transport_set_tls(b->transport, context);
    SSL_CTX_free(context);
    WAIT_FOR(f->world, !is_up(a, b) && !is_up(b, a));
    WAIT_FOR(f->world, find_news_about(a, TRANSPORT_REFUSED, "the certificate of a is revoked"));
    WAIT_FOR(f->world, find_news_about(b, TRANSPORT_REFUSED, "the certificate of a is revoked"));
    assert_false(is_up(a, b));
    /* And it is taken again when the list says so. */
    write_list(f, "# nobody\n\n");
    assert_int_equal(load_list(f, 1, &context, &error), GAVEL_OK);
    transport_set_tls(b->transport, context);
    SSL_CTX_free(context);
    WAIT_FOR(f->world, is_up(a, b) && is_up(b, a));
}

/* Turns the loop until OpenSSL has what it wants. */
static bool is_done(struct fixture *f, SSL *ssl, int result)
{
    int error = SSL_get_error(ssl, result);

    if (result > 0)
        return true;
    if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE)
        fail_msg("OpenSSL says %d", error);
    world_turn(f->world, "OpenSSL goes on", __FILE__, __LINE__);
    return false;
}

/* A handshake that began before the list was read is judged by the list. */
static void test_a_revoked_certificate_does_not_come_in_by_a_slow_handshake(void **state)
{
    struct fixture *f = *state;
    struct side *a = world_side(f->world, 0), *b = world_side(f->world, 1);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct peer_frame frame = {.kind = PEER_HELLO};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char line[2 * 32 + 2] = "";
    struct gavel_error error;
    SSL_CTX *context;
    uint8_t *bytes;
    size_t size;
    SSL *ssl;

    give_good(f, 0);
    give_good(f, 1);
    world_start(b);
    address.sin_port = htons(b->port);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    world_run_for(f->world, 100); /* it is accepted, with the context of now */
    write_digest(&f->paths[0], line);
    write_list(f, line);
    assert_int_equal(load_list(f, 1, &context, &error), GAVEL_OK);
    transport_set_tls(b->transport, context);
    SSL_CTX_free(context);
    ssl = SSL_new(a->settings.tls);
    assert_int_equal(SSL_set_fd(ssl, fd), 1);
    world_limit_begin(f->world);
    while (!is_done(f, ssl, SSL_connect(ssl)))
        ;
    frame.hello = a->settings.self;
    frame.hello.version_min = frame.hello.version_max = PEER_VERSION_MAX;
    frame.hello.to = b->id;
    assert_int_equal(peer_frame_encode(&frame, &bytes, &size), GAVEL_OK);
    while (!is_done(f, ssl, SSL_write(ssl, bytes, (int)size)))
        ;
    free(bytes);
    WAIT_FOR(f->world, find_news(b, TRANSPORT_GREETED) ||
                           find_news_about(b, TRANSPORT_REFUSED, "the certificate of a is revoked"));
    assert_null(find_news(b, TRANSPORT_GREETED));
    SSL_free(ssl);
    (void)close(fd);
}

static void test_a_list_that_cannot_be_read_is_no_empty_one(void **state)
{
    struct fixture *f = *state;
    struct gavel_error error;
    SSL_CTX *context = NULL;

    give_good(f, 1);
    assert_int_equal(load_list(f, 1, &context, &error), GAVEL_ERR_IO);
    assert_non_null(strstr(error.message, "an empty file revokes none"));
    write_list(f, "# text\nabc\n");
    assert_int_equal(load_list(f, 1, &context, &error), GAVEL_ERR_INVALID);
    assert_non_null(strstr(error.message, "line 2 of"));
    assert_null(context);
}

static void test_a_certificate_of_another_cluster_is_refused(void **state)
{
    struct fixture *f = *state;
    struct issue issue = {.node = "a", .cluster = "prod"};

    give_bad(f, 0, &issue);
    give_good(f, 1);
    expect_refusal(f, "the certificate of a is for cluster \"prod\", not \"test\"",
                   "the certificate of a is for cluster \"prod\", not \"test\"");
}

static void test_a_certificate_of_another_node_is_refused(void **state)
{
    struct fixture *f = *state;
    struct side *a = world_side(f->world, 0), *b = world_side(f->world, 1);
    struct issue issue = {.node = "c"};

    give_bad(f, 0, &issue);
    give_good(f, 1);
    start_two(f);
    world_peer(a, b, NULL);
    WAIT_FOR(f->world, find_news_about(a, TRANSPORT_REFUSED, "the certificate of a is for node \"c\""));
    WAIT_FOR(f->world, find_news_about(b, TRANSPORT_REFUSED, "the certificate of a is for node \"c\""));
    transport_set_peers(a->transport, NULL, 0);
    world_peer(b, a, NULL);
    WAIT_FOR(f->world, find_news_about(b, TRANSPORT_REFUSED, "where c answers"));
    WAIT_FOR(f->world, find_news_about(a, TRANSPORT_REFUSED, "where c answers"));
}

static void test_an_expired_certificate_is_refused(void **state)
{
    struct fixture *f = *state;
    struct issue issue = {.node = "a", .from_s = -100, .until_s = -10};

    give_bad(f, 0, &issue);
    give_good(f, 1);
    expect_refusal(f, "our certificate has expired", "the certificate of the other side has expired");
}

static void test_a_certificate_of_an_unknown_ca_is_refused(void **state)
{
    struct fixture *f = *state;
    struct issue issue = {.node = "a", .is_of_other_ca = true};

    give_bad(f, 0, &issue);
    give_good(f, 1);
    expect_refusal(f, "the other side does not know the CA of our certificate", "signed by an unknown CA");
}

static void test_a_node_without_a_certificate_is_refused(void **state)
{
    struct fixture *f = *state;
    struct side *a = world_side(f->world, 0), *b = world_side(f->world, 1);
    struct tls_files files;

    give_good(f, 1);
    files = (struct tls_files){.ca = f->paths[1].ca};
    a->settings.tls = bad_context_of(&files);
    start_two(f);
    world_peer(a, b, NULL);
    WAIT_FOR(f->world, find_news_about(a, TRANSPORT_REFUSED, "requires a certificate and got none"));
    WAIT_FOR(f->world, find_news_about(b, TRANSPORT_REFUSED, "the other side presented no certificate"));
}

static void test_plain_and_tls_do_not_mix(void **state)
{
    struct fixture *f = *state;
    struct side *a = world_side(f->world, 0), *b = world_side(f->world, 1);

    give_good(f, 1);
    start_two(f);
    world_peer(a, b, NULL); /* plain dials TLS */
    WAIT_FOR(f->world, find_news_about(a, TRANSPORT_REFUSED, "one side speaks TLS and the other does not"));
    WAIT_FOR(f->world, find_news_about(b, TRANSPORT_REFUSED, "does not speak TLS"));
    transport_set_peers(a->transport, NULL, 0);
    world_peer(b, a, NULL);
    WAIT_FOR(f->world, find_news_about(a, TRANSPORT_BAD, "one side speaks TLS and the other does not"));
    WAIT_FOR(f->world, find_news_about(b, TRANSPORT_REFUSED, "does not speak TLS"));
}

static void test_an_id_that_is_not_of_the_name_is_refused(void **state)
{
    struct fixture *f = *state;
    struct side *a = world_side(f->world, 0);

    give_good(f, 0);
    give_good(f, 1);
    a->settings.self.node = a->id = 12345;
    start_two(f);
    world_peer(a, world_side(f->world, 1), NULL);
    WAIT_FOR(f->world, find_news_about(a, TRANSPORT_REFUSED, "a does not have the id of its name"));
}

/* The caller ends for good when a member says that the cluster goes on in a later generation. So nobody but a
 * member may say it. */
static void test_who_has_no_certificate_of_ours_says_nothing_of_generations(void **state)
{
    struct fixture *f = *state;
    struct side *a = world_side(f->world, 0), *b = world_side(f->world, 1);
    struct issue issue = {.node = "a", .cluster = "prod"};

    give_bad(f, 0, &issue);
    give_good(f, 1);
    a->settings.self.generation = 9;
    start_two(f);
    world_peer(a, b, NULL);
    WAIT_FOR(f->world, find_news_about(b, TRANSPORT_REFUSED, "generation 9"));
    assert_false(find_news(b, TRANSPORT_REFUSED)->has_hello);
}

static void test_a_member_of_a_later_generation_is_told_of(void **state)
{
    struct fixture *f = *state;
    struct side *a = world_side(f->world, 0), *b = world_side(f->world, 1);

    give_good(f, 0);
    give_good(f, 1);
    a->settings.self.generation = 9;
    start_two(f);
    world_peer(a, b, NULL);
    WAIT_FOR(f->world, find_news_about(b, TRANSPORT_REFUSED, "generation 9"));
    assert_true(find_news(b, TRANSPORT_REFUSED)->has_hello);
    assert_int_equal(find_news(b, TRANSPORT_REFUSED)->hello.generation, 9);
}

/* Everybody has the key of a cluster without a secret, so what is proven by it makes nobody a member. */
static void test_without_a_secret_a_newer_configuration_is_not_believed(void **state)
{
    struct fixture *f = *state;
    struct side *a = world_side(f->world, 0), *b = world_side(f->world, 1);

    give_good(f, 0);
    give_good(f, 1);
    a->settings.takes_strangers = false;
    b->settings.self.config_index = 18;
    start_two(f);
    transport_set_members(a->transport, &a->id, 1, 17);
    world_peer(b, a, NULL);
    WAIT_FOR(f->world, find_news_about(b, TRANSPORT_REFUSED, "b is not a member of cluster \"test\""));
    WAIT_FOR(f->world, find_news_about(b, TRANSPORT_REFUSED, "\"secret\""));
    assert_null(find_news(a, TRANSPORT_GREETED));
    /* Once it is one, it comes in. */
    world_peer(a, b, NULL);
    WAIT_FOR(f->world, is_up(b, a) && link_of(a, b).is_heard);
}

static void test_new_certificates_count_for_new_connections(void **state)
{
    struct fixture *f = *state;
    struct side *a = world_side(f->world, 0), *b = world_side(f->world, 1);
    struct issue expired = {.node = "a", .from_s = -100, .until_s = -10};

    give_bad(f, 0, &expired);
    give_good(f, 1);
    start_two(f);
    world_peer(a, b, NULL);
    WAIT_FOR(f->world, find_news_about(a, TRANSPORT_REFUSED, "our certificate has expired"));
    SSL_CTX_free(a->settings.tls);
    give_good(f, 0);
    transport_set_tls(a->transport, a->settings.tls);
    WAIT_FOR(f->world, is_up(a, b));
}

static void expect_error(const struct tls_files *files, enum gavel_status expected, const char *text)
{
    struct gavel_error error;
    SSL_CTX *context = NULL;

    assert_int_equal(tls_context_make(files, TLS_PEER, &context, &error), expected);
    assert_null(context);
    if (!strstr(error.message, text))
        fail_msg("\"%s\" does not say \"%s\"", error.message, text);
}

static void test_files_that_cannot_be_used_are_named_with_the_reason(void **state)
{
    struct fixture *f = *state;
    struct paths paths, others;
    struct issue issue = {.node = "a"}, other = {.node = "b"};
    struct tls_files files = certs_issue(&f->certs, &issue, &paths), wrong = files;

    (void)certs_issue(&f->certs, &other, &others);
    wrong.key = "/nowhere/a.key";
    expect_error(&wrong, GAVEL_ERR_IO, "the key /nowhere/a.key cannot be read: No such file or directory");
    wrong.key = others.key;
    expect_error(&wrong, GAVEL_ERR_INVALID, "does not belong to the certificate");
    wrong = files;
    wrong.cert = paths.key;
    expect_error(&wrong, GAVEL_ERR_INVALID, "it must be in PEM");
    wrong = files;
    wrong.ca = NULL;
    expect_error(&wrong, GAVEL_ERR_INVALID, "needs a CA");
    issue.is_of_other_ca = true;
    files = certs_issue(&f->certs, &issue, &paths);
    expect_error(&files, GAVEL_ERR_INVALID, "was not signed by the CA");
    issue = (struct issue){.node = "a", .from_s = -100, .until_s = -10};
    files = certs_issue(&f->certs, &issue, &paths);
    expect_error(&files, GAVEL_ERR_INVALID, "has expired, on 2");
    issue = (struct issue){.node = "a", .from_s = 1000, .until_s = 2000};
    files = certs_issue(&f->certs, &issue, &paths);
    expect_error(&files, GAVEL_ERR_INVALID, "is not valid before");
}

static void test_a_certificate_says_who_it_is_for_and_until_when(void **state)
{
    struct fixture *f = *state;
    struct paths paths;
    struct issue issue = {.node = "node-7", .cluster = "prod", .until_s = 5000};
    struct tls_files files = certs_issue(&f->certs, &issue, &paths);
    struct tls_identity identity;
    struct gavel_error error;

    assert_int_equal(tls_identity_of_file(files.cert, &identity, &error), GAVEL_OK);
    assert_string_equal(identity.cluster, "prod");
    assert_string_equal(identity.node, "node-7");
    assert_in_range(identity.expires_wall_s, time(NULL) + 4900, time(NULL) + 5100);
    assert_int_equal(tls_identity_of_file(files.key, &identity, &error), GAVEL_ERR_INVALID);
    assert_int_equal(tls_identity_of_file("/nowhere", &identity, &error), GAVEL_ERR_IO);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_nodes_with_certificates_speak),
        CASE(test_a_client_is_no_node),
        CASE(test_a_certificate_of_before_is_no_node),
        CASE(test_the_uri_must_be_that_of_its_name),
        CASE(test_a_revoked_certificate_ends_its_connections),
        CASE(test_a_revoked_certificate_does_not_come_in_by_a_slow_handshake),
        CASE(test_a_list_that_cannot_be_read_is_no_empty_one),
        CASE(test_a_certificate_of_another_cluster_is_refused),
        CASE(test_a_certificate_of_another_node_is_refused),
        CASE(test_an_expired_certificate_is_refused),
        CASE(test_a_certificate_of_an_unknown_ca_is_refused),
        CASE(test_a_node_without_a_certificate_is_refused),
        CASE(test_plain_and_tls_do_not_mix),
        CASE(test_an_id_that_is_not_of_the_name_is_refused),
        CASE(test_who_has_no_certificate_of_ours_says_nothing_of_generations),
        CASE(test_a_member_of_a_later_generation_is_told_of),
        CASE(test_without_a_secret_a_newer_configuration_is_not_believed),
        CASE(test_new_certificates_count_for_new_connections),
        CASE(test_files_that_cannot_be_used_are_named_with_the_reason),
        CASE(test_a_certificate_says_who_it_is_for_and_until_when),
    };

    return cmocka_run_group_tests_name("tls", tests, NULL, NULL);
}
