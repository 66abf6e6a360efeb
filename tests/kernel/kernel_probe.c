/*
 * Runs the kernel implementation of the crypto sweep at one point, without the sweep around it: in
 * the test guest, where test_kernel.py reads what it prints.
 *
 * usage: kernel_probe DRIVER|- ALGORITHM BYTES single|concurrent|depth N SLICE_MS
 */
#include "base/str.h"
#include "measure/sweep_impl.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static int usage(void)
{
    fputs("usage: kernel_probe DRIVER|- ALGORITHM BYTES single|concurrent|depth N SLICE_MS\n",
          stderr);
    return 2;
}

static int failed(const char *step, int status, const struct sweep_why *why)
{
    printf("probe %s status %d: %s\n", step, status, why->text);
    return 1;
}

static int probe(struct sweep_device *device, const struct sweep_point *point)
{
    const struct sweep_impl *impl = &sweep_impl_kernel;
    struct sweep_sample sample;
    struct sweep_why why = {""};
    int status =
        impl->supports(device, point->key->algorithm, point->request_bytes, point->in_place, &why);

    if (status != 0)
        return failed("supports", status, &why);
    status = impl->self_check(device, point->key, point->request_bytes, point->in_place, &why);
    if (status != 0)
        return failed("self_check", status, &why);
    status = impl->measure(device, point, &sample, &why);
    if (status != 0)
        return failed("measure", status, &why);
    printf(
        "probe ok requests %llu bytes %llu async %llu errors %llu elapsed %d busy %d latency %d\n",
        (unsigned long long)sample.requests, (unsigned long long)sample.bytes,
        (unsigned long long)sample.async_requests, (unsigned long long)sample.errors,
        sample.elapsed_ns > 0, sample.busy_ns != UINT64_MAX,
        !isnan(sample.p50_us) && sample.p50_us <= sample.p99_us);
    return 0;
}

int main(int argc, char **argv)
{
    static const char *const modes[] = {"single", "concurrent", "depth"};
    struct sweep_limits limits = {SWEEP_BYTES_MAX, SWEEP_THREADS_MAX, SWEEP_DEPTH_MAX};
    struct sweep_key key = {0};
    struct sweep_point point = {.key = &key};
    struct sweep_device *device;
    struct sweep_why why = {""};
    char description[128];
    uint64_t n, slice_ms;
    int status;

    if (argc != 7)
        return usage();
    key.algorithm = sweep_algorithm_find(argv[2], strlen(argv[2]));
    if (!key.algorithm ||
        str_to_u64((struct str){argv[3], strlen(argv[3])}, &point.request_bytes) != 0 ||
        str_to_u64((struct str){argv[5], strlen(argv[5])}, &n) != 0 ||
        str_to_u64((struct str){argv[6], strlen(argv[6])}, &slice_ms) != 0)
        return usage();
    point.mode.n = (unsigned)n;
    point.slice_ns = slice_ms * 1000000;
    for (unsigned i = 0; i < 3; i++) {
        if (strcmp(argv[4], modes[i]) == 0)
            point.mode.kind = (enum sweep_mode_kind)i;
    }
    status = sweep_impl_kernel.device_open(strcmp(argv[1], "-") == 0 ? NULL : argv[1], &limits,
                                           &device, description, sizeof(description), &why);
    if (status != 0)
        return failed("device_open", status, &why);
    printf("probe device %s\n", description);
    status = probe(device, &point);
    sweep_impl_kernel.device_close(device);
    return status;
}
