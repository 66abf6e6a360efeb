/*
 * The arguments of `sallyport bench`: a table of options, each with what it takes and where that goes.
 */
#include "cmd/bench_args.h"

#include "base/diag.h"
#include "http/http.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define CONNECTIONS_MAX 1000000
#define THREADS_MAX 256
#define CPU_MAX 4095
#define SWEEP_MAX 100000

enum kind {
    FLAG,
    NUMBER, /* low to high */
    TIME,   /* above zero */
    TEXT,
    OWN, /* a function of its own */
};

struct option {
    const char *name;
    char letter; /* 0: none */
    enum kind kind;
    size_t offset;
    uint64_t low, high;
    const char *expected;
    int (*parse)(struct bench_args *a, const char *value); /* SP_EINVAL */
};

static int parse_header(struct bench_args *a, const char *value)
{
    struct str text = str_of(value);
    size_t colon = str_chr(text, ':');
    const char **more;

    if (colon == text.len || !http_is_token(str_make(value, colon)))
        return SP_EINVAL;
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)value[i] < 0x20 && value[i] != '\t')
            return SP_EINVAL;
    more = realloc(a->headers, (a->header_count + 1) * sizeof(*more));
    if (!more)
        return SP_ENOMEM;
    a->headers = more;
    a->headers[a->header_count++] = value;
    return 0;
}

static int parse_method(struct bench_args *a, const char *value)
{
    if (!http_is_token(str_of(value)) || http_method_of(str_of(value)) == HTTP_CONNECT)
        return SP_EINVAL;
    a->method = value;
    return 0;
}

/* Digits with at most one point; nothing that strtod takes besides. */
static int parse_decimal(const char *text, double *out)
{
    size_t digits = strspn(text, "0123456789."), points = 0;
    char *end;

    for (const char *s = text; *s; s++)
        points += *s == '.';
    if (digits == 0 || text[digits] || points > 1 || digits == points || digits > 18)
        return SP_EINVAL;
    *out = strtod(text, &end);
    return *end ? SP_EINVAL : 0;
}

static int parse_rate(struct bench_args *a, const char *value)
{
    return parse_decimal(value, &a->rate) != 0 || a->rate <= 0 || a->rate > 1e8 ? SP_EINVAL : 0;
}

static int parse_hold(struct bench_args *a, const char *value)
{
    return parse_decimal(value, &a->hold) != 0 || a->hold <= 0 || a->hold > 1e8 ? SP_EINVAL : 0;
}

static int parse_resume(struct bench_args *a, const char *value)
{
    return parse_decimal(value, &a->resume_ratio) != 0 || a->resume_ratio > 1 ? SP_EINVAL : 0;
}

static int parse_arrivals(struct bench_args *a, const char *value)
{
    if (strcmp(value, "poisson") != 0 && strcmp(value, "constant") != 0)
        return SP_EINVAL;
    a->is_constant = strcmp(value, "constant") == 0;
    return 0;
}

static int parse_tls(struct bench_args *a, const char *value)
{
    if (strcmp(value, "1.2") == 0)
        a->tls_version = 12;
    else if (strcmp(value, "1.3") == 0)
        a->tls_version = 13;
    else
        return SP_EINVAL;
    return 0;
}

static int parse_format(struct bench_args *a, const char *value)
{
    static const char *const names[] = {"default", "ab", "wrk", "epwget"};

    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(value, names[i]) == 0) {
            a->format = (enum bench_format)i;
            return 0;
        }
    }
    return SP_EINVAL;
}

static int parse_size(struct bench_args *a, const char *value)
{
    a->has_expect_size = true;
    return str_to_u64(str_of(value), &a->expect_size);
}

static int parse_auth(struct bench_args *a, const char *value)
{
    if (!strchr(value, ':') || strlen(value) > 512)
        return SP_EINVAL;
    a->basic_auth = value;
    return 0;
}

