/*
 * The configuration language: files to a checked model.
 *
 * Every error of every file is put into the diagnostics; nothing is printed.
 */
#ifndef SP_CONFIG_CONFIG_H
#define SP_CONFIG_CONFIG_H

#include "config/model.h"

/* What predicates (".if", "-cc") and defaults can ask about the program. */
struct cfg_environment {
    const char *program_version;        /* "0.1.0" */
    const char *compatible_version;     /* HAProxy version whose language is read, for version_atleast() */
    const char *ssl_library_text;       /* "OpenSSL 3.0.22 …" */
    const char *ssl_library_name;       /* "OpenSSL" */
    const char *const *features;        /* names for feature(): "OPENSSL", "PCRE2", "ZLIB", … NULL-terminated */
    const char *const *enabled_options; /* names for enabled(): "POLL", "EPOLL", "SPLICE", … */
    bool (*is_defined)(const char *environment_variable); /* NULL: getenv */
    /*
     * Nothing outside the text is touched: error files, users, groups and host names are taken as
     * they are, and the environment is not changed. For tests and the fuzzer.
     */
    bool sealed;
};

/*
 * Reads `paths` in order (a folder: its *.cfg files in name order) as one configuration. Returns a model
 * even when there were errors, as far as it could be understood, so that later checks can add theirs;
 * diag->errors tells. NULL only without memory. `diag` must live in an arena that outlives the model.
 * setenv, presetenv, unsetenv and resetenv of the global section act on this process's environment.
 */
struct cfg_model *cfg_load(const char *const *paths, int path_count, const struct cfg_environment *env,
                           struct diag *diag);
/* The same from memory, for tests and the fuzzer: `name` stands for the file. */
struct cfg_model *cfg_load_text(const char *name, struct str text, const struct cfg_environment *env,
                                struct diag *diag);
void cfg_free(struct cfg_model *model);

/* "-cc EXPR": 1 true, 0 false, SP_EINVAL with the reason in diag. */
int cfg_eval_condition(const char *expression, const struct cfg_environment *env, struct diag *diag);

/* One row of the keyword table, for documentation. */
struct cfg_doc {
    const char *name;     /* "timeout client" */
    const char *sections; /* "defaults, frontend, listen" or "bind option" */
    const char *args;     /* "<time>" */
    const char *help;
    bool supported;       /* false: known HAProxy keyword that is refused */
    bool has_effect;      /* false: accepted only; `help` says why that is enough */
    char sections_text[200]; /* what `sections` points to: do not copy the structure */
};
/* Every row of every table, in a stable order; false past the end. */
bool cfg_doc_row(unsigned index, struct cfg_doc *out);

#endif
