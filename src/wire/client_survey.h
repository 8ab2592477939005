/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A look at the bytes of a frame before protobuf-c takes them apart: for what
 * can be refused without taking any memory, and for what protobuf-c would not
 * mind (text with a NUL in it, the same thing said twice).
 */
#ifndef WIRE_CLIENT_SURVEY_H
#define WIRE_CLIENT_SURVEY_H

#include <stddef.h>
#include <stdint.h>

/* What is wrong with the payload of a frame, static; NULL if nothing was found. */
const char *client_survey(const uint8_t *bytes, size_t size);

#endif
