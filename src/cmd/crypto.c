/*
 * sallyport crypto: its subcommands; and asym: private-key operations a second, by algorithm and backend.
 */
#include "cmd/cmd.h"

#include "base/str.h"
#include "cmd/crypto_sweep.h"
#include "measure/asym.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define VARIANTS_MAX 128
#define DEFAULT_ROUNDS 5
#define DEFAULT_SLICE_MS 200
#define SLICE_MAX_MS 60000
#define THREADS_MAX 256
#define DEVICE_BYTES 128
#define DEVICE_FILL 64
#define RSA_ROWS (1u << SP_ALGORITHM_RSA2048 | 1u << SP_ALGORITHM_RSA3072 | 1u << SP_ALGORITHM_RSA4096)

static const char crypto_usage[] =
    "usage: sallyport crypto asym [option ...]   private-key operations a second\n"
    "       sallyport crypto sweep [option ...]  symmetric crypto by request size\n"
    "\n"
    "Each says more with --help.\n";

static const char usage[] =
    "usage: sallyport crypto asym [--algo LIST] [--backend LIST] [--fill LIST] [--threads N]\n"
    "                             [--rounds N] [--slice MS] [--json]\n"
    "\n"
    "Private-key operations a second and a CPU-second: the lanes and crypto threads of this\n"
    "program, and crypto devices of DPDK's, beside OpenSSL's own calls (EVP), interleaved in one run. Each backend's results are\n"
    "checked before it is timed.\n"
    "\n"
    "  --algo LIST     rsa2048,rsa3072,rsa4096,p256-sign,p256-keygen,p256-derive,x25519-keygen,\n"
    "                  x25519-derive, or rsa, p256, x25519, all (all)\n"
    "  --backend LIST  multibuffer,threads,cryptodev:DEVICE (multibuffer; threads too when --threads\n"
    "                  is given); DEVICE is crypto_openssl, or a card's PCI address: RSA only\n"
    "  --fill LIST     operations in flight at a time, 1 to 8, e.g. 1,4,8 (1,4,8); a device has 64 too\n"
    "  --threads N     crypto threads; eight operations a thread are in flight (1)\n"
    "  --rounds N      rounds, 1 to 31; the medians count (5)\n"
    "  --slice MS      how long each is timed in a round (200)\n"
    "  --json          one JSON object instead of the table\n";

static const struct {
    const char *word;
    unsigned rows;
} algorithms[] = {
    {"rsa2048", 1u << SP_ALGORITHM_RSA2048},
    {"rsa3072", 1u << SP_ALGORITHM_RSA3072},
    {"rsa4096", 1u << SP_ALGORITHM_RSA4096},
    {"p256-sign", 1u << SP_ALGORITHM_P256_SIGN},
    {"p256-keygen", 1u << SP_ALGORITHM_P256_KEYGEN},
    {"p256-derive", 1u << SP_ALGORITHM_P256_DERIVE},
    {"x25519-keygen", 1u << SP_ALGORITHM_X25519_KEYGEN},
    {"x25519-derive", 1u << SP_ALGORITHM_X25519_DERIVE},
    {"rsa", 1u << SP_ALGORITHM_RSA2048 | 1u << SP_ALGORITHM_RSA3072 | 1u << SP_ALGORITHM_RSA4096},
    {"p256", 1u << SP_ALGORITHM_P256_SIGN | 1u << SP_ALGORITHM_P256_KEYGEN | 1u << SP_ALGORITHM_P256_DERIVE},
    {"x25519", 1u << SP_ALGORITHM_X25519_KEYGEN | 1u << SP_ALGORITHM_X25519_DERIVE},
    {"all", (1u << SP_ALGORITHM_OTHER) - 1},
};

struct arguments {
    unsigned algorithms;
    bool multibuffer, threads, json, help;
    unsigned fills; /* bits 1 << fill */
    char device[DEVICE_BYTES]; /* "": none */
    uint64_t thread_count, rounds, slice_ms;
};

static int bad(const char *option, const char *expected, struct str got)
{
    fprintf(stderr, "sallyport crypto asym: %s: expected %s, got '%.*s'\n", option, expected, STR_FMT(got));
    return 2;
}

static int add_algorithm(struct arguments *a, struct str word)
{
    for (size_t i = 0; i < sizeof(algorithms) / sizeof(algorithms[0]); i++) {
        if (str_ieq(word, str_of(algorithms[i].word))) {
            a->algorithms |= algorithms[i].rows;
            return 0;
        }
    }
    return bad("--algo", "names such as rsa2048, p256-sign, x25519 or all", word);
}

static int add_backend(struct arguments *a, struct str word)
{
    if (str_ieq(word, STR("multibuffer")))
        a->multibuffer = true;
    else if (str_ieq(word, STR("threads")))
        a->threads = true;
    else if (word.len > 10 && word.len < 10 + DEVICE_BYTES && memcmp(word.ptr, "cryptodev:", 10) == 0)
        snprintf(a->device, sizeof(a->device), "%.*s", (int)word.len - 10, word.ptr + 10);
    else if (!str_ieq(word, STR("openssl"))) /* always there, as what the others are compared with */
        return bad("--backend", "openssl, multibuffer, threads or cryptodev:DEVICE", word);
    return 0;
}

