/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/errand.h"

#include <stdlib.h>

struct errand *errand_new(uint64_t client, struct mailbox *reply_to, Gavel__ClientFrame *frame)
{
    struct errand *errand = malloc(sizeof *errand);

    if (!errand) {
        client_frame_free(frame);
        return NULL;
    }
    *errand = (struct errand){.client = client, .reply_to = reply_to, .frame = frame};
    return errand;
}

void errand_free(struct errand *errand)
{
    if (!errand)
        return;
    client_frame_free(errand->frame);
    free(errand);
}
