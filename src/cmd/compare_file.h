/*
 * The file of `sallyport compare`: sections and keywords, one a line. docs/compare.md has the grammar.
 */
#ifndef SP_CMD_COMPARE_FILE_H
#define SP_CMD_COMPARE_FILE_H

#include "base/diag.h"

#include <sched.h>

#define COMPARE_FILE_BYTES_MAX (1 << 20)
#define COMPARE_SERVERS_MAX 32 /* variants, and as many services */
#define COMPARE_LOADS_MAX 32
#define COMPARE_ROUNDS_MAX 99
#define COMPARE_WORDS_MAX 128
#define COMPARE_ITEMS_MAX 32 /* of one kind in one section */

/* A word or a text as it stands in the file: {…} is not replaced yet. */
struct compare_text {
    const char *text;
    struct cfg_loc loc;
};

struct compare_words {
    struct compare_text words[COMPARE_WORDS_MAX];
    size_t count;
};

struct compare_set {
    const char *name;
    struct compare_text value;
};

struct compare_cpus {
    cpu_set_t set;
    const char *text; /* NULL: not pinned */
};

/* A variant or a service. */
struct compare_server {
    const char *name;
    struct cfg_loc loc;
    bool is_service;
    struct compare_words start;
    int stop_signal;
    const char *stop_command; /* NULL: the signal */
    struct cfg_loc stop_loc;
    struct compare_text ready; /* text NULL: host and port of the URL, or 127.0.0.1:{port} of a service */
    struct compare_text url;   /* variants */
    struct compare_words env, needs, bench;
    struct compare_set sets[COMPARE_ITEMS_MAX];
    size_t set_count;
    struct compare_cpus cpus;
    bool keeps_running; /* restart no */
    uint16_t port;      /* given by the runner */
};

struct compare_load {
    const char *name;
    struct cfg_loc loc;
    struct compare_words bench;
    const char *path; /* NULL: that of the URL */
};

struct compare_file {
    const char *name;
    struct compare_text content;
};

struct compare_plan {
    struct arena *arena; /* everything lives here */
    const char *path;
    struct str text; /* of the whole file */
    const char *title;
    struct cfg_loc loc;
    unsigned rounds;
    const char *warmup; /* as written */
    uint64_t warmup_us;
    uint64_t timeout_us; /* of one measurement */
    uint64_t seed;
    bool has_seed;
    struct compare_text base_name;
    unsigned base; /* index of the variant */
    struct compare_cpus client_cpus;
    struct compare_text prepare[COMPARE_ITEMS_MAX];
    size_t prepare_count;
    struct compare_file files[COMPARE_ITEMS_MAX];
    size_t file_count;
    struct compare_server variants[COMPARE_SERVERS_MAX], services[COMPARE_SERVERS_MAX];
    size_t variant_count, service_count;
    struct compare_load loads[COMPARE_LOADS_MAX];
    size_t load_count;
};

/*
 * Reads and checks `text`, all of it: every error is in `diag`. 0, SP_EINVAL after errors, SP_ENOMEM. `plan` keeps
 * pointers into `text` and the arena, and is good for nothing after a failure.
 */
int compare_file_parse(struct compare_plan *plan, struct arena *arena, const char *path, struct str text,
                       struct diag *diag);

/*
 * `text` with its {…} replaced, for one server (NULL: none is being started): {dir}, {port}, {port.NAME}, {variant} and
 * what `set` gave; `{{` stands for `{`. In the arena; NULL when memory ran out. Names were checked by the parser.
 */
const char *compare_expand(const struct compare_plan *plan, struct arena *arena, const struct compare_server *server,
                           const char *dir, const char *text);

/* The server of that name, a variant or a service; NULL: none. */
const struct compare_server *compare_find(const struct compare_plan *plan, struct str name);

#endif
