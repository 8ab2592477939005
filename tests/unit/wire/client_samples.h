/* SPDX-License-Identifier: Apache-2.0 */

/* One sound frame of each kind that clients and nodes exchange: for tests, and as seeds for fuzzing. */
#ifndef TESTS_WIRE_CLIENT_SAMPLES_H
#define TESTS_WIRE_CLIENT_SAMPLES_H

#include "wire/client.h"

#define CLIENT_SAMPLE_COUNT 13

/* Handed over: client_frame_free(). */
Gavel__ClientFrame *client_sample_make(size_t which, const char **ret_name);

#endif
