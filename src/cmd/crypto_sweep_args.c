#include "cmd/crypto_sweep.h"

#include "base/str.h"
#include "measure/sweep_check.h"

#include <sallyport/status.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEFAULT_ROUNDS 5
#define DEFAULT_ALGORITHMS "aes-256-xts,aes-128-cbc,aes-256-gcm"
#define DEFAULT_MODES "single,concurrent"
#define DEFAULT_SIZES "16..4m"
#define SLICE_MAX_MS 60000
#define SECONDS_MAX 86400
#define PATH_BYTES 4096

const char crypto_sweep_usage[] =
    "usage: sallyport crypto sweep [--impl LIST] [--algo LIST] [--sizes LIST] [--mode LIST]\n"
    "                              [--rounds N] [--slice MS | --seconds N]\n"
    "                              [--in-place | --out-of-place] [--csv FILE] [--json FILE]\n"
    "                              [--html FILE] [--compare-with FILE] [--quiet]\n"
    "       sallyport crypto sweep --list\n"
    "\n"
    "Symmetric crypto by request size: bytes a second one request at a time, bytes a second with\n"
    "many at a time, and bytes for each second of CPU time that the whole system spends, of several\n"
    "implementations interleaved in one run; and from which size on one beats another. Each is\n"
    "checked against OpenSSL before it is timed.\n"
    "\n"
    "  --impl LIST          implementations, NAME or NAME:DEVICE as --list shows them (all that\n"
    "                       are there)\n"
    "  --algo LIST          aes-{128,192,256}-{cbc,ctr,gcm}, aes-{128,256}-xts, chacha20-poly1305,\n"
    "                       sha1, sha256, sha512, aes-128-cbc-hmac-{sha1,sha256},\n"
    "                       aes-256-cbc-hmac-{sha1,sha256,sha512}, or all\n"
    "                       (" DEFAULT_ALGORITHMS ")\n"
    "  --sizes LIST         sizes such as 16, 4k, 4KiB, 1m; FROM..TO doubles (" DEFAULT_SIZES ")\n"
    "  --mode LIST          single: the next request when the last has finished; concurrent[:N]: N\n"
    "                       threads that each do that (2 a CPU); depth:N: one thread, N in flight\n"
    "                       (" DEFAULT_MODES ")\n"
    "  --rounds N           rounds, 1 to 31; the medians count (5)\n"
    "  --slice MS           how long each is timed in a round\n"
    "  --seconds N          how long the whole run takes, about; sets the slice (at most 240, and\n"
    "                       slices of at most 100 ms)\n"
    "  --in-place           ciphertext replaces plaintext\n"
    "  --out-of-place       ciphertext goes elsewhere (this is so without either)\n"
    "  --csv, --json, --html FILE\n"
    "                       the same as a table, for programs, as a page with charts\n"
    "  --compare-with FILE  lay an earlier --csv, or a published table, beside it\n"
    "  --list               the implementations, and why one is missing\n"
    "  --quiet              no progress\n";

static int bad(const char *option, const char *expected, struct str got)
{
    fprintf(stderr, "sallyport crypto sweep: %s: expected %s, got '%.*s'\n", option, expected, STR_FMT(got));
    return 2;
}

static int no_memory(void)
{
    fputs("sallyport crypto sweep: no memory\n", stderr);
    return 2;
}

/* --- lists -------------------------------------------------------------------------------------- */

/*
 * Length of the first word of a list. Commas within parentheses belong to it, as in
 * authenc(hmac(sha256),cbc(aes)), and so does one before a parameter: DEVICE,worker=OTHER.
 */
static size_t first_word(struct str list)
{
    unsigned depth = 0;

    for (size_t i = 0; i < list.len; i++) {
        struct str next = str_from(list, i + 1);
        size_t equals = str_chr(next, '=');

        if (list.ptr[i] == '(')
            depth++;
        else if (list.ptr[i] == ')' && depth > 0)
            depth--;
        else if (list.ptr[i] == ',' && depth == 0 && (equals == next.len || equals > str_chr(next, ',') ||
                                                      equals > str_chr(next, ':')))
            return i;
    }
    return list.len;
}

static int each_word(struct crypto_sweep_args *a, const char *list, int (*add)(struct crypto_sweep_args *, struct str))
{
    struct str rest = str_of(list);
    int status;

    for (;;) {
        size_t len = first_word(rest);

        status = add(a, str_make(rest.ptr, len));
        if (status != 0 || len == rest.len)
            return status;
        rest = str_from(rest, len + 1);
    }
}

