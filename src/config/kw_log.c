#include "config/parser.h"

static const char *const format_names[] = {
    "default", "rfc3164", "rfc5424", "short", "raw", "timed", "iso", "priority", "local",
};

/* --- sampling: "1,3-5:10" --- */

static int parse_range(struct cfg_parser *p, const struct cfg_kw *kw, struct str text,
                       struct cfg_log_range *out)
{
    size_t dash = str_chr(text, '-');
    uint64_t low, high;

    if (str_to_u64(str_make(text.ptr, dash), &low) != 0 ||
        (dash < text.len && str_to_u64(str_from(text, dash + 1), &high) != 0))
        return cfg_kw_fail(p, kw,
                           "'%.*s' is not a sampling range; expected <number> or <low>-<high>",
                           STR_FMT(text));
    if (dash == text.len)
        high = low;
    if (low == 0 || high < low || high > 1000000)
        return cfg_kw_fail(p, kw, "'%.*s' is not a sampling range; expected numbers from 1 upwards",
                           STR_FMT(text));
    *out = (struct cfg_log_range){.low = (int)low, .high = (int)high};
    return 0;
}

/* Puts a range where it belongs in order; it must not touch another. */
static int insert_range(struct cfg_parser *p, const struct cfg_kw *kw, struct cfg_log *log,
                        struct cfg_log_range range)
{
    int at = log->sample_range_count;

    for (int i = 0; i < log->sample_range_count; i++) {
        if (range.low <= log->sample_ranges[i].high && log->sample_ranges[i].low <= range.high)
            return cfg_kw_fail(p, kw, "the sampling ranges overlap at %d", range.low);
    }
    for (; at > 0 && log->sample_ranges[at - 1].low > range.low; at--)
        log->sample_ranges[at] = log->sample_ranges[at - 1];
    log->sample_ranges[at] = range;
    log->sample_range_count++;
    return 0;
}

static int parse_sample(struct cfg_parser *p, const struct cfg_kw *kw, struct cfg_log *log,
                        const char *word)
{
    struct str ranges = str_of(word), size;
    size_t colon = str_chr(ranges, ':');
    uint64_t count;

    if (colon == ranges.len)
        return cfg_kw_fail(p, kw, "'%s' has no sample size; expected <ranges>:<size>", word);
    size = str_from(ranges, colon + 1);
    ranges.len = colon;
    log->sample_ranges = cfg_new(p, (ranges.len + 1) * sizeof(*log->sample_ranges));
    if (!log->sample_ranges)
        return SP_ENOMEM;
    while (ranges.len) {
        size_t comma = str_chr(ranges, ',');
        struct cfg_log_range range = {0};

        if (log->sample_range_count == 256)
            return cfg_kw_fail(p, kw, "too many sampling ranges, at most 256 are allowed");
        if (parse_range(p, kw, str_make(ranges.ptr, comma), &range) != 0 ||
            insert_range(p, kw, log, range) != 0)
            return SP_EINVAL;
        ranges = str_from(ranges, comma + 1);
    }
    if (log->sample_range_count == 0)
        return cfg_kw_fail(p, kw, "'%s' has no ranges; expected <ranges>:<size>", word);
    if (str_to_u64(size, &count) != 0 || count > 1000000 ||
        count < (uint64_t)log->sample_ranges[log->sample_range_count - 1].high)
        return cfg_kw_fail(p, kw,
                           "'%.*s' is not a sample size; expected a number that the ranges do not "
                           "exceed",
                           STR_FMT(size));
    log->sample_size = (int)count;
    log->sample_range_low = log->sample_ranges[0].low;
    log->sample_range_high = log->sample_ranges[0].high;
    return 0;
}

/* --- the target --- */

static int parse_target(struct cfg_parser *p, const struct cfg_kw *kw, struct cfg_log *log,
                        const char *word)
{
    log->text = word;
    if (strncmp(word, "ring@", 5) == 0 || strncmp(word, "backend@", 8) == 0)
        return cfg_kw_fail(p, kw,
                           "'%s': rings and log backends are HAProxy features that Sallyport does "
                           "not support; expected an address, a path, 'stdout', 'stderr' or fd@<n>",
                           word);
    if (strcmp(word, "stdout") == 0 || strcmp(word, "stderr") == 0) {
        log->address = (struct addr_spec){.fd = strcmp(word, "stdout") == 0 ? 1 : 2};
        return 0;
    }
    if (cfg_value_addr(p, kw, word, ADDR_RESOLVE | ADDR_DATAGRAM, &log->address) != 0)
        return SP_EINVAL;
    if (log->address.fd < 0 && !log->address.datagram)
        return cfg_kw_fail(p, kw,
                           "'%s': logs are sent as datagrams; expected an address without "
                           "'tcp@' or 'stream+'",
                           word);
    if (!log->address.port_given)
        addr_set_port(&log->address.addr, 514);
    return 0;
}

static int parse_level(struct cfg_parser *p, const struct cfg_kw *kw, const char *word, int *out)
{
    return cfg_value_word(p, kw, word, logsink_level_names, 8, out);
}

