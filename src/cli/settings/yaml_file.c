/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The file is read twice. yaml_index.c walks over its events to find the line
 * of each key, and what is wrong with the shape of the file; libcyaml then
 * loads the values by a schema that is made from settings_table. libcyaml
 * alone would not do: the line it reports for an unknown or repeated key is
 * that of the value before it. The children of `gavel run` are passed over by
 * both, and read by run_file.c.
 */
#include "cli/settings/yaml_file.h"

#include "base/assert.h"
#include "base/error.h"
#include "cli/settings/yaml_index.h"
#include "config/whole_file.h"

#include <cyaml/cyaml.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Keeps the first line that libcyaml has to say. */
static void keep_first(cyaml_log_t level, void *context, const char *format, va_list list)
{
    struct gavel_error *error = context;

    (void)level;
    if (error->message[0])
        return;
    vsnprintf(error->message, sizeof error->message, format, list);
    error->message[strcspn(error->message, "\n")] = '\0';
}

struct loaded {
    char *texts[SETTINGS_MAX + OTHER_NAMES_MAX]; /* by position in settings_table, then in other_names */
};

static cyaml_schema_field_t field_of(const char *key, size_t position)
{
    return (cyaml_schema_field_t){
        .key = key,
        .value = {.type = CYAML_STRING,
                  .flags = CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
                  .data_size = sizeof(char),
                  .string = {.min = 0, .max = CONFIG_FILE_MAX}},
        .data_offset = (uint32_t)(offsetof(struct loaded, texts) + position * sizeof(char *)),
    };
}

/* One optional string per key of the table, and per other name of one; the index has refused both at once. */
static void make_schema(cyaml_schema_field_t *fields)
{
    size_t count = 0;

    for (size_t i = 0; i < settings_count; i++)
        if (settings_table[i].key)
            fields[count++] = field_of(settings_table[i].key, i);
    for (const struct other_name *other = other_names; other->of; other++)
        if (other->key)
            fields[count++] = field_of(other->key, settings_count + (size_t)(other - other_names));
    fields[count] = (cyaml_schema_field_t)CYAML_FIELD_END;
}

static enum gavel_status keep(struct setting_values *values, size_t position, const char *text,
                              struct gavel_error *error)
{
    free(values->file_texts[position]);
    values->file_texts[position] = strdup(text);
    return values->file_texts[position] ? GAVEL_OK : error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory");
}

/* Loads by the schema; values->file_texts get copies. */
static enum gavel_status load(const char *name, const char *bytes, size_t length,
                              struct setting_values *values, struct gavel_error *error)
{
    cyaml_schema_field_t fields[SETTINGS_MAX + OTHER_NAMES_MAX + 1];
    const cyaml_schema_value_t schema = {CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct loaded, fields)};
    struct gavel_error cause = {0};
    const cyaml_config_t config = {
        .log_fn = keep_first,
        .log_ctx = &cause,
        .log_level = CYAML_LOG_ERROR,
        .mem_fn = cyaml_mem,
        .flags = CYAML_CFG_IGNORE_UNKNOWN_KEYS}; /* `children`: the index knows others */
    struct loaded *loaded = NULL;
    enum gavel_status status = GAVEL_OK;
    cyaml_err_t failure;

    make_schema(fields);
    failure =
        cyaml_load_data((const uint8_t *)bytes, length, &config, &schema, (cyaml_data_t **)&loaded, NULL);
    if (failure)
        return error_set(error, GAVEL_ERR_INVALID, "%s: %.300s", name,
                         cause.message[0] ? cause.message : cyaml_strerror(failure));
    for (size_t i = 0; loaded && i < settings_count && status == GAVEL_OK; i++)
        if (loaded->texts[i])
            status = keep(values, i, loaded->texts[i], error);
    for (size_t i = 0; loaded && other_names[i].of && status == GAVEL_OK; i++)
        if (loaded->texts[settings_count + i])
            status = keep(values, (size_t)(setting_by_flag(other_names[i].of) - settings_table),
                          loaded->texts[settings_count + i], error);
    (void)cyaml_free(&config, &schema, loaded,
                     0); /* fails only for a wrong schema, and then loading had failed */
    return status;
}

enum gavel_status yaml_file_load(const char *name, struct setting_values *values, struct gavel_error *error)
{
    struct yaml_index index = {0};
    char *bytes = NULL;
    size_t length = 0;
    enum gavel_status status = whole_file_read(name, &bytes, &length, error);

    if (status == GAVEL_OK)
        status = yaml_index_make(name, bytes, length, &index, error);
    if (status == GAVEL_OK && index.count > 0)
        status = load(name, bytes, length, values, error);
    if (status == GAVEL_OK && index.children_line)
        status = run_file_read(name, bytes, length, &values->children, error);
    values->file = name;
    for (size_t i = 0; status == GAVEL_OK && i < settings_count; i++)
        if (values->file_texts[i])
            setting_values_note(values, &settings_table[i], SOURCE_FILE, values->file_texts[i],
                                index.lines[i]);
    free(bytes);
    return status;
}