/* "0,2" or "0-3". */
static int parse_cpus(struct bench_args *a, const char *value)
{
    struct str rest = str_of(value);

    do {
        struct str item = str_make(rest.ptr, str_chr(rest, ','));
        size_t dash = str_chr(item, '-');
        uint64_t low, high, *more;

        if (str_to_u64(str_make(item.ptr, dash), &low) != 0)
            return SP_EINVAL;
        high = low;
        if ((dash < item.len && str_to_u64(str_from(item, dash + 1), &high) != 0) || high < low ||
            high > CPU_MAX)
            return SP_EINVAL;
        more = realloc(a->cpus, (a->cpu_count + (size_t)(high - low) + 1) * sizeof(*more));
        if (!more)
            return SP_ENOMEM;
        a->cpus = more;
        for (; low <= high; low++)
            a->cpus[a->cpu_count++] = low;
        rest = str_from(rest, item.len + 1);
    } while (rest.len);
    return 0;
}

/* "threads=1..8"; what follows it on the command line is the command. */
static int parse_sweep(struct bench_args *a, const char *value)
{
    struct str text = str_of(value), range;
    size_t equals = str_chr(text, '='), dots;

    range = str_from(text, equals + 1);
    dots = str_find(range, STR(".."));
    a->sweep = value;
    a->sweep_name = str_make(value, equals);
    if (!http_is_token(a->sweep_name) || str_to_u64(str_make(range.ptr, dots), &a->sweep_low) != 0 ||
        str_to_u64(str_from(range, dots + 2), &a->sweep_high) != 0 || a->sweep_low < 1 ||
        a->sweep_high < a->sweep_low || a->sweep_high > SWEEP_MAX)
        return SP_EINVAL;
    return 0;
}

#define AT(field) offsetof(struct bench_args, field)
#define FLAG_OF(field) FLAG, AT(field), 0, 0, NULL, NULL
#define TEXT_OF(field) TEXT, AT(field), 0, 0, "a value", NULL
#define TIME_OF(field) TIME, AT(field), 0, 0, "a time above zero such as 500ms, 10s or 2m", NULL
#define OWN_OF(function, what) OWN, 0, 0, 0, what, function

static const struct option options[] = {
    {"--alpn", 0, TEXT_OF(alpn)},
    {"--arrivals", 0, OWN_OF(parse_arrivals, "poisson or constant")},
    {"--auth", 'A', OWN_OF(parse_auth, "USER:PASSWORD")},
    {"--body", 'b', TEXT_OF(body)},
    {"--body-file", 'p', TEXT_OF(body_file)},
    {"--cafile", 0, TEXT_OF(cafile)},
    {"--cert", 0, TEXT_OF(cert)},
    {"--ciphers", 0, TEXT_OF(ciphers)},
    {"--close", 0, FLAG_OF(close)},
    {"--connections", 'c', NUMBER, AT(connections), 1, CONNECTIONS_MAX, "a number from 1 to 1000000", NULL},
    {"--content-type", 'T', TEXT_OF(content_type)},
    {"--cpus", 0, OWN_OF(parse_cpus, "CPU numbers such as 0,2 or 0-3")},
    {"--csv", 0, TEXT_OF(csv)},
    {"--curves", 0, TEXT_OF(curves)},
    {"--duration", 'd', TIME_OF(duration_us)},
    {"--expect-same", 0, FLAG_OF(expect_same)},
    {"--expect-size", 0, OWN_OF(parse_size, "a number of bytes")},
    {"--expect-status", 0, NUMBER, AT(expect_status), 100, 599, "a status from 100 to 599", NULL},
    {"--find-limit", 0, FLAG_OF(find_limit)},
    {"--format", 0, OWN_OF(parse_format, "default, ab, wrk or epwget")},
    {"--handshake-only", 0, FLAG_OF(handshake_only)},
    {"--header", 'H', OWN_OF(parse_header, "'Name: value'")},
    {"--help", 'h', FLAG_OF(help)},
    {"--hold", 0, OWN_OF(parse_hold, "connections a second, above zero")},
    {"--html", 0, TEXT_OF(html)},
    {"--insecure", 0, FLAG_OF(insecure)},
    {"--interval", 0, TIME_OF(interval_us)},
    {"--json", 0, FLAG_OF(json)},
    {"--keepalive", 'k', FLAG_OF(keepalive)},
    {"--key", 0, TEXT_OF(key)},
    {"--latency", 0, FLAG_OF(latency)},
    {"--method", 'm', OWN_OF(parse_method, "a method such as GET or POST; CONNECT is none")},
    {"--p99", 0, TIME_OF(p99_limit_us)},
    {"--quiet", 'q', FLAG_OF(quiet)},
    {"--rate", 0, OWN_OF(parse_rate, "requests a second, above zero")},
    {"--requests", 'n', NUMBER, AT(requests), 1, UINT64_MAX, "a number from 1 up", NULL},
    {"--resume", 0, OWN_OF(parse_resume, "a share from 0 to 1")},
    {"--seed", 0, NUMBER, AT(seed), 0, UINT64_MAX, "a number", NULL},
    {"--server-pid", 0, NUMBER, AT(server_pid), 1, INT32_MAX, "the number of a process", NULL},
    {"--sni", 0, TEXT_OF(sni)},
    {"--sweep", 0, OWN_OF(parse_sweep, "NAME=LOW..HIGH such as threads=1..8, then the command")},
    {"--threads", 't', NUMBER, AT(threads), 1, THREADS_MAX,
     "a number of threads from 1 to 256 (ab's -t, a time, is --time-limit)", NULL},
    {"--time-limit", 0, TIME_OF(time_limit_us)},
    {"--timeout", 's', TIME_OF(timeout_us)},
    {"--tls", 0, OWN_OF(parse_tls, "1.2 or 1.3")},
    {"--urls", 0, TEXT_OF(urls_file)},
    {"--warmup", 0, TIME_OF(warmup_us)},
};
#define OPTIONS (sizeof(options) / sizeof(options[0]))

