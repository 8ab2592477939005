/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A configuration under construction, with the origin of each part, so that an error
 * can name the line. Only for the files of this directory.
 */
#ifndef DAEMON_CONFIG_DRAFT_H
#define DAEMON_CONFIG_DRAFT_H

#include "daemon/config/read.h"
#include "daemon/config/settings.h"

#define CONFIG_PEER_PORT "7400"
#define CONFIG_API_PORT "7500"
#define CONFIG_CLIENTS_PORT "7600"

/* Time for the work to notice that it must stop and to report that it has, besides the children's grace. */
#define CONFIG_STOP_MARGIN_MS 10

enum config_source { CONFIG_DEFAULT, CONFIG_FILE, CONFIG_ENVIRONMENT, CONFIG_FLAG };

struct config_draft {
    struct daemon_config config;
    bool bootstraps;
    uint8_t priority; /* of this node */
    bool is_witness;
    struct {
        enum config_source source;
        int line; /* FILE */
    } origins[CONFIG_SETTINGS_COUNT];
    int peers_line;                   /* 0: not in the file */
    int peer_lines[RAFT_MEMBERS_MAX]; /* by position in config.peers, until they are sorted */
    int children_line;
    size_t self; /* position in config.peers */
    struct config_warnings *warnings;
    struct gavel_error *error;
};

#define CONFIG_ORIGIN_MAX 320
/* "gaveld.yaml:4: listen", "GAVELD_LISTEN", "--listen", or "listen". Returns buffer. */
const char *config_origin(const struct config_draft *draft, enum config_id id,
                          char buffer[CONFIG_ORIGIN_MAX]);

/* ERR_INVALID, with the origin of that setting, or with a line of the file. */
GAVEL_CHECKED enum gavel_status config_wrong(struct config_draft *draft, enum config_id id,
                                             const char *format, ...) __attribute__((format(printf, 3, 4)));
GAVEL_CHECKED enum gavel_status config_wrong_line(struct config_draft *draft, int line, const char *format,
                                                  ...) __attribute__((format(printf, 3, 4)));
void config_warn(struct config_draft *draft, const char *format, ...) __attribute__((format(printf, 2, 3)));

static inline bool config_is_set(const struct config_draft *draft, enum config_id id)
{
    return draft->origins[id].source != CONFIG_DEFAULT;
}

/* Reads one value. ERR_INVALID; *error does not name the origin. */
GAVEL_CHECKED enum gavel_status config_value_read(struct config_draft *draft,
                                                  const struct config_setting *setting, const char *text,
                                                  struct gavel_error *error);
GAVEL_CHECKED enum gavel_status config_priority_read(const char *text, uint8_t *ret_priority,
                                                     struct gavel_error *error);

/* "host", "host:port", "[v6]", "[v6]:port" with the port filled in. ERR_INVALID. */
GAVEL_CHECKED enum gavel_status config_address_read(const char *text, const char *port,
                                                    char ret_address[PEER_ADDRESS_MAX + 1],
                                                    struct gavel_error *error);
/* 0.0.0.0 and [::], at which no node can be reached. */
bool config_address_is_any(const char *address);
/* The same text, or the same address when resolved. */
bool config_address_is_same(const char *a, const char *b);

/* The parts of reading and checking; each returns the first error. */
GAVEL_CHECKED enum gavel_status config_file_read(struct config_draft *draft, const char *file);
GAVEL_CHECKED enum gavel_status config_fill_in(struct config_draft *draft); /* what follows from the rest */
GAVEL_CHECKED enum gavel_status config_check(struct config_draft *draft);
GAVEL_CHECKED enum gavel_status config_check_files(struct config_draft *draft);
GAVEL_CHECKED enum gavel_status config_check_timing(struct config_draft *draft);
GAVEL_CHECKED enum gavel_status config_check_children(struct config_draft *draft);

#endif
