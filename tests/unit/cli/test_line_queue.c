/* SPDX-License-Identifier: Apache-2.0 */

/* The queue between the library's thread and stdout: in order, bounded, and never in the way of leaving. */
#include "cli/run/line_queue.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define EXTRA 100
#define LIMIT_MS 60000

struct producer {
    struct line_queue queue;
    atomic_int put; /* lines that the queue has taken, or dropped */
};

static char *line_of(int number)
{
    char *line = NULL;

    assert_true(asprintf(&line, "line %d\n", number) > 0);
    return line;
}

static void *produce(void *argument)
{
    struct producer *producer = argument;

    for (int i = 0; i < LINE_QUEUE_CAPACITY + EXTRA; i++) {
        line_queue_put(&producer->queue, line_of(i));
        atomic_fetch_add(&producer->put, 1);
    }
    return NULL;
}

static void await_line(struct line_queue *queue)
{
    struct pollfd fd = {.fd = queue->fd, .events = POLLIN};

    while (!line_queue_peek(queue))
        assert_int_equal(poll(&fd, 1, LIMIT_MS), 1);
}

static void test_lines_come_out_in_order_also_when_it_was_full(void **state)
{
    struct producer *producer = calloc(1, sizeof *producer);
    pthread_t thread;

    (void)state;
    assert_true(line_queue_init(&producer->queue));
    assert_int_equal(pthread_create(&thread, NULL, produce, producer), 0);
    for (int i = 0; i < LINE_QUEUE_CAPACITY + EXTRA; i++) {
        char expected[32];

        snprintf(expected, sizeof expected, "line %d\n", i);
        await_line(&producer->queue);
        assert_string_equal(line_queue_peek(&producer->queue), expected);
        line_queue_drop(&producer->queue);
    }
    pthread_join(thread, NULL);
    assert_null(line_queue_peek(&producer->queue));
    line_queue_done(&producer->queue);
    free(producer);
}

static void test_closing_lets_whoever_waits_for_room_go(void **state)
{
    struct producer *producer = calloc(1, sizeof *producer);
    pthread_t thread;

    (void)state;
    assert_true(line_queue_init(&producer->queue));
    assert_int_equal(pthread_create(&thread, NULL, produce, producer), 0);
    while (atomic_load(&producer->put) < LINE_QUEUE_CAPACITY)
        await_line(&producer->queue);
    assert_int_equal(atomic_load(&producer->put), LINE_QUEUE_CAPACITY); /* the next one waits */
    line_queue_close(&producer->queue);
    pthread_join(thread, NULL);
    assert_int_equal(atomic_load(&producer->put), LINE_QUEUE_CAPACITY + EXTRA);
    assert_string_equal(line_queue_peek(&producer->queue), "line 0\n");
    line_queue_done(&producer->queue); /* frees what nobody took; the leak checker sees it */
    free(producer);
}

static void test_wake_makes_it_readable_without_a_line(void **state)
{
    struct line_queue *queue = calloc(1, sizeof *queue);
    struct pollfd fd;

    (void)state;
    assert_true(line_queue_init(queue));
    fd = (struct pollfd){.fd = queue->fd, .events = POLLIN};
    assert_int_equal(poll(&fd, 1, 0), 0);
    line_queue_wake(queue);
    assert_int_equal(poll(&fd, 1, 0), 1);
    assert_null(line_queue_peek(queue));
    line_queue_done(queue);
    free(queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_come_out_in_order_also_when_it_was_full),
        cmocka_unit_test(test_closing_lets_whoever_waits_for_room_go),
        cmocka_unit_test(test_wake_makes_it_readable_without_a_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
