/*
 * What a comparison ran on: CPU, kernel, governor, and the programs with their versions and hashes.
 */
#include "cmd/compare_json.h"
#include "cmd/compare_process.h"

#include <ctype.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#define VERSION_US 3000000
#define VERSION_BYTES 65536
#define PROGRAM_BYTES_MAX (256 << 20)

static void hex(const unsigned char *digest, unsigned n, char out[65])
{
    out[0] = '\0';
    for (unsigned i = 0; i < n && i < 32; i++)
        snprintf(out + 2 * i, 3, "%02x", digest[i]);
}

void compare_sha256(struct str data, char out[65])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned n = 0;

    if (EVP_Digest(data.ptr, data.len, digest, &n, EVP_sha256(), NULL) != 1)
        n = 0;
    hex(digest, n, out);
}

static void file_sha256(const char *path, char out[65])
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    FILE *file = fopen(path, "re");
    unsigned char bytes[16384], digest[EVP_MAX_MD_SIZE];
    size_t got, total = 0;
    unsigned n = 0;

    out[0] = '\0';
    if (file && ctx && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) == 1) {
        while ((got = fread(bytes, 1, sizeof(bytes), file)) > 0 && total < PROGRAM_BYTES_MAX) {
            EVP_DigestUpdate(ctx, bytes, got);
            total += got;
        }
        if (EVP_DigestFinal_ex(ctx, digest, &n) == 1)
            hex(digest, n, out);
    }
    if (file)
        fclose(file);
    EVP_MD_CTX_free(ctx);
}

/* The first line of a small file; "" when it is not there. */
static void first_line(const char *path, char *out, size_t out_bytes)
{
    FILE *file = fopen(path, "re");

    out[0] = '\0';
    if (!file)
        return;
    if (!fgets(out, (int)out_bytes, file))
        out[0] = '\0';
    out[strcspn(out, "\n")] = '\0';
    fclose(file);
}

static void cpu_model(char *out, size_t out_bytes)
{
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[512];

    snprintf(out, out_bytes, "unknown");
    while (file && fgets(line, sizeof(line), file)) {
        const char *colon = strchr(line, ':');

        if (!colon || strncmp(line, "model name", 10) != 0)
            continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(out, out_bytes, "%s", colon + 1 + (colon[1] == ' '));
        break;
    }
    if (file)
        fclose(file);
}

/* Where the shell would find it; false: nowhere. */
static bool find_program(const char *name, char *out, size_t out_bytes)
{
    struct str rest = str_of(getenv("PATH"));

    if (strchr(name, '/')) {
        snprintf(out, out_bytes, "%s", name);
        return access(out, X_OK) == 0;
    }
    while (rest.len) {
        size_t len = str_chr(rest, ':');

        if (snprintf(out, out_bytes, "%.*s/%s", (int)len, rest.ptr, name) < (int)out_bytes && access(out, X_OK) == 0)
            return true;
        rest = str_from(rest, len + 1);
    }
    return false;
}

static bool has_digit(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (isdigit((unsigned char)s.ptr[i]))
            return true;
    }
    return false;
}

/*
 * The line in which a program says its version. Programs disagree on the option, the stream and the exit status, so
 * what counts is a first line with a digit that names the program or a "version".
 */
static bool ask_version(const char *path, const char *option, char *out, size_t out_bytes)
{
    static const char script[] = "exec \"$0\" \"$1\" 2>&1";
    char *argv[] = {(char *)"/bin/sh", (char *)"-c", (char *)script, (char *)path, (char *)option, NULL};
    struct compare_command command = {.argv = argv};
    const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    char *text = NULL;
    size_t bytes = 0;
    struct str line;
    int exit_status;
    bool good;

    if (compare_run(&command, VERSION_US, VERSION_BYTES, &text, &bytes, &exit_status) != 0)
        return false;
    line = str_make(text, bytes);
    line.len = str_chr(line, '\n');
    good = has_digit(line) && (str_ifind(line, STR("version")) < line.len || str_ifind(line, str_of(base)) < line.len ||
                               str_ifind(line, STR("python")) < line.len || str_ifind(line, STR("openssl")) < line.len);
    if (good)
        snprintf(out, out_bytes, "%.*s", line.len < 200 ? (int)line.len : 200, line.ptr);
    free(text);
    return good;
}

/* `path` is where it is, or a name to be looked for. */
static void add_program(json_t *programs, const char *name, const char *where)
{
    static const char *const options[] = {"-v", "--version", "version"};
    char path[4096], version[256] = "unknown", sha256[65];
    size_t i;
    json_t *known, *entry;

    json_array_foreach(programs, i, known) {
        if (strcmp(json_string_value(json_object_get(known, "name")), name) == 0)
            return;
    }
    if (!find_program(where, path, sizeof(path)))
        return;
    for (i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        /* Shells take a lone word for a script, and the like: the third form is OpenSSL's alone. */
        if (i == 2 && strcmp(name, "openssl") != 0)
            break;
        if (ask_version(path, options[i], version, sizeof(version)))
            break;
    }
    file_sha256(path, sha256);
    entry = json_object();
    json_object_set_new(entry, "name", json_string(name));
    json_object_set_new(entry, "path", json_string(path));
    json_object_set_new(entry, "version", json_string(version));
    json_object_set_new(entry, "sha256", json_string(sha256));
    json_array_append_new(programs, entry);
}

static void add_first_word(json_t *programs, const struct compare_server *server, const char *self)
{
    const char *name = server->start.count ? server->start.words[0].text : "";

    if (*name && !strchr(name, '{'))
        add_program(programs, name, strcmp(name, "sallyport") == 0 ? self : name);
}

json_t *compare_machine(const struct compare_plan *plan, const struct compare_options *options)
{
    json_t *machine = json_object(), *programs = json_array();
    struct utsname kernel;
    char text[512], self[4096];
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

    self[len > 0 ? len : 0] = '\0';
    cpu_model(text, sizeof(text));
    json_object_set_new(machine, "cpu", json_string(text));
    json_object_set_new(machine, "cores", json_integer(sysconf(_SC_NPROCESSORS_ONLN)));
    if (uname(&kernel) == 0) {
        snprintf(text, sizeof(text), "%s %s %s", kernel.sysname, kernel.release, kernel.machine);
        json_object_set_new(machine, "kernel", json_string(text));
    }
    first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", text, sizeof(text));
    json_object_set_new(machine, "governor", json_string(*text ? text : "none exposed"));
    add_program(programs, "sallyport", self);
    if (strcmp(options->bench, self) != 0 && strcmp(options->bench, "/proc/self/exe") != 0)
        add_program(programs, options->bench, options->bench);
    for (size_t i = 0; i < plan->variant_count; i++)
        add_first_word(programs, &plan->variants[i], self);
    for (size_t i = 0; i < plan->service_count; i++)
        add_first_word(programs, &plan->services[i], self);
    add_program(programs, "openssl", "openssl");
    json_object_set_new(machine, "programs", programs);
    return machine;
}