static int add_fill(struct arguments *a, struct str word)
{
    uint64_t n;

    if (str_to_u64(word, &n) != 0 || n < 1 || n > SP_LANES_MAX)
        return bad("--fill", "numbers from 1 to 8", word);
    a->fills |= 1u << n;
    return 0;
}

static int each_word(struct arguments *a, const char *list, int (*add)(struct arguments *a, struct str word))
{
    struct str rest = str_of(list);
    int status;

    do {
        size_t len = str_chr(rest, ',');

        status = add(a, str_make(rest.ptr, len));
        rest = str_from(rest, len + 1);
    } while (rest.len && status == 0);
    return status;
}

static int parse_number(const char *option, const char *text, uint64_t max, uint64_t *out)
{
    uint64_t n;

    if (str_to_u64(str_of(text), &n) != 0 || n < 1 || n > max)
        return bad(option, "a number in its range (see --help)", str_of(text));
    *out = n;
    return 0;
}

static int parse_option(struct arguments *a, const char *name, const char *value)
{
    if (strcmp(name, "--algo") == 0)
        return each_word(a, value, add_algorithm);
    if (strcmp(name, "--backend") == 0)
        return each_word(a, value, add_backend);
    if (strcmp(name, "--fill") == 0)
        return each_word(a, value, add_fill);
    if (strcmp(name, "--threads") == 0)
        return parse_number(name, value, THREADS_MAX, &a->thread_count);
    if (strcmp(name, "--rounds") == 0)
        return parse_number(name, value, ASYM_ROUNDS_MAX, &a->rounds);
    if (strcmp(name, "--slice") == 0)
        return parse_number(name, value, SLICE_MAX_MS, &a->slice_ms);
    fprintf(stderr, "sallyport crypto asym: unknown argument '%s'; see --help\n", name);
    return 2;
}

static int parse_arguments(int argc, char **argv, struct arguments *a)
{
    *a = (struct arguments){.rounds = DEFAULT_ROUNDS, .slice_ms = DEFAULT_SLICE_MS};
    for (int i = 1; i < argc; i++) {
        int status;

        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            a->help = true;
            return 0;
        }
        if (strcmp(argv[i], "--json") == 0) {
            a->json = true;
            continue;
        }
        if (i + 1 == argc && argv[i][0] == '-' && argv[i][1] == '-') {
            fprintf(stderr, "sallyport crypto asym: %s: unknown, or its value is missing; see --help\n", argv[i]);
            return 2;
        }
        status = parse_option(a, argv[i], i + 1 < argc ? argv[i + 1] : "");
        if (status != 0)
            return status;
        i++;
    }
    if (!a->algorithms)
        a->algorithms = (1u << SP_ALGORITHM_OTHER) - 1;
    if (!a->fills)
        a->fills = 1u << 1 | 1u << 4 | 1u << 8;
    if (!a->multibuffer && !a->threads && !a->device[0])
        a->multibuffer = true;
    a->threads |= a->thread_count > 0;
    if (!a->thread_count)
        a->thread_count = 1;
    return 0;
}

/* The lanes, where this machine has them: what is missing is said once. */
static size_t list_variants(const struct arguments *a, struct sp_cryptodev *device, struct asym_variant *variants)
{
    const char *missing = sp_backend_missing(SP_BACKEND_MULTIBUFFER);
    size_t n = 0;

    if (missing && a->multibuffer)
        fprintf(stderr, "sallyport crypto asym: no multibuffer: %s\n", missing);
    for (unsigned i = 0; i < SP_ALGORITHM_OTHER; i++) {
        if (!(a->algorithms >> i & 1))
            continue;
        variants[n++] = (struct asym_variant){.algorithm = i, .kind = ASYM_REFERENCE, .fill = 1};
        for (unsigned fill = 1; fill <= SP_LANES_MAX && a->multibuffer && !missing; fill++) {
            if (a->fills >> fill & 1)
                variants[n++] = (struct asym_variant){.algorithm = i, .kind = ASYM_MULTIBUFFER, .fill = fill};
        }
        for (unsigned k = 1; k <= DEVICE_FILL && device && (RSA_ROWS >> i & 1); k++) {
            if (k == DEVICE_FILL || (k <= SP_LANES_MAX && a->fills >> k & 1))
                variants[n++] =
                    (struct asym_variant){.algorithm = i, .kind = ASYM_CRYPTODEV, .fill = k, .cryptodev = device};
        }
        if (a->threads)
            variants[n++] = (struct asym_variant){.algorithm = i,
                                                  .kind = ASYM_THREADS,
                                                  .fill = SP_LANES_MAX * (unsigned)a->thread_count > 256
                                                              ? 256
                                                              : SP_LANES_MAX * (unsigned)a->thread_count,
                                                  .threads = (unsigned)a->thread_count};
    }
    return n;
}

