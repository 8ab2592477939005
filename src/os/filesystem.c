/* SPDX-License-Identifier: Apache-2.0 */

/*
 * SQLite in WAL mode needs locks and shared memory that work between all users of
 * the file. LMDB needs a memory map that agrees with what is written. gavel's clock
 * and process identities are valid on one machine only. Network and cluster file
 * systems offer none of this, and anything may be behind FUSE. The numbers are those
 * of <linux/magic.h> and statfs(2); for file systems outside the kernel, those of
 * coreutils' stat.
 */
#include "os/filesystem.h"

#include <stddef.h>

static const struct {
    uint64_t magic;
    const char *name;
} refused[] = {
    {0x00006969, "NFS"},      {0x0000517B, "SMB"},    {0xFF534D42, "CIFS"},   {0xFE534D42, "SMB2"},
    {0x0000564C, "NCP"},      {0x01021997, "9p"},     {0x5346414F, "AFS"},    {0x6B414653, "kAFS"},
    {0x73757245, "Coda"},     {0x00C36400, "Ceph"},   {0x65735546, "FUSE"},   {0x01161970, "GFS2"},
    {0x7461636F, "OCFS2"},    {0x0BD00BD0, "Lustre"}, {0x47504653, "GPFS"},   {0xAAD7AAEA, "PanFS"},
    {0x786F4256, "vboxsf"},   {0x7C7C6673, "prl_fs"}, {0xBACBACBC, "vmhgfs"}, {0x19830326, "BeeGFS"},
    {0x20030528, "OrangeFS"}, {0x61636673, "ACFS"},   {0xBEEFDEAD, "SNFS"},   {0x013111A8, "IBRIX"},
};

const char *filesystem_refused(uint64_t magic)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        if (refused[i].magic == magic)
            return refused[i].name;
    }
    return NULL;
}

const char *filesystem_in_memory(uint64_t magic)
{
    return magic == 0x01021994 ? "tmpfs" : magic == 0x858458F6 ? "ramfs" : NULL;
}