/* The name before a colon, and what stands behind it; NULL without a colon. */
static const char *split(struct str word, struct str *name, struct str *argument)
{
    size_t colon = str_chr(word, ':');

    *name = str_make(word.ptr, colon);
    *argument = str_from(word, colon + 1);
    return colon < word.len ? argument->ptr : NULL;
}

static bool takes_nothing(const struct sweep_impl *impl)
{
    return impl->argument == NULL;
}

static bool needs_argument(const struct sweep_impl *impl)
{
    return impl->argument && impl->argument[0] != '[';
}

/* The spec is the result's; the argument points into it. */
static int append_impl(struct crypto_sweep_args *a, const struct sweep_impl *impl, struct str spec)
{
    struct sweep_result *r = a->result;
    const char *colon;

    for (size_t i = 0; i < r->impl_count; i++) {
        if (str_eq(str_of(r->impls[i].spec), spec))
            return 0;
    }
    if (r->impl_count == SWEEP_IMPLS_MAX)
        return bad("--impl", "at most 16 implementations", spec);
    r->impls[r->impl_count].spec = strndup(spec.ptr, spec.len);
    if (!r->impls[r->impl_count].spec)
        return no_memory();
    colon = strchr(r->impls[r->impl_count].spec, ':');
    a->run->sources[r->impl_count++] = (struct sweep_source){.impl = impl, .argument = colon ? colon + 1 : NULL};
    return 0;
}

static int add_impl(struct crypto_sweep_args *a, struct str word)
{
    struct str name, argument;
    const char *colon = split(word, &name, &argument);

    for (size_t i = 0; sweep_impls[i]; i++) {
        const struct sweep_impl *impl = sweep_impls[i];
        char expected[128];

        if (!str_eq(name, str_of(impl->name)))
            continue;
        if (colon && takes_nothing(impl)) {
            snprintf(expected, sizeof(expected), "%s without a colon", impl->name);
            return bad("--impl", expected, word);
        }
        if ((colon && argument.len == 0) || (!colon && needs_argument(impl))) {
            snprintf(expected, sizeof(expected), "%s:%s", impl->name, impl->argument);
            return bad("--impl", expected, word);
        }
        return append_impl(a, impl, word);
    }
    return bad("--impl", "names that --list shows, such as openssl", word);
}

static int append_algorithm(struct crypto_sweep_args *a, const struct sweep_algorithm *algorithm)
{
    struct sweep_result *r = a->result;

    for (size_t i = 0; i < r->algorithm_count; i++) {
        if (r->algorithms[i] == algorithm)
            return 0;
    }
    if (!r->algorithms)
        r->algorithms = calloc(sweep_algorithm_count, sizeof(struct sweep_algorithm *));
    if (!r->algorithms)
        return no_memory();
    r->algorithms[r->algorithm_count++] = algorithm;
    return 0;
}

static int add_algorithm(struct crypto_sweep_args *a, struct str word)
{
    const struct sweep_algorithm *algorithm = sweep_algorithm_find(word.ptr, word.len);
    int status = 0;

    if (algorithm)
        return append_algorithm(a, algorithm);
    if (!str_eq(word, STR("all")))
        return bad("--algo", "names such as aes-256-gcm, sha256 or all (see --help)", word);
    for (unsigned i = 0; i < sweep_algorithm_count && status == 0; i++)
        status = append_algorithm(a, &sweep_algorithms[i]);
    return status;
}

static int add_mode(struct crypto_sweep_args *a, struct str word)
{
    static const char expected[] = "single, concurrent, concurrent:N or depth:N, N from 1 to 1024";
    struct sweep_result *r = a->result;
    struct sweep_mode mode = {.kind = SWEEP_SINGLE, .n = 1};
    struct str name, argument;
    const char *colon = split(word, &name, &argument);
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t n = cpus < 1 ? 2 : 2 * (uint64_t)cpus;

    if (str_eq(name, STR("concurrent")))
        mode.kind = SWEEP_CONCURRENT;
    else if (str_eq(name, STR("depth")))
        mode.kind = SWEEP_DEPTH;
    else if (!str_eq(word, STR("single")))
        return bad("--mode", expected, word);
    if (colon && (str_to_u64(argument, &n) != 0 || n < 1 || n > SWEEP_THREADS_MAX))
        return bad("--mode", expected, word);
    if (mode.kind == SWEEP_DEPTH && !colon)
        return bad("--mode", expected, word);
    if (mode.kind != SWEEP_SINGLE)
        mode.n = n < SWEEP_THREADS_MAX ? (unsigned)n : SWEEP_THREADS_MAX;
    for (size_t i = 0; i < r->mode_count; i++) {
        if (r->modes[i].kind == mode.kind && r->modes[i].n == mode.n)
            return 0;
    }
    if (r->mode_count == SWEEP_MODES_MAX)
        return bad("--mode", "at most 8 modes", word);
    r->modes[r->mode_count++] = mode;
    return 0;
}