static const char *kind_name(const struct asym_variant *v)
{
    static const char *const names[] = {
        [ASYM_REFERENCE] = "openssl", [ASYM_MULTIBUFFER] = "multibuffer", [ASYM_THREADS] = "threads",
        [ASYM_CRYPTODEV] = "cryptodev"};

    return names[v->kind];
}

static void print_table(const struct asym_run *run)
{
    printf("%-14s %-12s %4s %12s %14s %8s  %s\n", "algorithm", "backend", "fill", "ops/s", "ops/CPU-s", "ratio",
           "by round");
    for (size_t i = 0; i < run->count; i++) {
        const struct asym_variant *v = &run->variants[i];

        printf("%-14s %-12s %4u %12.0f %14.0f", sp_algorithm_name(v->algorithm), kind_name(v), v->fill, v->ops_per_s,
               v->ops_per_cpu_s);
        if (v->kind == ASYM_REFERENCE)
            printf(" %8s\n", "1");
        else
            printf(" %8.2f  %.2f to %.2f%s\n", v->ratio, v->ratio_low, v->ratio_high,
                   v->lanes ? "" : "  (scalar library)");
    }
}

static void print_json(const struct asym_run *run)
{
    printf("{\"rounds\": %u, \"slice_ms\": %llu, \"results\": [", run->rounds,
           (unsigned long long)(run->slice_ns / 1000000));
    for (size_t i = 0; i < run->count; i++) {
        const struct asym_variant *v = &run->variants[i];

        printf("%s\n {\"algorithm\": \"%s\", \"backend\": \"%s\", \"fill\": %u, \"threads\": %u, \"ops_per_s\": %.1f, "
               "\"ops_per_cpu_s\": %.1f, \"ratio\": %.3f, \"ratio_low\": %.3f, \"ratio_high\": %.3f, \"lanes\": %u}",
               i ? "," : "", sp_algorithm_name(v->algorithm), kind_name(v), v->fill, v->threads, v->ops_per_s,
               v->ops_per_cpu_s, v->ratio, v->ratio_low, v->ratio_high, v->lanes);
    }
    printf("\n]}\n");
}

static void show_progress(void *arg, enum sp_algorithm algorithm, unsigned round)
{
    const struct asym_run *run = arg;

    fprintf(stderr, "\r%-14s round %u of %u ", sp_algorithm_name(algorithm), round + 1, run->rounds);
}

/* Its own queues one after the other, but all open at the same time. */
static int open_device(const struct arguments *a, struct sp_cryptodev **out)
{
    char why[SP_CRYPTODEV_WHY_BYTES];

    *out = NULL;
    if (!a->device[0] || sp_cryptodev_new(out, a->device, SP_LANES_MAX + 1, why) == 0)
        return 0;
    fprintf(stderr, "sallyport crypto asym: cryptodev:%s: %s\n", a->device, why);
    return 1;
}

static int run_asym(const struct arguments *a, struct sp_cryptodev *device)
{
    struct asym_variant variants[VARIANTS_MAX];
    struct asym_run run = {.variants = variants,
                           .count = list_variants(a, device, variants),
                           .rounds = (unsigned)a->rounds,
                           .slice_ns = a->slice_ms * 1000000};
    const struct asym_variant *failed;
    bool terminal = isatty(STDERR_FILENO) != 0;
    int status;

    if (terminal) {
        run.progress = show_progress;
        run.progress_arg = &run;
    }
    status = asym_measure(&run, &failed);
    if (terminal)
        fprintf(stderr, "\r%40s\r", "");
    if (status != 0) {
        fprintf(stderr, "sallyport crypto asym: %s on %s: %s\n", sp_algorithm_name(failed->algorithm),
                kind_name(failed),
                status == SP_EFAULT ? "the result is wrong" : sp_lanes_missing(failed->algorithm)
                                                                  ? sp_lanes_missing(failed->algorithm)
                                                                  : "the operation failed");
        return 1;
    }
    if (a->json)
        print_json(&run);
    else
        print_table(&run);
    return 0;
}

static int crypto_asym(int argc, char **argv)
{
    struct sp_cryptodev *device;
    struct arguments a;
    int status = parse_arguments(argc, argv, &a);

    if (status != 0)
        return status;
    if (a.help) {
        fputs(usage, stdout);
        return 0;
    }
    status = open_device(&a, &device);
    if (status == 0)
        status = run_asym(&a, device);
    sp_cryptodev_free(device);
    return status;
}

int cmd_crypto(int argc, char **argv)
{
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        fputs(crypto_usage, argc < 2 ? stderr : stdout);
        return argc < 2 ? 2 : 0;
    }
    if (strcmp(argv[1], "asym") == 0)
        return crypto_asym(argc - 1, argv + 1);
    if (strcmp(argv[1], "sweep") == 0)
        return crypto_sweep(argc - 1, argv + 1);
    fprintf(stderr, "sallyport crypto: unknown subcommand '%s'; expected asym or sweep\n", argv[1]);
    return 2;
}
