/* SPDX-License-Identifier: Apache-2.0 */

/* The files that a configuration names: whether they exist, and fit each other and this node. */
#include "base/error.h"
#include "config/run_spec.h"
#include "daemon/api/token.h"
#include "daemon/commands/leader_commands.h"
#include "daemon/config/draft.h"
#include "net/seal.h"
#include "net/tls.h"
#include "os/clock.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WARN_DAYS 30
#define SECONDS_PER_DAY (24 * 3600)

static enum gavel_status check_readable(struct config_draft *draft, enum config_id id, const char *path,
                                        bool is_private)
{
    struct stat about;

    if (stat(path, &about) || access(path, R_OK))
        return config_wrong(draft, id, "cannot read %.200s: %s", path, strerror(errno));
    if (S_ISDIR(about.st_mode))
        return config_wrong(draft, id, "%.200s is a directory, not a file", path);
    if (is_private && about.st_mode & (S_IRWXG | S_IRWXO) & ~(mode_t)S_IRGRP)
        config_warn(draft, "%.200s is accessible to everybody on this machine; use chmod 600", path);
    return GAVEL_OK;
}

static enum gavel_status check_certificate(struct config_draft *draft)
{
    const struct daemon_config *config = &draft->config;
    struct tls_identity identity;
    struct gavel_error cause = {0};
    char day[25];
    int64_t left;

    if (tls_identity_of_file(config->tls_cert, &identity, &cause) != GAVEL_OK)
        return config_wrong(draft, CONFIG_OF_TLS_CERT, "%s", cause.message);
    if (strcmp(identity.cluster, config->cluster) != 0)
        return config_wrong(
            draft, CONFIG_OF_TLS_CERT,
            "%.200s is for cluster \"%s\" (O), and this is \"%s\"; issue one with `gavel cert issue %s`",
            config->tls_cert, identity.cluster, config->cluster, config->node);
    if (strcmp(identity.node, config->node) != 0)
        return config_wrong(
            draft, CONFIG_OF_TLS_CERT,
            "%.200s is for node \"%s\" (CN), and this is \"%s\"; issue one with `gavel cert issue %s`",
            config->tls_cert, identity.node, config->node, config->node);
    if (identity.kind == TLS_KIND_CLIENT)
        return config_wrong(
            draft, CONFIG_OF_TLS_CERT,
            "%.200s is a client's certificate, which other nodes reject; issue one with `gavel cert issue %s`",
            config->tls_cert, config->node);
    if (identity.kind != TLS_KIND_NODE)
        return config_wrong(
            draft, CONFIG_OF_TLS_CERT,
            "%.200s does not say that it is a node's, like all from before 0.7.0: it lacks the URI urn:gavel:%s:node:%s; issue it again with `gavel cert issue %s --force`. Older nodes accept the new one, too",
            config->tls_cert, config->cluster, config->node, config->node);
    left = identity.expires_wall_s - clock_wall_ms() / 1000;
    wall_time_format(identity.expires_wall_s * 1000, day);
    if (left <= 0)
        return config_wrong(draft, CONFIG_OF_TLS_CERT,
                            "%.200s has expired (%s); issue a new one with `gavel cert issue %s`",
                            config->tls_cert, day, config->node);
    if (left < WARN_DAYS * SECONDS_PER_DAY)
        config_warn(draft, "the certificate %.200s expires in %d days (%s); issue a new one and send SIGHUP",
                    config->tls_cert, (int)(left / SECONDS_PER_DAY), day);
    return GAVEL_OK;
}

static enum gavel_status check_tls(struct config_draft *draft)
{
    static const enum config_id ids[] = {CONFIG_OF_TLS_CA, CONFIG_OF_TLS_CERT, CONFIG_OF_TLS_KEY};
    const struct daemon_config *config = &draft->config;
    const char *const paths[] = {config->tls_ca, config->tls_cert, config->tls_key};
    const struct tls_files files = {config->tls_ca, config->tls_cert, config->tls_key, config->tls_revoked};
    struct gavel_error cause = {0};
    enum gavel_status status = GAVEL_OK;
    SSL_CTX *context = NULL;

    if (!config->has_tls)
        return GAVEL_OK;
    for (size_t i = 0; i < 3 && status == GAVEL_OK; i++)
        status = config_is_set(draft, ids[i])
                     ? check_readable(draft, ids[i], paths[i], ids[i] == CONFIG_OF_TLS_KEY)
                     : config_wrong(draft, ids[i], "tls needs ca, cert and key, and this one is missing");
    if (status == GAVEL_OK)
        status = check_certificate(draft);
    if (status != GAVEL_OK)
        return status;
    if (tls_context_make(&files, TLS_PEER, &context, &cause) != GAVEL_OK)
        return config_wrong(draft, CONFIG_OF_TLS_CERT, "%s", cause.message);
    SSL_CTX_free(context);
    return GAVEL_OK;
}

static enum gavel_status check_secret(struct config_draft *draft)
{
    uint8_t key[SEAL_KEY_BYTES];
    struct gavel_error cause = {0};
    enum gavel_status status;

    if (!draft->config.secret[0])
        return GAVEL_OK;
    status = check_readable(draft, CONFIG_OF_SECRET, draft->config.secret, true);
    if (status != GAVEL_OK)
        return status;
    status = seal_key_read(draft->config.secret, key, &cause);
    explicit_bzero(key, sizeof key);
    return status != GAVEL_OK ? config_wrong(draft, CONFIG_OF_SECRET, "%s", cause.message) : GAVEL_OK;
}

static enum gavel_status check_token(struct config_draft *draft)
{
    struct gavel_error cause = {0};
    struct api_token token;
    enum gavel_status status;

    if (!draft->config.token[0])
        return GAVEL_OK;
    status = check_readable(draft, CONFIG_OF_TOKEN, draft->config.token, true);
    if (status != GAVEL_OK)
        return status;
    status = api_token_read(draft->config.token, &token, &cause);
    explicit_bzero(&token, sizeof token);
    return status != GAVEL_OK ? config_wrong(draft, CONFIG_OF_TOKEN, "%s", cause.message) : GAVEL_OK;
}

enum gavel_status config_check_files(struct config_draft *draft)
{
    const char *data = draft->config.data;
    enum gavel_status status;
    struct stat about;

    if (stat(data, &about) == 0 && !S_ISDIR(about.st_mode))
        return config_wrong(draft, CONFIG_OF_DATA, "%.200s is a file; the data need a directory of their own",
                            data);
    status = check_tls(draft);
    if (status == GAVEL_OK)
        status = check_secret(draft);
    return status != GAVEL_OK ? status : check_token(draft);
}

/* Programs and users are looked up now, and not by whichever node leads some night. */
enum gavel_status config_check_children(struct config_draft *draft)
{
    struct leader_commands_plan plan;
    enum gavel_status status;

    if (!draft->config.has_leader_commands)
        return GAVEL_OK;
    status = leader_commands_plan_make(&draft->config, &plan, draft->error);
    if (status == GAVEL_OK)
        leader_commands_plan_done(&plan);
    return status;
}
