/*
 * The kernel's crypto API, timed by the kernel module sallyport_crypto (kmod/): each point loads
 * it, waits for its row and unloads it.
 */
#include "base/clock.h"
#include "measure/impl/kernel_rows.h"

#include <sallyport/status.h>

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#define MODULE "sallyport_crypto"
#define MODULE_FILE MODULE ".ko"
#define DEBUGFS "/sys/kernel/debug"
#define ROWS_MAX 2
#define TEXT_MAX 4096
#define PARAMETERS_MAX 768
#define LOG_RECORDS_MAX 256
#define TIMEOUT_MS 10000u /* of one request: the module's timeout_ms */
#define OVERHEAD_MS \
    60000u /* beyond the slice and the time-out: opening drivers, checking results */
#define POLL_US 2000u
#define UNLOAD_MS 2000u

struct sweep_device {
    char driver[KERNEL_DRIVER_BYTES]; /* empty: whatever the kernel prefers for the algorithm */
    char module_path[PATH_MAX];
};

/* At most size - 1 bytes of a file, with a NUL. How many; negative: errno. */
static ssize_t read_file(const char *path, char *out, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t n = 0;
    ssize_t got = 1;

    if (fd < 0)
        return -1;
    while (n < size - 1 && got > 0) {
        got = read(fd, out + n, size - 1 - n);
        n += got > 0 ? (size_t)got : 0;
    }
    close(fd);
    out[n] = 0;
    return got < 0 ? -1 : (ssize_t)n;
}

static bool find_module(char *out, size_t size)
{
    static const char *const beside[] = {"", "kmod/", "../kmod/"};
    static const char *const installed[] = {"extra", "updates/dkms", "updates"};
    struct utsname name;
    char folder[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", folder, sizeof(folder) - 1);

    if (len > 0) {
        folder[len] = 0;
        folder[strrchr(folder, '/') - folder] = 0;
        for (size_t i = 0; i < sizeof(beside) / sizeof(beside[0]); i++) {
            int n = snprintf(out, size, "%s/%s" MODULE_FILE, folder, beside[i]);

            if (n > 0 && (size_t)n < size && access(out, R_OK) == 0)
                return true;
        }
    }
    for (size_t i = 0; uname(&name) == 0 && i < sizeof(installed) / sizeof(installed[0]); i++) {
        int n = snprintf(out, size, "/lib/modules/%s/%s/" MODULE_FILE, name.release, installed[i]);

        if (n > 0 && (size_t)n < size && access(out, R_OK) == 0)
            return true;
    }
    return false;
}

/* Whether this kernel and this user could load a module and read its rows. */
static int check_machine(struct sweep_why *why)
{
    struct statfs fs;
    char text[TEXT_MAX];

    if (access("/proc/modules", F_OK) != 0)
        return sweep_why(why, SP_EUNSUPPORTED,
                         "this kernel loads no modules (there is no /proc/modules)");
    if (geteuid() != 0)
        return sweep_why(why, SP_EPERM, "loading a kernel module needs root");
    if (read_file("/proc/filesystems", text, sizeof(text)) < 0 || !strstr(text, "\tdebugfs\n"))
        return sweep_why(why, SP_EUNSUPPORTED,
                         "this kernel has no debugfs, where the module shows its rows");
    if (statfs(DEBUGFS, &fs) != 0 || (unsigned long)fs.f_type != DEBUGFS_MAGIC)
        return sweep_why(
            why, SP_EUNSUPPORTED,
            "debugfs is not mounted, where the module shows its rows: mount -t debugfs none " DEBUGFS);
    return 0;
}

/* It becomes a word of the module's parameters. */
static bool is_driver_name(const char *name)
{
    size_t len = strlen(name);

    if (len == 0 || len >= KERNEL_DRIVER_BYTES)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (!isgraph((unsigned char)name[i]) || name[i] == '"')
            return false;
    }
    return true;
}

static int device_open(const char *argument, const struct sweep_limits *limits,
                       struct sweep_device **out, char *description, size_t size,
                       struct sweep_why *why)
{
    struct sweep_device *device;
    struct utsname name;
    int status = 0;

    if (argument && !is_driver_name(argument))
        return sweep_why(why, SP_EINVAL, "\"%.40s\" is no name of a driver, as in /proc/crypto",
                         argument);
    status = check_machine(why);
    if (status != 0)
        return status;
    device = calloc(1, sizeof(*device));
    if (!device)
        return sweep_why(why, SP_ENOMEM, "out of memory");
    if (!find_module(device->module_path, sizeof(device->module_path)) || uname(&name) != 0) {
        free(device);
        return sweep_why(
            why, SP_EUNSUPPORTED,
            MODULE_FILE
            " is neither beside the program nor in kmod/ nor in /lib/modules: make -C kmod");
    }
    if (argument)
        memcpy(device->driver, argument, strlen(argument) + 1);
    snprintf(description, size, "Linux %s, %s", name.release,
             argument ? argument : "the driver of highest priority");
    *out = device;
    return 0;
}