static int bad(const char *name, const char *expected, const char *got)
{
    fprintf(stderr, "sallyport bench: %s: expected %s, got '", name, expected);
    /* One line, whatever it was. */
    for (; *got; got++)
        fputc((unsigned char)*got < 0x20 || *got == 0x7f ? '?' : *got, stderr);
    fputs("'\n", stderr);
    return 2;
}

static int complain(const char *text)
{
    fprintf(stderr, "sallyport bench: %s\n", text);
    return 2;
}

static int unknown(const char *argument, size_t name_len)
{
    const char *names[OPTIONS];
    char word[64], hint[128];

    for (size_t i = 0; i < OPTIONS; i++)
        names[i] = options[i].name;
    (void)snprintf(word, sizeof(word), "%.*s", (int)(name_len < 60 ? name_len : 60), argument);
    fprintf(stderr, "sallyport bench: unknown option '%s'%s; see --help\n", word,
            diag_suggest(hint, sizeof(hint), word, names, OPTIONS));
    return 2;
}

static int store(struct bench_args *a, const struct option *o, const char *name, const char *value)
{
    char *field = (char *)a + o->offset;
    int64_t time_us;
    uint64_t number;
    int status = 0;

    switch (o->kind) {
    case FLAG:
        *(bool *)field = true;
        break;
    case NUMBER:
        if (str_to_u64(str_of(value), &number) != 0 || number < o->low || number > o->high)
            status = SP_EINVAL;
        else
            memcpy(field, &number, sizeof(number));
        break;
    case TIME:
        if (str_to_time_us(str_of(value), 1000000, &time_us) != 0 || time_us <= 0)
            status = SP_EINVAL;
        else
            memcpy(field, &time_us, sizeof(time_us));
        break;
    case TEXT:
        if (!*value)
            status = SP_EINVAL;
        else
            memcpy(field, &value, sizeof(value));
        break;
    case OWN:
        status = o->parse(a, value);
        break;
    }
    if (status == SP_ENOMEM)
        return complain("out of memory");
    return status == 0 ? 0 : bad(name, o->expected, value);
}

/* The option that an argument begins with; *attached is its value in the same argument, or NULL. */
static const struct option *find_option(const char *argument, size_t *name_len, const char **attached)
{
    bool is_long = argument[1] == '-';

    *name_len = is_long ? str_chr(str_of(argument), '=') : 2;
    *attached = argument[*name_len] ? argument + *name_len + is_long : NULL;
    for (size_t i = 0; i < OPTIONS; i++) {
        const struct option *o = &options[i];

        if (is_long ? str_eq(str_make(argument, *name_len), str_of(o->name))
                    : o->letter && argument[1] == o->letter)
            return o;
    }
    return NULL;
}

