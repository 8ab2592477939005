/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/check/check_cost.h"

#include "base/error.h"
#include "cli/json_out.h"
#include "cli/output.h"
#include "store/s3/cost.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOURS_PER_MONTH 730.0
#define PRICE_MAX 1000.0

static const char prices_text[] =
    "Prices change and differ by provider and region: see aws.amazon.com/s3/pricing or the page of yours, and give them with --prices. "
    "Storage and traffic come on top. A server of your own bills none of this.";

#ifdef STORE_S3
static const struct s3_prices *usual = &s3_prices_default;

static struct s3_requests requests_of(const struct cli *cli, int64_t candidates)
{
    return s3_requests_per_hour(&cli->config.settings, (size_t)candidates - 1, 1);
}

static double cost_per_month(struct s3_requests requests, const struct load_prices *prices)
{
    const struct s3_prices of_s3 = {.put_usd = prices->put, .get_usd = prices->get, .list_usd = prices->list};

    return s3_requests_cost(requests, of_s3) * HOURS_PER_MONTH;
}
#else
/* A build without the driver has no such store either: nobody asks. */
static const struct s3_prices none;
static const struct s3_prices *usual = &none;

static struct s3_requests requests_of(const struct cli *cli, int64_t candidates)
{
    (void)cli;
    (void)candidates;
    return (struct s3_requests){0};
}

static double cost_per_month(struct s3_requests requests, const struct load_prices *prices)
{
    (void)requests;
    (void)prices;
    return 0;
}
#endif

enum gavel_status load_prices_parse(const char *text, struct load_prices *ret_prices,
                                    struct gavel_error *error)
{
    double values[3] = {usual->put_usd, usual->get_usd, usual->list_usd};
    const char *at = text;

    for (size_t i = 0; text && i < 3; i++) {
        char *end;

        values[i] = strtod(at, &end);
        if (end == at || !(values[i] >= 0 && values[i] <= PRICE_MAX) || *end != (i < 2 ? ',' : '\0'))
            return error_set(
                error, GAVEL_ERR_INVALID,
                "--prices: \"%.60s\" is not three prices for a thousand requests, PUT,GET,LIST, such as 0.005,0.0004,0.005",
                text);
        at = end + 1;
    }
    *ret_prices = (struct load_prices){.put = values[0], .get = values[1], .list = values[2]};
    return GAVEL_OK;
}

static bool is_billed(const struct store_capabilities *store) { return strcmp(store->name, "s3") == 0; }

void check_cost_print(const struct cli *cli, const struct store_capabilities *store, int64_t candidates,
                      const struct load_prices *prices)
{
    struct s3_requests requests = requests_of(cli, candidates);

    if (!is_billed(store))
        return;
    printf("%s\nRequests to the object store, and what they cost%s\n", style_begin(cli, STYLE_BOLD),
           style_end(cli, STYLE_BOLD));
    printf("  %-22s  %.0f an hour\n", "PUT", requests.puts);
    printf("  %-22s  %.0f an hour\n", "GET", requests.gets);
    printf("  %-22s  %.0f an hour\n", "LIST", requests.lists);
    printf("  %-22s  about %.2f US dollars a month, at %g, %g and %g for a thousand\n", "cost",
           cost_per_month(requests, prices), prices->put, prices->get, prices->list);
    fputs("  ", stdout);
    print_wrapped(stdout, output_columns(stdout), 2, 2, prices_text);
}

json_t *check_cost_json(const struct cli *cli, const struct store_capabilities *store, int64_t candidates,
                        const struct load_prices *prices)
{
    struct s3_requests requests = requests_of(cli, candidates);
    json_t *json;

    if (!is_billed(store))
        return json_null();
    json = json_object();
    json_put_real(json, "put_per_hour", requests.puts);
    json_put_real(json, "get_per_hour", requests.gets);
    json_put_real(json, "list_per_hour", requests.lists);
    json_put_real(json, "put_usd_per_1000", prices->put);
    json_put_real(json, "get_usd_per_1000", prices->get);
    json_put_real(json, "list_usd_per_1000", prices->list);
    json_put_real(json, "usd_per_month", cost_per_month(requests, prices));
    return json;
}
