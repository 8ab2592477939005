/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Writes the seeds of peer_frame, obituary, client_frame and silence from real
 * frames, after a change of peer.proto, client.proto, silence.proto or
 * table.proto:
 *
 *     fuzz_seeds tests/fuzz/corpus
 */
#include "client_samples.h"
#include "samples.h"
#include "wire/silence.h"

#include <stdio.h>
#include <stdlib.h>

static void write_file(const char *directory, const char *kind, const char *name, const uint8_t *bytes,
                       size_t size)
{
    char path[4096];
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/%s/%s", directory, kind, name);
    file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, size, file) != size || fclose(file) != 0) {
        perror(path);
        exit(1);
    }
}

static bool write_client_frames(const char *directory)
{
    for (size_t i = 0; i < CLIENT_SAMPLE_COUNT; i++) {
        const char *name;
        Gavel__ClientFrame *frame = client_sample_make(i, &name);
        uint8_t *bytes;
        size_t size;

        if (client_frame_pack(frame, &bytes, &size) != GAVEL_OK)
            return false;
        write_file(directory, "client_frame", name, bytes + CLIENT_LENGTH_BYTES, size - CLIENT_LENGTH_BYTES);
        client_frame_free(frame);
        free(bytes);
    }
    return true;
}

static bool write_silence(const char *directory)
{
    const uint64_t first[] = {3, 4, 900};
    const uint64_t second[] = {UINT64_MAX};
    const struct silence_mark marks[] = {{.age = 3 * NS_PER_MS, .count = 3, .revisions = first},
                                         {.age = 0, .count = 1, .revisions = second}};
    const struct {
        const char *name;
        struct silence_message message;
    } samples[] = {
        {"asks", {.term = 4, .asks = true}},
        {"marks",
         {.term = 4,
          .to_incarnation = 7,
          .asks = true,
          .is_marking = true,
          .config = 99,
          .from = 12,
          .from_age = NS_PER_S,
          .mark_count = 2,
          .marks = marks}},
        {"answer",
         {.term = 4,
          .is_answer = true,
          .held = 14,
          .told = SILENCE_HOLDS,
          .told_term = 3,
          .told_number = 8,
          .told_age = NS_PER_S}},
    };

    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        uint8_t *bytes;
        size_t size;

        if (silence_encode(&samples[i].message, &bytes, &size) != GAVEL_OK)
            return false;
        write_file(directory, "silence", samples[i].name, bytes, size);
        free(bytes);
    }
    return true;
}

int main(int argc, char **argv)
{
    static struct sample sample;
    struct raft_certificate obituary = {.kind = RAFT_CERT_OBITUARY, .node = 3, .incarnation = 4};
    uint8_t datagram[OBITUARY_BYTES];

    if (argc != 2) {
        fprintf(stderr, "seeds: give the directory of the corpus\n");
        return 2;
    }
    for (size_t i = 0; i < SAMPLE_COUNT; i++) {
        uint8_t *bytes;
        size_t size;

        sample_make(i, &sample);
        if (peer_frame_encode(&sample.frame, &bytes, &size) != GAVEL_OK)
            return 1;
        write_file(argv[1], "peer_frame", sample.name, bytes + PEER_LENGTH_BYTES, size - PEER_LENGTH_BYTES);
        free(bytes);
    }
    write_file(argv[1], "obituary", "obituary", datagram, obituary_encode(1, 2, &obituary, datagram));
    return write_client_frames(argv[1]) && write_silence(argv[1]) ? 0 : 1;
}
