/* SPDX-License-Identifier: Apache-2.0 */
#include "disk/internal.h"

enum gavel_status disk_check_pages(const struct disk *disk, const char *path, struct gavel_error *error)
{
    (void)disk;
    (void)path;
    (void)error;
    return GAVEL_OK;
}
