/* SPDX-License-Identifier: Apache-2.0 */

/* What comes out of a driver, made fit for terminals and JSON. */
#ifndef STORE_PLAIN_H
#define STORE_PLAIN_H

#include "base/request.h"

/* Puts a question mark in the place of each byte that is no UTF-8 or belongs to a control character. */
void text_make_plain(char *text);

/* The same for all that a reply tells; rows of lists whose names are no names are dropped. */
void reply_make_plain(struct store_reply *reply);

#endif
