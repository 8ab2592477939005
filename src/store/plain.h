/* SPDX-License-Identifier: Apache-2.0 */

/* Makes the output of a driver fit for terminals and JSON. */
#ifndef STORE_PLAIN_H
#define STORE_PLAIN_H

#include "base/request.h"

/* Replaces each byte that is not UTF-8 or belongs to a control character by a question mark. */
void text_make_plain(char *text);

/* The same for all texts of a record. */
void record_make_plain(struct record *record);

/* Likewise for a reply; drops rows of lists whose names are invalid. */
void reply_make_plain(struct store_reply *reply);

#endif
