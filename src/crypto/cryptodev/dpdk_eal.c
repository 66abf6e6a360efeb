/*
 * DPDK's environment abstraction layer (EAL), once a process.
 */
#include "crypto/cryptodev/dpdk_internal.h"

#include <fcntl.h>
#include <openssl/provider.h>
#include <pthread.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_log.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define ARGUMENTS_MAX 16
#define ERROR_BYTES 160
#define DESCRIPTORS_MAX 1024

int dpdk_why(struct cryptodev_why *why, int status, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(why->text, sizeof(why->text), format, arguments);
    va_end(arguments);
    return status;
}

/* --- its log ------------------------------------------------------------------------------------ */

static struct {
    pthread_mutex_t mutex;
    char first[ERROR_BYTES];
} logged = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* DPDK would write to the terminal and to syslog; here the first line is kept for messages: the cause. */
static ssize_t log_write(void *cookie, const char *text, size_t len)
{
    size_t n = len;

    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == ' '))
        n--;
    if (n > sizeof(logged.first) - 1)
        n = sizeof(logged.first) - 1;
    pthread_mutex_lock(&logged.mutex);
    if (n > 0 && !logged.first[0]) {
        memcpy(logged.first, text, n);
        logged.first[n] = '\0';
    }
    pthread_mutex_unlock(&logged.mutex);
    return (ssize_t)len;
}

void dpdk_forget_errors(void)
{
    pthread_mutex_lock(&logged.mutex);
    logged.first[0] = '\0';
    pthread_mutex_unlock(&logged.mutex);
}

void dpdk_add_error(struct cryptodev_why *why)
{
    size_t len = strlen(why->text);

    pthread_mutex_lock(&logged.mutex);
    if (logged.first[0])
        snprintf(why->text + len, sizeof(why->text) - len, ": %s", logged.first);
    pthread_mutex_unlock(&logged.mutex);
    for (char *c = why->text; *c; c++) {
        if (*c == '\n')
            *c = ' ';
    }
}

void dpdk_unique_name(char *out, size_t size, const char *kind)
{
    static atomic_uint next;

    snprintf(out, size, "sp_%s_%u", kind, atomic_fetch_add(&next, 1));
}

/* --- starting ------------------------------------------------------------------------------------- */

static struct {
    pthread_mutex_t mutex;
    enum { NOT_STARTED, STARTED, FAILED } state;
    char pci_address[32];
    OSSL_PROVIDER *provider; /* for as long as the process lives */
    struct cryptodev_why why;
} eal = {.mutex = PTHREAD_MUTEX_INITIALIZER};

struct start {
    unsigned megabytes;
    const char *pci_address;
    int error;
};

/* "0@(0,1,5)": the one lcore that DPDK insists on may run wherever this process may. */
static void lcores_text(char *out, size_t size)
{
    cpu_set_t cpus;
    size_t len = (size_t)snprintf(out, size, "0@(");
    bool any = false;

    CPU_ZERO(&cpus);
    (void)sched_getaffinity(0, sizeof(cpus), &cpus);
    for (int i = 0; i < RTE_MAX_LCORE && len + 8 < size; i++) {
        if (!CPU_ISSET((size_t)i, &cpus))
            continue;
        len += (size_t)snprintf(out + len, size - len, "%s%d", any ? "," : "", i);
        any = true;
    }
    snprintf(out + len, size - len, "%s)", any ? "" : "0");
}

/* On a thread of its own: the environment makes the thread that starts it its main lcore, and binds it to CPUs. */
static void *start_thread(void *arg)
{
    struct start *s = arg;
    char program[] = "sallyport", no_huge[] = "--no-huge", memory[] = "-m", megabytes[16];
    char no_files[] = "--no-shconf", telemetry[] = "--no-telemetry", lcores[] = "--lcores",
         text[512];
    char level[] = "--log-level=error", addresses[] = "--iova-mode=va", no_pci[] = "--no-pci",
         allow[] = "-a", address[32];
    char *argv[ARGUMENTS_MAX] = {program,   no_huge, no_files,  telemetry, level,
                                 addresses, memory,  megabytes, lcores,    text};
    int argc = 10;

    /* Ordinary memory has no physical addresses to give to a device: it sees virtual ones, as everything here does. */
    snprintf(megabytes, sizeof(megabytes), "%u", s->megabytes);
    lcores_text(text, sizeof(text));
    if (s->pci_address) {
        snprintf(address, sizeof(address), "%s", s->pci_address);
        argv[argc++] = allow;
        argv[argc++] = address;
    } else {
        argv[argc++] = no_pci;
    }
    s->error = rte_eal_init(argc, argv) < 0 ? rte_errno : 0;
    return NULL;
}

/* Its descriptors are not for programs that this one starts. */
static void close_on_exec(const bool *before)
{
    for (int fd = 3; fd < DESCRIPTORS_MAX; fd++) {
        if (!before[fd] && fcntl(fd, F_GETFD) >= 0)
            (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    }
}

static int start(struct start *s, struct cryptodev_why *why)
{
    const cookie_io_functions_t functions = {.write = log_write};
    FILE *log = fopencookie(NULL, "w", functions);
    bool before[DESCRIPTORS_MAX];
    sigset_t all, old;
    pthread_t thread;
    int error;

    if (!log)
        return dpdk_why(why, SP_ENOMEM, "out of memory");
    setvbuf(log, NULL, _IOLBF, 0);
    rte_openlog_stream(log);
    for (int fd = 0; fd < DESCRIPTORS_MAX; fd++)
        before[fd] = fcntl(fd, F_GETFD) >= 0;
    /* Signals are the main thread's. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    error = pthread_create(&thread, NULL, start_thread, s);
    if (error == 0)
        pthread_join(thread, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    close_on_exec(before);
    if (error == 0 && s->error == 0) {
        /*
         * The driver over OpenSSL loads its default provider and, with its last device, unloads it: without another
         * reference nobody in the process would have any algorithm any more.
         */
        eal.provider = OSSL_PROVIDER_load(NULL, "default");
        return 0;
    }
    dpdk_why(why, SP_EIO, "DPDK does not start with %u MB of memory", s->megabytes);
    dpdk_add_error(why);
    return SP_EIO;
}

int dpdk_start(unsigned megabytes, const char *pci_address, struct cryptodev_why *why)
{
    struct start s = {.megabytes = megabytes, .pci_address = pci_address};
    int status = 0;

    pthread_mutex_lock(&eal.mutex);
    if (eal.state == NOT_STARTED) {
        status = start(&s, &eal.why);
        eal.state = status == 0 ? STARTED : FAILED; /* it cannot be tried again in the process */
        snprintf(eal.pci_address, sizeof(eal.pci_address), "%s", pci_address ? pci_address : "");
    }
    if (eal.state == FAILED) {
        status = SP_EIO;
        *why = eal.why;
    } else if (pci_address && strcmp(pci_address, eal.pci_address) != 0) {
        status = dpdk_why(
            why, SP_EUNSUPPORTED,
            "DPDK runs in this process already, without the device %s: name it before the others, or alone",
            pci_address);
    }
    pthread_mutex_unlock(&eal.mutex);
    return status;
}
