/* SPDX-License-Identifier: Apache-2.0 */

#include "forwarder_fixture.h"

static bool deliver(struct fixture *f, const struct forwarder_delivery *delivery)
{
    struct delivery *d = &f->deliveries[f->delivered];
    Gavel__ClientFrame *frame;
    const char *reason;

    if (f->is_unreachable || f->room == 0)
        return false;
    f->room--;
    assert_int_equal(client_frame_unpack(delivery->bytes, delivery->size, &frame, &reason), GAVEL_OK);
    assert_true(f->delivered < KEPT_MAX);
    *d = (struct delivery){.node = delivery->node, .number = delivery->number, .what = frame->what_case};
    if (frame->what_case == GAVEL__CLIENT_FRAME__WHAT_REQUEST) {
        d->tag = frame->request->tag;
        if (frame->request->session == 0 && d->tag < TAGS_MAX) {
            assert_false(f->is_at_frontend[d->tag]);
            f->is_at_frontend[d->tag] = true;
        }
    } else if (frame->what_case == GAVEL__CLIENT_FRAME__WHAT_ASK) {
        d->tag = frame->ask->tag;
    } else {
        d->session_count = frame->keep_alive->n_sessions;
    }
    client_frame_free(frame);
    f->delivered++;
    return true;
}

static void answer(struct fixture *f, uint64_t client, const Gavel__ClientFrame *frame)
{
    struct answer *a = &f->answers[f->answered];

    assert_true(f->answered < KEPT_MAX);
    f->answered++;
    *a = (struct answer){.client = client, .what = frame->what_case};
    if (frame->what_case == GAVEL__CLIENT_FRAME__WHAT_REPLY) {
        a->tag = frame->reply->tag;
        a->status = (enum gavel_status)frame->reply->status;
        (void)snprintf(a->message, sizeof a->message, "%s", frame->reply->message);
    } else if (frame->what_case == GAVEL__CLIENT_FRAME__WHAT_ANSWER) {
        a->tag = frame->answer->tag;
        a->status = (enum gavel_status)frame->answer->status;
        (void)snprintf(a->message, sizeof a->message, "%s", frame->answer->message);
    } else {
        assert_int_equal(frame->what_case, GAVEL__CLIENT_FRAME__WHAT_KEPT);
        a->tag = frame->kept->tag;
        a->status = (enum gavel_status)frame->kept->status;
        assert_true(frame->kept->n_gone <= GONE_MAX);
        a->gone_count = frame->kept->n_gone;
        for (size_t i = 0; i < a->gone_count; i++)
            a->gone[i] = frame->kept->gone[i];
        assert_true(frame->kept->n_revisions <= GONE_MAX);
        a->revision_count = frame->kept->n_revisions;
        for (size_t i = 0; i < a->revision_count; i++)
            a->revisions[i] = frame->kept->revisions[i];
    }
}

/* Takes out what is to be delivered, and what is answered. */
static void settle(struct fixture *f)
{
    struct forwarder_delivery delivery;
    struct forwarder_answer *next;

    while (forwarder_take_delivery(&f->forwarder, &delivery)) {
        uint64_t number = delivery.number;

        if (!deliver(f, &delivery))
            forwarder_unsent(&f->forwarder, f->now, number);
    }
    while ((next = forwarder_take_answer(&f->forwarder))) {
        answer(f, next->client, next->frame);
        forwarder_answer_free(next);
    }
}

void set_leader(struct fixture *f, uint64_t node, uint64_t term)
{
    forwarder_leader(&f->forwarder, f->now, node, term);
    settle(f);
}

void take(struct fixture *f, uint64_t client, const Gavel__ClientFrame *frame)
{
    assert_int_equal(forwarder_take(&f->forwarder, f->now, client, frame), GAVEL_OK);
    settle(f);
}

int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    forwarder_init(&f->forwarder);
    f->now = 1000 * NS_PER_S;
    f->room = SIZE_MAX;
    *state = f;
    return 0;
}

int tear_down(void **state)
{
    struct fixture *f = *state;

    forwarder_done(&f->forwarder);
    free(f);
    return 0;
}

