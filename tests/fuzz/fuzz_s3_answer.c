/* SPDX-License-Identifier: Apache-2.0 */

/* What an object store answers: a list or a refusal in XML, a mandate or a registration in JSON. */
#include "target.h"

#include "base/assert.h"
#include "store/row_json.h"
#include "store/s3/s3.h"

#include <stdlib.h>
#include <string.h>

static void read_xml(const char *text, size_t size)
{
    struct s3_span rest = {text, size};
    struct s3_span content;
    char value[64];
    char name[NAME_MAX_BYTES + 1];

    (void)s3_xml_text(rest, "Code", value, sizeof value);
    (void)s3_xml_text(rest, "NextContinuationToken", value, sizeof value);
    while (s3_xml_find(rest, "Contents", &content, &rest)) {
        ASSERT(content.at >= text && content.length <= size);
        ASSERT(rest.at + rest.length == text + size);
        if (s3_xml_text(content, "Key", value, sizeof value) && s3_name_in_key(value, "p/w=", ".json", name))
            ASSERT(name_check("name", name, NULL) == GAVEL_OK);
    }
}

static void read_json(const char *text, size_t size)
{
    struct mandate_row row;
    struct registration registration;
    struct nonce write = {1, 2};
    char *again;

    if (row_json_read(text, size, &row, &write) == ROW_JSON_GOOD) {
        again = row_json_write(&row, write);
        ASSERT(!again || row_json_read(again, strlen(again), &row, &write) == ROW_JSON_GOOD);
        free(again);
    }
    if (registration_json_read(text, size, &registration, &write) == ROW_JSON_GOOD) {
        again = registration_json_write(&registration, write);
        ASSERT(!again ||
               registration_json_read(again, strlen(again), &registration, &write) == ROW_JSON_GOOD);
        free(again);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1); /* answers end with a NUL that does not count */

    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    read_xml(text, size);
    read_json(text, size);
    free(text);
    return 0;
}