/* --- sizes -------------------------------------------------------------------------------------- */

/* "16", "4k", "4KiB", "1m". */
static bool parse_size(struct str word, uint64_t *out)
{
    if (word.len > 3 && str_ieq(str_from(word, word.len - 2), STR("ib")))
        word.len -= 2;
    return str_to_size(word, out) == 0 && *out >= SWEEP_BYTES_MIN && *out <= SWEEP_BYTES_MAX;
}

static int append_size(struct sweep_result *r, uint64_t bytes, struct str word)
{
    size_t at = 0;

    while (at < r->size_count && r->sizes[at] < bytes)
        at++;
    if (at < r->size_count && r->sizes[at] == bytes)
        return 0;
    if (r->size_count == SWEEP_SIZES_MAX)
        return bad("--sizes", "at most 32 sizes", word);
    memmove(&r->sizes[at + 1], &r->sizes[at], (r->size_count - at) * sizeof(r->sizes[0]));
    r->sizes[at] = bytes;
    r->size_count++;
    return 0;
}

static int add_sizes(struct crypto_sweep_args *a, struct str word)
{
    static const char expected[] = "sizes from 1 to 64m such as 16, 4k, 4KiB, 1m, or FROM..TO";
    size_t dots = str_find(word, STR(".."));
    uint64_t from, to;
    int status = 0;

    if (!parse_size(str_make(word.ptr, dots), &from))
        return bad("--sizes", expected, word);
    to = from;
    if (dots < word.len && (!parse_size(str_from(word, dots + 2), &to) || to < from))
        return bad("--sizes", expected, word);
    for (; from <= to && status == 0; from *= 2)
        status = append_size(a->result, from, word);
    return status;
}

/* An algorithm that no size suits is a mistake; where some suit, the others are cells without figures. */
static int match_sizes(const struct sweep_result *r, const char *words)
{
    for (size_t i = 0; i < r->algorithm_count; i++) {
        struct sweep_why why;
        size_t fitting = 0;

        for (size_t size = 0; size < r->size_count; size++)
            fitting += sweep_size_check(r->algorithms[i], r->sizes[size], &why) == 0;
        if (fitting == 0) {
            char expected[SWEEP_WHY_BYTES + 64];

            snprintf(expected, sizeof(expected), "a size that fits %s (%s)", r->algorithms[i]->name, why.text);
            return bad("--sizes", expected, str_of(words));
        }
    }
    return 0;
}

/* --- files -------------------------------------------------------------------------------------- */

/* Known before minutes are spent on it: whether a file can be written there. */
static int check_output(const char *option, const char *path)
{
    const char *slash = strrchr(path, '/');
    char folder[PATH_BYTES];
    struct stat found;

    if (stat(path, &found) == 0 && S_ISDIR(found.st_mode))
        return bad(option, "a file to write, and not a folder", str_of(path));
    if (snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".") >=
            (int)sizeof(folder) ||
        access(folder, W_OK | X_OK) != 0) {
        fprintf(stderr, "sallyport crypto sweep: %s: expected a file to write, got '%s': %s\n", option, path,
                strerror(errno));
        return 2;
    }
    return 0;
}

static int read_earlier(struct crypto_sweep_args *a)
{
    char error[SWEEP_TABLE_ERROR_BYTES], *text = malloc(SWEEP_TABLE_BYTES_MAX + 1);
    FILE *file = fopen(a->compare_with, "re");
    size_t len = 0;
    int status = 2;

    errno = file ? 0 : errno;
    if (text && file)
        len = fread(text, 1, SWEEP_TABLE_BYTES_MAX + 1, file);
    if (!text)
        status = no_memory();
    else if (!file || ferror(file))
        fprintf(stderr, "sallyport crypto sweep: --compare-with: expected a table to read, got '%s': %s\n",
                a->compare_with, strerror(errno));
    else if (len > SWEEP_TABLE_BYTES_MAX)
        fprintf(stderr, "sallyport crypto sweep: --compare-with: expected a file of at most 16 MiB, got '%s'\n",
                a->compare_with);
    else if (sweep_table_parse(text, len, &a->earlier, error) != 0)
        fprintf(stderr, "sallyport crypto sweep: --compare-with: %s: %s\n", a->compare_with, error);
    else
        status = 0;
    if (file)
        fclose(file);
    free(text);
    return status;
}

/* --- options ------------------------------------------------------------------------------------ */