void ask_write(struct fixture *f, uint64_t client, uint64_t tag, uint64_t session, uint32_t timeout_ms)
{
    Gavel__ClientFrame frame;
    Gavel__Request request;
    Gavel__Op op, *ops[1] = {&op};
    Gavel__Lapse lapse;

    gavel__client_frame__init(&frame);
    gavel__request__init(&request);
    gavel__op__init(&op);
    gavel__lapse__init(&lapse);
    op.what_case = GAVEL__OP__WHAT_LAPSE;
    op.lapse = &lapse;
    request.tag = tag;
    request.session = session;
    request.id = session != 0 ? tag : 0;
    request.timeout_ms = timeout_ms;
    request.n_ops = 1;
    request.ops = ops;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_REQUEST;
    frame.request = &request;
    take(f, client, &frame);
}

void ask_question(struct fixture *f, uint64_t client, uint64_t tag)
{
    Gavel__ClientFrame frame;
    Gavel__Ask ask;

    gavel__client_frame__init(&frame);
    gavel__ask__init(&ask);
    ask.tag = tag;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_ASK;
    frame.ask = &ask;
    take(f, client, &frame);
}

void keep_alive(struct fixture *f, uint64_t client, uint64_t tag, size_t count, uint64_t *sessions)
{
    Gavel__ClientFrame frame;
    Gavel__KeepAlive keep;

    gavel__client_frame__init(&frame);
    gavel__keep_alive__init(&keep);
    keep.tag = tag;
    keep.n_sessions = count;
    keep.sessions = sessions;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_KEEP_ALIVE;
    frame.keep_alive = &keep;
    take(f, client, &frame);
}

/* The frontend answers this delivery; the tag of it is of no use to anybody. */
void reply_gone(struct fixture *f, struct delivery d, enum gavel_status status, size_t gone_count,
                uint64_t *gone)
{
    Gavel__ClientFrame frame;
    Gavel__ClientFrame *copy;
    Gavel__Reply reply;
    Gavel__Kept kept;
    Gavel__Answer read;

    gavel__client_frame__init(&frame);
    if (d.what == GAVEL__CLIENT_FRAME__WHAT_REQUEST) {
        if (status == GAVEL_ERR_NOT_LEADER && d.tag < TAGS_MAX)
            f->is_at_frontend[d.tag] = false;
        gavel__reply__init(&reply);
        reply.tag = 999999;
        reply.status = (uint32_t)status;
        frame.what_case = GAVEL__CLIENT_FRAME__WHAT_REPLY;
        frame.reply = &reply;
    } else if (d.what == GAVEL__CLIENT_FRAME__WHAT_ASK) {
        gavel__answer__init(&read);
        read.tag = 999999;
        read.status = (uint32_t)status;
        frame.what_case = GAVEL__CLIENT_FRAME__WHAT_ANSWER;
        frame.answer = &read;
    } else {
        gavel__kept__init(&kept);
        kept.tag = 999999;
        kept.status = (uint32_t)status;
        kept.n_gone = gone_count;
        kept.gone = gone;
        kept.n_revisions = f->revision_count;
        kept.revisions = f->revisions;
        frame.what_case = GAVEL__CLIENT_FRAME__WHAT_KEPT;
        frame.kept = &kept;
    }
    copy = client_frame_copy(&frame);
    assert_non_null(copy);
    forwarder_reply(&f->forwarder, f->now, d.number, &copy);
    client_frame_free(copy);
    settle(f);
}

void reply(struct fixture *f, struct delivery d, enum gavel_status status)
{
    reply_gone(f, d, status, 0, NULL);
}

void pass(struct fixture *f, gavel_ns time)
{
    gavel_ns until = f->now + time;

    /* As its caller does it: whenever it wants to be woken. */
    for (int i = 0; i < 100000 && forwarder_wake_at(&f->forwarder) <= until; i++) {
        f->now = ns_max(f->now, forwarder_wake_at(&f->forwarder));
        forwarder_tick(&f->forwarder, f->now);
        settle(f);
    }
    assert_true(forwarder_wake_at(&f->forwarder) > until);
    f->now = until;
    forwarder_tick(&f->forwarder, f->now);
    settle(f);
}

void assert_answer(const struct fixture *f, size_t which, uint64_t client, uint64_t tag,
                   enum gavel_status status)
{
    assert_true(which < f->answered);
    assert_int_equal(f->answers[which].client, client);
    assert_int_equal(f->answers[which].tag, tag);
    assert_int_equal(f->answers[which].status, status);
}