static void device_close(struct sweep_device *device)
{
    free(device);
}

static int supports(struct sweep_device *device, const struct sweep_algorithm *algorithm,
                    uint64_t request_bytes, bool in_place, struct sweep_why *why)
{
    if (!algorithm->kernel_name)
        return sweep_why(why, SP_EUNSUPPORTED, "the kernel has no %s", algorithm->name);
    if (request_bytes > SWEEP_BYTES_MAX)
        return sweep_why(why, SP_EUNSUPPORTED, "requests above %u MiB are refused",
                         SWEEP_BYTES_MAX >> 20);
    return 0;
}

/* The kernel's log from now on; -1: it may not be read. */
static int log_open(void)
{
    int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

    if (fd >= 0)
        lseek(fd, 0, SEEK_END);
    return fd;
}

/* The last error that the module logged; false: none. A record is "priority,...;text\n...". */
static bool log_last_error(int fd, char *out, size_t size)
{
    static const char prefix[] = MODULE ": ";
    char record[TEXT_MAX];
    bool found = false;

    for (unsigned i = 0; fd >= 0 && i < LOG_RECORDS_MAX; i++) {
        ssize_t n = read(fd, record, sizeof(record) - 1);
        const char *text;

        if (n < 0 && errno == EPIPE)
            continue; /* overwritten before it was read */
        if (n <= 0)
            break;
        record[n] = 0;
        text = strchr(record, ';');
        if (!text || (strtoul(record, NULL, 10) & 7) > 3 ||
            strncmp(text + 1, prefix, sizeof(prefix) - 1) != 0)
            continue;
        text += sizeof(prefix);
        snprintf(out, size, "%.*s", (int)strcspn(text, "\n"), text);
        found = true;
    }
    return found;
}

static int why_not_loaded(const struct sweep_device *device, int error, int log,
                          struct sweep_why *why)
{
    char text[SWEEP_WHY_BYTES];

    if (error == EEXIST)
        return sweep_why(
            why, SP_EEXIST,
            MODULE " is loaded already, by somebody else or by a device that still holds requests: "
                   "rmmod " MODULE);
    if (error == EPERM)
        return sweep_why(
            why, SP_EPERM,
            "the kernel lets nobody load modules (kernel.modules_disabled, or lockdown)");
    if (error == ENOEXEC || error == EKEYREJECTED)
        return sweep_why(why, SP_EUNSUPPORTED,
                         "%.120s was built for another kernel, or is not signed: make -C kmod",
                         device->module_path);
    if (log_last_error(log, text, sizeof(text)))
        return sweep_why(why, error == ENOMEM ? SP_ENOMEM : SP_EUNSUPPORTED, "%s", text);
    return sweep_why(why, SP_EIO, "loading " MODULE_FILE ": %s", strerror(error));
}

static int load(const struct sweep_device *device, const char *parameters, struct sweep_why *why)
{
    int log = log_open();
    int fd = open(device->module_path, O_RDONLY | O_CLOEXEC);
    int status = 0;

    if (fd < 0)
        status = sweep_why(why, SP_EIO, "%.120s: %s", device->module_path, strerror(errno));
    else if (syscall(SYS_finit_module, fd, parameters, 0) != 0)
        status = why_not_loaded(device, errno, log, why);
    if (fd >= 0)
        close(fd);
    if (log >= 0)
        close(log);
    return status;
}

/* Files that were just closed hold the module for a moment. */
static bool unload(void)
{
    uint64_t deadline_us = clock_now_us() + UNLOAD_MS * 1000;

    while (syscall(SYS_delete_module, MODULE, O_NONBLOCK) != 0) {
        if ((errno != EAGAIN && errno != EBUSY) || clock_now_us() >= deadline_us)
            return errno == ENOENT;
        usleep(POLL_US);
    }
    return true;
}

static int status_of(const char *error)
{
    switch (-strtol(error, NULL, 10)) {
    case ETIMEDOUT:
        return SP_ETIMEDOUT;
    case EBADMSG:
        return SP_EFAULT;
    case ENOMEM:
        return SP_ENOMEM;
    default:
        return SP_EIO;
    }
}

