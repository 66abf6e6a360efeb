/*
 * Loading configurations from text for the tests of this folder.
 */
#ifndef TESTS_CONFIG_SUPPORT_H
#define TESTS_CONFIG_SUPPORT_H

#include "config/config.h"

#include "base/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* What predicates see; sealed: nothing outside the text is touched. */
extern const struct cfg_environment test_environment;

struct loaded {
    struct arena arena;
    struct diag diag;
    struct cfg_model *model;
};

/* From text, as a file named "t.cfg". */
void load(struct loaded *l, const char *text);
void load_bytes(struct loaded *l, const char *text, size_t len, const struct cfg_environment *env);
/* From files and folders, unsealed. */
void load_files(struct loaded *l, const char *const *paths, int count);
void unload(struct loaded *l);

/* Everything that was reported: "t.cfg:1: error: …" a line, in the arena. */
const char *report(struct loaded *l);

/* Loads, compares the whole report, unloads. */
void assert_report(const char *text, const char *expected);

struct cfg_proxy *find_proxy(const struct loaded *l, const char *name);
struct cfg_server *find_server(const struct loaded *l, const char *proxy, const char *name);
/* A line's words joined by spaces, in the arena. */
const char *line_text(struct loaded *l, const struct cfg_line *line);

#endif
