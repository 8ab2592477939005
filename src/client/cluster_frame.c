/* SPDX-License-Identifier: Apache-2.0 */

/* Bytes of a stream, cut into frames and put together from them. */

#include "client/cluster_internal.h"

#include "net/cut.h"
#include "os/clock.h"
#include "wire/client.h"

#include <event2/buffer.h>
#include <stdlib.h>
#include <string.h>

void cluster_link_frame_send(struct cluster_link_stream *stream, const Gavel__ClientFrame *frame)
{
    struct evbuffer *output;
    uint8_t *bytes;
    size_t size;

    if (!stream || !stream->bytes || stream->has_failed)
        return; /* the client learns that it is over, and sends again */
    if (client_frame_pack(frame, &bytes, &size) != GAVEL_OK) {
        cluster_link_stream_fail(stream, "a frame could not be written: out of memory, or too large");
        return;
    }
    output = bufferevent_get_output(stream->bytes);
    if (evbuffer_get_length(output) + size > CLUSTER_OUTPUT_MAX)
        cluster_link_stream_fail(stream, "the node reads too slowly: more than %u MiB wait for it",
                                 CLUSTER_OUTPUT_MAX >> 20);
    else if (bufferevent_write(stream->bytes, bytes, size) != 0)
        cluster_link_stream_fail(stream, "a frame could not be written: out of memory");
    free(bytes);
}

/* Bytes where a length should be: who might have sent them? */
static const char *explain_length(const uint8_t bytes[CUT_LENGTH_BYTES])
{
    if ((bytes[0] == 0x15 || bytes[0] == 0x16) && bytes[1] == 3)
        return "the node speaks TLS; add ca, cert and key";
    if (memcmp(bytes, "HTTP", 4) == 0)
        return "this is an HTTP port; the port for clients is another";
    return "bytes that are not a frame; is this the port for clients?";
}

/* The size of the next frame with its length; 0 if it is not there yet or was bad. */
static size_t next_size(struct cluster_link_stream *stream)
{
    uint8_t length[CUT_LENGTH_BYTES];
    size_t size = cut_next(stream->bytes, CLIENT_FRAME_MAX, length);

    if (size != CUT_BAD)
        return size;
    cluster_link_stream_fail(stream, "%s", explain_length(length));
    return 0;
}

static void take(struct cluster_link_stream *stream, const uint8_t *bytes, size_t size)
{
    struct client_event event = {.kind = CLIENT_RECEIVED, .now = clock_now()};
    Gavel__ClientFrame *frame;
    const char *reason;
    enum gavel_status status = client_frame_unpack(bytes, size, &frame, &reason);

    if (status == GAVEL_ERR_NO_MEMORY) {
        cluster_link_stream_fail(stream, "out of memory for a frame of %zu bytes", size);
        return;
    }
    if (status != GAVEL_OK) {
        cluster_link_stream_fail(stream, "the node violates the protocol: %s", reason);
        return;
    }
    event.frame = frame;
    cluster_link_step(stream->cluster, &event);
    if (frame->what_case == GAVEL__CLIENT_FRAME__WHAT_WELCOME && stream->cluster->stream == stream &&
        !stream->has_failed && stream->cluster->events.welcomed)
        stream->cluster->events.welcomed(stream->cluster->events.user, frame->welcome);
    client_frame_free(frame);
}

void cluster_link_frame_read(struct bufferevent *bytes, void *context)
{
    struct cluster_link_stream *stream = context;
    struct evbuffer *input = bufferevent_get_input(bytes);
    size_t size;

    /* A step may end the stream; it is freed later. */
    while (stream->cluster->stream == stream && !stream->has_failed && (size = next_size(stream)) > 0) {
        const uint8_t *whole = evbuffer_pullup(input, (ev_ssize_t)size);

        if (!whole) {
            cluster_link_stream_fail(stream, "out of memory for a frame of %zu bytes", size);
            return;
        }
        take(stream, whole + CLIENT_LENGTH_BYTES, size - CLIENT_LENGTH_BYTES);
        (void)evbuffer_drain(input, size); /* cannot fail: so many are there */
    }
}
