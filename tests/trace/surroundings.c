/* SPDX-License-Identifier: Apache-2.0 */

/* The commands of a story about what surrounds one node: its settings, its clock, its disk, its work. */

#include "trace/command.h"
#include "trace/words.h"

#include <stdlib.h>
#include <string.h>

bool command_slow_disk(struct cluster *cluster, struct host *host, char **words, size_t count)
{
    return count == 3 && words_take_duration(cluster->out, words[2], &host->disk.takes);
}

bool command_disk_fails(struct cluster *cluster, struct host *host, char **words, size_t count)
{
    (void)cluster;
    (void)words;
    host->disk.fails = true;
    return count == 2;
}

bool command_work_slow(struct cluster *cluster, struct host *host, char **words, size_t count)
{
    return count == 3 && words_take_duration(cluster->out, words[2], &host->stop_takes);
}

/* clock a 900ppm, clock a rate=+900ppm: from now on its clock runs so much too fast */
bool command_clock(struct cluster *cluster, struct host *host, char **words, size_t count)
{
    const char *word = count == 3 ? words[2] : "";
    char *unit;
    long long ppm;

    if (strncmp(word, "rate=", 5) == 0)
        word += 5;
    ppm = strtoll(word, &unit, 10);
    if (unit == word || strcmp(unit, "ppm") != 0 || ppm < -100000 || ppm > 100000)
        return command_refuse(cluster, "\"%s\" is no rate of a clock; 900ppm, -900ppm and rate=+900ppm are",
                              word);
    host->clock_base = host_clock(cluster, host);
    host->clock_from = cluster->now;
    host->clock_ppm = ppm;
    return true;
}

/* set a election_min=400 …: settings of this node alone, from now on. What it has decided already stays. */
bool command_set(struct cluster *cluster, struct host *host, char **words, size_t count)
{
    struct raft_settings settings = host->settings;
    struct gavel_error error;

    for (size_t i = 2; i < count; i++) {
        char *value = strchr(words[i], '=');

        if (!value)
            return command_refuse(cluster, "\"%s\" is no setting; election_min=400 is one", words[i]);
        *value++ = '\0';
        if (!settings_take(&settings, words[i], value))
            return command_refuse(cluster, "\"%s=%s\" is no setting", words[i], value);
    }
    if (count < 3)
        return command_refuse(cluster, "set what? election_min=400 is a setting");
    if (raft_settings_check(&settings, &error) != GAVEL_OK) {
        fprintf(cluster->out, "refused: %s\n", error.message);
        return true;
    }
    host->settings = settings;
    if (host->is_alive)
        host->node.raft.settings = settings;
    return true;
}

/* disk a hang N write[s]: the next N writes do not finish, each until `disk a resume` lets it */
static bool disk_hangs(struct cluster *cluster, struct disk *disk, char **words, size_t count)
{
    long writes = count == 5 ? strtol(words[3], NULL, 10) : 0;

    if (count != 5 || writes < 1 || writes > 1000 ||
        (strcmp(words[4], "write") != 0 && strcmp(words[4], "writes") != 0))
        return command_refuse(cluster, "how many writes? disk a hang 1 write");
    disk->to_hang = (unsigned)writes;
    return true;
}

/* disk a hang 1 write | resume | batch [off] */
bool command_disk(struct cluster *cluster, struct host *host, char **words, size_t count)
{
    const char *what = count > 2 ? words[2] : "";

    if (strcmp(what, "hang") == 0)
        return disk_hangs(cluster, &host->disk, words, count);
    if (strcmp(what, "resume") == 0 && count == 3) {
        if (!disk_resume(cluster, &host->disk))
            return command_refuse(cluster, "no write of %c hangs", name_of(host->id));
        return true;
    }
    if (strcmp(what, "batch") == 0 && (count == 3 || (count == 4 && strcmp(words[3], "off") == 0))) {
        host->disk.batches = count == 3;
        return true;
    }
    return command_refuse(cluster, "a disk can hang 1 write, resume, batch, and batch off");
}