/* The words after the target. How many were taken, or negative. */
static int parse_details(struct cfg_parser *p, const struct cfg_kw *kw, struct cfg_log *log,
                         int argc, char **argv)
{
    int at = 0, status = 0;
    int64_t len = log->len;

    while (at + 1 < argc && status == 0) {
        if (strcmp(argv[at], "len") == 0)
            status = cfg_value_int(p, kw, argv[at + 1], 80, 65535, &len);
        else if (strcmp(argv[at], "format") == 0)
            status = cfg_value_word(p, kw, argv[at + 1], format_names,
                                    sizeof(format_names) / sizeof(format_names[0]), &log->format);
        else if (strcmp(argv[at], "sample") == 0)
            status = parse_sample(p, kw, log, argv[at + 1]);
        else if (strcmp(argv[at], "profile") == 0)
            status = cfg_kw_fail(p, kw,
                                 "'profile' is a HAProxy keyword that Sallyport does not support");
        else
            break;
        at += 2;
    }
    if (status != 0)
        return status;
    log->len = (int)len;
    if (at == argc)
        return cfg_kw_fail(p, kw, "missing facility; expected '%s %s'", kw->name, kw->args);
    if (cfg_value_word(p, kw, argv[at++], logsink_facility_names, 24, &log->facility) != 0)
        return SP_EINVAL;
    if (at < argc && parse_level(p, kw, argv[at++], &log->max_level) != 0)
        return SP_EINVAL;
    if (at < argc && parse_level(p, kw, argv[at++], &log->min_level) != 0)
        return SP_EINVAL;
    return at;
}

int cfg_parse_log_line(struct cfg_parser *p, const struct cfg_kw *kw, struct cfg_log ***end,
                       int argc, char **argv)
{
    struct cfg_log *log = cfg_new(p, sizeof(*log));
    int taken;

    if (!log)
        return argc;
    *log = (struct cfg_log){.loc = p->loc,
                            .text = argv[0],
                            .len = 1024,
                            .max_level = LOG_LEVEL_DEBUG,
                            .facility = 16,
                            .address = {.fd = -1}};
    /* Kept even when it is wrong: that the section has no 'log' would be a second, false complaint. */
    **end = log;
    *end = &log->next;
    if (argc == 1 && strcmp(argv[0], "global") == 0) {
        log->global = true;
        return 1;
    }
    if (parse_target(p, kw, log, argv[0]) != 0)
        return SP_EINVAL;
    taken = parse_details(p, kw, log, argc - 1, argv + 1);
    return taken < 0 ? taken : taken + 1;
}

static int parse_global_log(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                            char **argv)
{
    struct cfg_global *g = object;

    if (p->modifier != CFG_MODIFIER_NONE) {
        g->logs = NULL;
        p->global_logs_end = &g->logs;
        return 0;
    }
    if (strcmp(argv[0], "global") == 0)
        return cfg_kw_fail(p, kw,
                           "'global' means this section and cannot stand in it; expected an "
                           "address");
    return cfg_parse_log_line(p, kw, &p->global_logs_end, argc, argv);
}

static int parse_proxy_log(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                           char **argv)
{
    struct cfg_proxy *px = object;

    if (p->modifier != CFG_MODIFIER_NONE) {
        px->logs = NULL;
        p->scope->logs_end = &px->logs;
        return 0;
    }
    return cfg_parse_log_line(p, kw, &p->scope->logs_end, argc, argv);
}

static int parse_log_format(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                            char **argv)
{
    struct cfg_proxy *px = object;

    px->log_format = argv[0];
    px->log_format_loc = p->loc;
    return 1;
}

static int parse_send_hostname(struct cfg_parser *p, const struct cfg_kw *kw, void *object,
                               int argc, char **argv)
{
    struct cfg_global *g = object;

    g->log_send_hostname = argc ? argv[0] : "";
    g->log_send_hostname_set = true;
    return argc ? 1 : 0;
}

#define LOG_ARGS \
    "<target> [len <length>] [format <format>] [sample <ranges>:<size>] <facility> [<level> [<minlevel>]]"

const struct cfg_kw cfg_kw_log[] = {
    {.name = "log",
     .sections = CFG_SEC_GLOBAL,
     .flags = CFG_KW_CAN_NEGATE,
     .min_args = 1,
     .args = LOG_ARGS,
     .help = "where 'log global' and the process's own messages go",
     .parse = parse_global_log},
    {.name = "log",
     .sections = CFG_DPROXY,
     .flags = CFG_KW_CAN_NEGATE,
     .min_args = 1,
     .args = "global | " LOG_ARGS,
     .help = "where traffic is logged",
     .parse = parse_proxy_log},
    {.name = "log-format",
     .sections = CFG_DFRONT,
     .min_args = 1,
     .args = "<format>",
     .help = "the log line",
     .parse = parse_log_format},
    {.name = "log-format-sd",
     .sections = CFG_DFRONT,
     .kind = CFG_KW_STRING,
     .at = offsetof(struct cfg_proxy, log_format_sd),
     .args = "<format>",
     .help = "the structured data of RFC 5424 log lines"},
    {.name = "log-send-hostname",
     .sections = CFG_SEC_GLOBAL,
     .args = "[<name>]",
     .help = "puts a host name into log lines, by default the system's",
     .parse = parse_send_hostname},
    {.name = "log-tag",
     .sections = CFG_SEC_GLOBAL,
     .kind = CFG_KW_STRING,
     .at = offsetof(struct cfg_global, log_tag),
     .args = "<text>",
     .help = "the program's name in log lines"},
    {.name = "log-tag",
     .sections = CFG_DPROXY,
     .kind = CFG_KW_STRING,
     .at = offsetof(struct cfg_proxy, log_tag),
     .args = "<text>",
     .help = "the program's name in the log lines of this section"},
    CFG_KW_END,
};
