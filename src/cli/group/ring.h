/* SPDX-License-Identifier: Apache-2.0 */

/* Ringing the doorbell of a candidate from outside. */
#ifndef CLI_GROUP_RING_H
#define CLI_GROUP_RING_H

/*
 * Sends "look at this group now" to an address as registrations have it,
 * "127.0.0.1:4711" or "[::1]:4711". Only a hint: whatever goes wrong costs
 * the time until the next look, so nothing is returned.
 */
void ring_address(const char *address, const char *group);

#endif
