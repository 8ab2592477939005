/* SPDX-License-Identifier: Apache-2.0 */

#include "net/cut.h"

#include "wire/peer.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

_Static_assert(CUT_LENGTH_BYTES == PEER_LENGTH_BYTES, "one framing for all");

size_t cut_next(struct bufferevent *stream, size_t most, uint8_t ret_length[CUT_LENGTH_BYTES])
{
    struct evbuffer *input = bufferevent_get_input(stream);
    size_t wanted = CUT_LENGTH_BYTES;

    if (evbuffer_copyout(input, ret_length, CUT_LENGTH_BYTES) == CUT_LENGTH_BYTES) {
        size_t size = peer_frame_length(ret_length);

        if (size == 0 || size > most)
            return CUT_BAD;
        wanted += size;
        if (evbuffer_get_length(input) >= wanted)
            return wanted;
    }
    bufferevent_setwatermark(stream, EV_READ, wanted, 0);
    return 0;
}