/* Until the run is over. 0; else why it failed. */
static int wait_for_end(uint64_t timeout_ms, struct sweep_why *why)
{
    static const char failed[] = "failed: ";
    uint64_t deadline_us = clock_now_us() + timeout_ms * 1000;
    char state[SWEEP_WHY_BYTES + sizeof(failed)], error[32];

    for (;;) {
        if (read_file(DEBUGFS "/" MODULE "/state", state, sizeof(state)) < 0)
            return sweep_why(why, SP_EIO, "the module's state in " DEBUGFS "/" MODULE ": %s",
                             strerror(errno));
        if (strcmp(state, "done\n") == 0)
            return 0;
        if (strncmp(state, failed, sizeof(failed) - 1) == 0)
            break;
        if (clock_now_us() >= deadline_us)
            return sweep_why(why, SP_ETIMEDOUT, "the module was still running after %llu s",
                             (unsigned long long)timeout_ms / 1000);
        usleep(POLL_US);
    }
    if (read_file(DEBUGFS "/" MODULE "/errno", error, sizeof(error)) < 0)
        error[0] = 0;
    return sweep_why(why, status_of(error), "%.*s", (int)strcspn(state + sizeof(failed) - 1, "\n"),
                     state + sizeof(failed) - 1);
}

static int read_row(const struct sweep_point *point, bool is_single, struct kernel_row *row,
                    struct sweep_why *why)
{
    struct kernel_row rows[ROWS_MAX];
    char text[TEXT_MAX];
    size_t count;
    ssize_t n = read_file(DEBUGFS "/" MODULE "/rows", text, sizeof(text));
    int status;

    if (n < 0)
        return sweep_why(why, SP_EIO, "the module's rows in " DEBUGFS "/" MODULE ": %s",
                         strerror(errno));
    status = kernel_rows_parse(text, (size_t)n, rows, ROWS_MAX, &count, why);
    if (status != 0)
        return status;
    if (count != 1 || rows[0].request_bytes != point->request_bytes ||
        rows[0].is_single != is_single)
        return sweep_why(why, SP_EINVAL, "the module measured another point than it was asked for");
    *row = rows[0];
    return 0;
}

/* One point, measured; `row` is filled when it answers 0. */
static int run(const struct sweep_device *device, const struct sweep_point *point,
               struct kernel_row *row, struct sweep_why *why)
{
    const struct sweep_algorithm *algorithm = point->key->algorithm;
    bool is_single = point->mode.kind == SWEEP_SINGLE;
    uint64_t msec = (point->slice_ns + 999999) / 1000000;
    char parameters[PARAMETERS_MAX], key[32] = "";
    int n, status;

    if (algorithm->key_bytes)
        snprintf(key, sizeof(key), " key_bits=%u", algorithm->key_bytes * 8);
    n = snprintf(
        parameters, sizeof(parameters),
        "driver=%s algorithm=%s op=%s mode=%s size_min=%llu size_max=%llu threads=%u depth=%u msec=%llu "
        "timeout_ms=%u in_place=%d%s",
        device->driver[0] ? device->driver : algorithm->kernel_name, algorithm->kernel_name,
        algorithm->kind == SWEEP_DIGEST ? "digest" : "encrypt", is_single ? "single" : "concurrent",
        (unsigned long long)point->request_bytes, (unsigned long long)point->request_bytes,
        point->mode.kind == SWEEP_CONCURRENT ? point->mode.n : 1u,
        point->mode.kind == SWEEP_DEPTH ? point->mode.n : 1u, (unsigned long long)(msec ? msec : 1),
        TIMEOUT_MS, point->in_place, key);
    if (n < 0 || (size_t)n >= sizeof(parameters))
        return sweep_why(why, SP_EINVAL, "the driver's name is too long");
    status = load(device, parameters, why);
    if (status != 0)
        return status;
    status = wait_for_end(msec + TIMEOUT_MS + OVERHEAD_MS, why);
    if (status == 0)
        status = read_row(point, is_single, row, why);
    if (!unload() && status == 0)
        status = sweep_why(why, SP_EIO, MODULE " cannot be unloaded: %s", strerror(errno));
    return status;
}

static int measure(struct sweep_device *device, const struct sweep_point *point,
                   struct sweep_sample *sample, struct sweep_why *why)
{
    struct kernel_row row;
    int status = run(device, point, &row, why);

    if (status == 0)
        *sample = row.sample;
    return status;
}

static int self_check(struct sweep_device *device, const struct sweep_key *key,
                      uint64_t request_bytes, bool in_place, struct sweep_why *why)
{
    struct sweep_point point = {
        .key = key,
        .mode = {SWEEP_SINGLE, 1},
        .request_bytes = request_bytes,
        .slice_ns = 1,
        .in_place = in_place,
    };
    struct kernel_row row;
    int status = run(device, &point, &row, why);

    if (status == 0 && strcmp(row.status, "ok") != 0)
        status = sweep_why(why, SP_EUNSUPPORTED, "the kernel has no generic %s to check %s against",
                           key->algorithm->kernel_name, row.driver);
    return status;
}

const struct sweep_impl sweep_impl_kernel = {
    .name = "kernel",
    .argument = "[DRIVER]",
    .summary = "the kernel's crypto API, by the module " MODULE " (root; make -C kmod)",
    .is_asynchronous = true,
    .device_open = device_open,
    .device_close = device_close,
    .supports = supports,
    .measure = measure,
    .self_check = self_check,
};
