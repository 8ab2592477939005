/* SPDX-License-Identifier: Apache-2.0 */

/* Seals, ids from names, and addresses. */
#include "net/seal.h"
#include "net/transport.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void test_a_seal_covers_every_field(void **state)
{
    struct seal seal = {.cluster = 1, .generation = 2}, other;
    struct raft_certificate good = {.kind = RAFT_CERT_FORCE,
                                    .node = 3,
                                    .incarnation = 4,
                                    .term = 5,
                                    .lease_epoch = 6,
                                    .target = 7,
                                    .commit = 8},
                            bad;

    (void)state;
    seal_key_of_name("test", seal.key);
    seal_sign(&seal, &good);
    assert_true(seal_verify(&seal, &good));
#define SPOILED(change)                                                                                      \
    do {                                                                                                     \
        bad = good;                                                                                          \
        change;                                                                                              \
        assert_false(seal_verify(&seal, &bad));                                                              \
    } while (0)
    SPOILED(bad.kind = RAFT_CERT_RELEASE);
    SPOILED(bad.node++);
    SPOILED(bad.incarnation++);
    SPOILED(bad.term++);
    SPOILED(bad.lease_epoch++);
    SPOILED(bad.target++);
    SPOILED(bad.commit++);
    SPOILED(bad.mac[0] ^= 1);
    SPOILED(bad.mac[31] ^= 0x80);
    other = seal;
    other.cluster++;
    assert_false(seal_verify(&other, &good));
    other = seal;
    other.generation++;
    assert_false(seal_verify(&other, &good));
    other = seal;
    seal_key_of_name("another", other.key);
    assert_false(seal_verify(&other, &good));
}

static void write_secret(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void test_a_secret_is_the_same_with_and_without_the_end_of_its_line(void **state)
{
    char path[] = "/tmp/gavel-secret-XXXXXX";
    uint8_t key[SEAL_KEY_BYTES], again[SEAL_KEY_BYTES];
    struct gavel_error error;

    (void)state;
    (void)close(mkstemp(path));
    write_secret(path, "0123456789abcdef0123456789abcdef");
    assert_int_equal(seal_key_read(path, key, &error), GAVEL_OK);
    write_secret(path, "0123456789abcdef0123456789abcdef\n");
    assert_int_equal(seal_key_read(path, again, &error), GAVEL_OK);
    assert_memory_equal(key, again, sizeof key);
    write_secret(path, "0123456789abcdef0123456789abcdeF");
    assert_int_equal(seal_key_read(path, again, &error), GAVEL_OK);
    assert_memory_not_equal(key, again, sizeof key);
    write_secret(path, "too short\n");
    assert_int_equal(seal_key_read(path, again, &error), GAVEL_ERR_INVALID);
    assert_non_null(strstr(error.message, "has 9 bytes and needs at least 32"));
    (void)unlink(path);
    assert_int_equal(seal_key_read(path, again, &error), GAVEL_ERR_IO);
    assert_non_null(strstr(error.message, "No such file"));
}

static void test_ids_come_from_names(void **state)
{
    (void)state;
    assert_int_equal(seal_id_of_name("node", "n1"), seal_id_of_name("node", "n1"));
    assert_int_not_equal(seal_id_of_name("node", "n1"), seal_id_of_name("node", "n2"));
    assert_int_not_equal(seal_id_of_name("node", "n1"), seal_id_of_name("cluster", "n1"));
    assert_int_not_equal(seal_id_of_name("a", "bc"), seal_id_of_name("ab", "c"));
}

static void test_addresses(void **state)
{
    static const char *const bad[] = {
        "",           "7400", "host",      ":7400", "host:",   "host:x",      "host:70000",
        "fe80::1:74", "[]:1", "[::1]7400", "[::1]", "host:-1", "host:123456", "a:b:1"};
    struct sockaddr_storage address;
    struct gavel_error error;
    socklen_t length;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (address_resolve(bad[i], &address, &length, &error) != GAVEL_ERR_INVALID)
            fail_msg("taken: %s", bad[i]);
    assert_int_equal(address_resolve("127.0.0.1:7400", &address, &length, &error), GAVEL_OK);
    assert_int_equal(length, sizeof(struct sockaddr_in));
    assert_true(address_is_loopback(&address));
    assert_int_equal(address_resolve("127.9.8.7:1", &address, &length, &error), GAVEL_OK);
    assert_true(address_is_loopback(&address));
    assert_int_equal(address_resolve("[::1]:7400", &address, &length, &error), GAVEL_OK);
    assert_int_equal(ntohs(((struct sockaddr_in6 *)&address)->sin6_port), 7400);
    assert_true(address_is_loopback(&address));
    assert_int_equal(address_resolve("[::ffff:127.0.0.1]:7400", &address, &length, &error), GAVEL_OK);
    assert_true(address_is_loopback(&address));
    assert_int_equal(address_resolve("192.0.2.1:0", &address, &length, &error), GAVEL_OK);
    assert_false(address_is_loopback(&address));
    assert_int_equal(address_resolve("0.0.0.0:7400", &address, &length, &error), GAVEL_OK);
    assert_false(address_is_loopback(&address));
    assert_int_equal(address_resolve("localhost:7400", &address, &length, &error), GAVEL_OK);
    assert_true(address_is_loopback(&address));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_seal_covers_every_field),
        cmocka_unit_test(test_a_secret_is_the_same_with_and_without_the_end_of_its_line),
        cmocka_unit_test(test_ids_come_from_names),
        cmocka_unit_test(test_addresses),
    };

    return cmocka_run_group_tests_name("seal", tests, NULL, NULL);
}
