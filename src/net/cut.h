/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Cuts the bytes of a stream into frames. Peers and clients frame alike: four
 * bytes of length, the most significant first, then that many bytes.
 */
#ifndef NET_CUT_H
#define NET_CUT_H

#include <stddef.h>
#include <stdint.h>

struct bufferevent;

#define CUT_LENGTH_BYTES 4

/* The length is 0, or more than `most`. */
#define CUT_BAD SIZE_MAX

/*
 * The size of the next frame, including its length field. 0 if it is not complete
 * yet: the stream then calls again when it is, not for every piece. CUT_BAD: the
 * bytes in `ret_length` may show what the other side speaks instead.
 */
size_t cut_next(struct bufferevent *stream, size_t most, uint8_t ret_length[CUT_LENGTH_BYTES]);

#endif