static int parse_number(const char *option, const char *text, uint64_t max, uint64_t *out)
{
    char expected[64];
    uint64_t n;

    snprintf(expected, sizeof(expected), "a number from 1 to %llu", (unsigned long long)max);
    if (str_to_u64(str_of(text), &n) != 0 || n < 1 || n > max)
        return bad(option, expected, str_of(text));
    *out = n;
    return 0;
}

/* The words of the lists, read when all options are known. */
struct lists {
    const char *impls, *algorithms, *sizes, *modes;
};

/* Options with a value; false: not one of them. */
static bool parse_option(struct crypto_sweep_args *a, struct lists *lists, const char *name, const char *value,
                         int *status)
{
    const struct {
        const char *name;
        const char **text;
    } texts[] = {
        {"--impl", &lists->impls},  {"--algo", &lists->algorithms},     {"--sizes", &lists->sizes},
        {"--mode", &lists->modes},  {"--csv", &a->csv},                 {"--json", &a->json},
        {"--html", &a->html},       {"--compare-with", &a->compare_with},
    };
    uint64_t number = 0;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (strcmp(name, texts[i].name) == 0) {
            *texts[i].text = value;
            *status = value && *value ? 0 : bad(name, "a value", STR(""));
            return true;
        }
    }
    if (strcmp(name, "--rounds") == 0) {
        *status = parse_number(name, value, SWEEP_ROUNDS_MAX, &number);
        a->result->rounds = (unsigned)number;
    } else if (strcmp(name, "--slice") == 0) {
        *status = parse_number(name, value, SLICE_MAX_MS, &a->slice_ms);
    } else if (strcmp(name, "--seconds") == 0) {
        *status = parse_number(name, value, SECONDS_MAX, &a->seconds);
    } else {
        return false;
    }
    return true;
}

static bool parse_flag(struct crypto_sweep_args *a, const char *name)
{
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        a->help = true;
    else if (strcmp(name, "--list") == 0)
        a->list = true;
    else if (strcmp(name, "--quiet") == 0)
        a->quiet = true;
    else if (strcmp(name, "--in-place") == 0)
        a->result->in_place = true;
    else if (strcmp(name, "--out-of-place") == 0)
        a->result->in_place = false;
    else
        return false;
    return true;
}

static int parse_words(struct crypto_sweep_args *a, struct lists *lists, int argc, char **argv)
{
    for (int i = 1; i < argc && !a->help; i++) {
        int status;

        if (parse_flag(a, argv[i]))
            continue;
        if (!parse_option(a, lists, argv[i], i + 1 < argc ? argv[i + 1] : NULL, &status)) {
            fprintf(stderr, "sallyport crypto sweep: unknown argument '%s'; see --help\n", argv[i]);
            return 2;
        }
        if (status != 0)
            return status;
        i++;
    }
    return 0;
}

static int add_every_impl(struct crypto_sweep_args *a)
{
    int status = 0;

    for (size_t i = 0; sweep_impls[i] && status == 0; i++) {
        if (!sweep_impls[i]->is_stream)
            status = append_impl(a, sweep_impls[i], str_of(sweep_impls[i]->name));
    }
    return status;
}

static int check_files(struct crypto_sweep_args *a)
{
    int status = 0;

    if (a->csv)
        status = check_output("--csv", a->csv);
    if (status == 0 && a->json)
        status = check_output("--json", a->json);
    if (status == 0 && a->html)
        status = check_output("--html", a->html);
    return status == 0 && a->compare_with ? read_earlier(a) : status;
}

int crypto_sweep_parse(struct crypto_sweep_args *a, int argc, char **argv)
{
    struct lists lists = {.algorithms = DEFAULT_ALGORITHMS, .sizes = DEFAULT_SIZES, .modes = DEFAULT_MODES};
    int status;

    a->result->rounds = DEFAULT_ROUNDS;
    status = parse_words(a, &lists, argc, argv);
    if (status != 0 || a->help || a->list)
        return status;
    if (a->slice_ms && a->seconds) {
        fputs("sallyport crypto sweep: --seconds: expected without --slice: each sets how long a slice is\n", stderr);
        return 2;
    }
    a->impls_named = lists.impls != NULL;
    status = lists.impls ? each_word(a, lists.impls, add_impl) : add_every_impl(a);
    if (status == 0)
        status = each_word(a, lists.algorithms, add_algorithm);
    if (status == 0)
        status = each_word(a, lists.sizes, add_sizes);
    if (status == 0)
        status = each_word(a, lists.modes, add_mode);
    if (status == 0)
        status = match_sizes(a->result, lists.sizes);
    return status == 0 ? check_files(a) : status;
}