static int parse_option(struct bench_args *a, char **argv, int argc, int *at)
{
    const char *argument = argv[*at], *value;
    size_t name_len;
    const struct option *o = find_option(argument, &name_len, &value);
    char name[40];

    if (!o)
        return unknown(argument, name_len);
    if (argument[1] == '-')
        (void)snprintf(name, sizeof(name), "%s", o->name);
    else
        (void)snprintf(name, sizeof(name), "-%c", o->letter);
    if (o->kind == FLAG) {
        if (!value)
            return store(a, o, name, "");
        if (argument[1] == '-')
            return bad(name, "no value", value);
        return unknown(argument, strlen(argument)); /* letters are not joined */
    }
    if (!value) {
        if (*at + 1 >= argc)
            return bad(name, o->expected, "nothing");
        value = argv[++*at];
    }
    if (store(a, o, name, value) != 0)
        return 2;
    if (o->parse == parse_sweep) {
        if (*at + 1 >= argc)
            return bad("--sweep", "a command after its range", "nothing");
        a->command = argv[++*at];
    }
    return 0;
}

static int check_sweep(const struct bench_args *a)
{
    char word[64];

    if (!a->hold && !a->sweep)
        return 0;
    if (!a->hold || !a->sweep)
        return complain(
            "--hold and --sweep belong together: --hold R --sweep NAME=LOW..HIGH 'COMMAND {NAME}'");
    (void)snprintf(word, sizeof(word), "{%.*s}", STR_FMT(a->sweep_name));
    if (!strstr(a->command, word)) {
        fprintf(stderr, "sallyport bench: --sweep: expected %s somewhere in the command, got '%s'\n", word,
                a->command);
        return 2;
    }
    if (a->find_limit || a->rate > 0)
        return complain("--hold sets the rate: not together with --rate or --find-limit");
    return 0;
}

static int check_together(struct bench_args *a)
{
    if (!a->url_count && !a->urls_file)
        return complain("expected a URL such as http://127.0.0.1:8080/; see --help");
    if (a->body && a->body_file)
        return complain("-b and -p: expected one of the two, got both");
    if (a->duration_us && a->time_limit_us)
        return complain("-d and --time-limit: expected one of the two, got both");
    if (a->time_limit_us)
        a->duration_us = a->time_limit_us;
    if (a->key && !a->cert)
        return complain("--key: expected --cert beside it");
    if (a->close && a->keepalive)
        return complain("-k and --close: expected one of the two, got both");
    if (a->find_limit != (a->p99_limit_us > 0))
        return complain("--find-limit and --p99 belong together: --find-limit --p99 20ms");
    if (a->find_limit && (a->rate > 0 || a->requests))
        return complain("--find-limit: chooses the rate by itself and ends by itself: without --rate and -n");
    if (a->threads && a->connections && a->threads > a->connections)
        return complain("-t: expected at most as many threads as connections (-c)");
    if (a->cpu_count && a->threads && a->cpu_count < a->threads)
        return complain("--cpus: expected a CPU for each thread (-t)");
    if (a->handshake_only &&
        (a->body || a->body_file || a->expect_same || a->has_expect_size || a->expect_status))
        return complain("--handshake-only: there are no requests: without -b, -p and --expect-…");
    return check_sweep(a);
}

int bench_args_parse(struct bench_args *a, int argc, char **argv)
{
    bool options_end = false;
    int status = 0;

    memset(a, 0, sizeof(*a));
    a->seed = 1;
    a->urls = calloc((size_t)argc + 1, sizeof(*a->urls));
    if (!a->urls)
        return complain("out of memory");
    for (int i = 1; i < argc && status == 0; i++) {
        if (!options_end && strcmp(argv[i], "--") == 0)
            options_end = true;
        else if (!options_end && argv[i][0] == '-' && argv[i][1])
            status = parse_option(a, argv, argc, &i);
        else
            a->urls[a->url_count++] = argv[i];
        if (a->help)
            return 0;
    }
    return status == 0 ? check_together(a) : status;
}

void bench_args_release(struct bench_args *a)
{
    free(a->urls);
    free(a->headers);
    free(a->cpus);
    memset(a, 0, sizeof(*a));
}
