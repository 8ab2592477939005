/* SPDX-License-Identifier: Apache-2.0 */

/* One sound frame of each kind, and of each kind of Raft's messages: for tests, and as seeds for fuzzing. */
#ifndef TESTS_WIRE_SAMPLES_H
#define TESTS_WIRE_SAMPLES_H

#include "wire/peer.h"

#define SAMPLE_COUNT (RAFT_MESSAGE_KIND_COUNT + 15)

struct sample {
    char name[32];
    struct peer_frame frame;
    struct raft_entry entries[4];
    uint8_t config[RAFT_CONFIG_BYTES_MAX];
    uint8_t data[300];
};

void sample_make(size_t which, struct sample *ret_sample);

#endif
