/* SPDX-License-Identifier: Apache-2.0 */

/* Rings the doorbell of a candidate from outside. */
#ifndef CLI_GROUP_RING_H
#define CLI_GROUP_RING_H

/*
 * Sends "look at this group now" to an address in the form of registrations,
 * "127.0.0.1:4711" or "[::1]:4711". Only a hint: a failure costs no more than
 * the time until the next look, so nothing is returned.
 */
void ring_address(const char *address, const char *group);

#endif
