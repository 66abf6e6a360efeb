/*
 * What the tests of src/rules share: a compiler, a stream with a request, a
 * response and a fake host, and functions that take configuration text.
 */
#ifndef TEST_RULES_HARNESS_H
#define TEST_RULES_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rules/expr.h"
#include "rules/logformat.h"
#include "rules/rules.h"

#define FAKE_ITEMS 160

struct fixture {
    struct arena config, request, session;
    struct diag diag;
    struct rules_compiler c;
    struct rules_ctx ctx;
    struct rules_host host;
    struct http_msg req, res;
    struct rules_log log;
    struct rules_vars sess_vars, proc_vars;
    struct hash_rng rng;
    /* The fake host: items that exist, counters, what "set" was told. */
    struct sample items[FAKE_ITEMS];
    bool has_item[FAKE_ITEMS];
    int64_t counts[32];
    void *counted_object;
    struct sample set_items[FAKE_ITEMS];
    bool was_set[FAKE_ITEMS];
    struct str req_captures[4], res_captures[4];
    size_t capture_limits[4];
    int captures_declared;
};

void fixture_init(struct fixture *f);
void fixture_release(struct fixture *f);
/* cmocka set-up and tear-down: *state is a struct fixture. */
int fixture_setup(void **state);
int fixture_teardown(void **state);

/* "GET /x HTTP/1.1\r\nHost: a\r\n\r\n": a head. */
void fixture_request(struct fixture *f, const char *head);
void fixture_response(struct fixture *f, const char *head);

void fixture_item_str(struct fixture *f, enum rules_item item, const char *text);
void fixture_item_bin(struct fixture *f, enum rules_item item, const void *bytes, size_t n);
void fixture_item_int(struct fixture *f, enum rules_item item, int64_t value);
void fixture_item_bool(struct fixture *f, enum rules_item item, bool value);
void fixture_item_addr(struct fixture *f, enum rules_item item, const char *text);

/* Words of a configuration line: blanks separate, double quotes group, a backslash protects. */
int fixture_words(struct fixture *f, const char *line, char ***argv);

/* The value of an expression as text, "<none>" when it has none; fails the test when it does not compile. */
const char *fixture_eval(struct fixture *f, const char *expression);
/* The same with the type in front: "int:5", "bool:true", "str:x", "bin:00FF", "addr:::1". */
const char *fixture_typed(struct fixture *f, const char *expression);
struct rules_expr *fixture_expr(struct fixture *f, const char *expression);

/* "if …", evaluated. */
bool fixture_cond(struct fixture *f, const char *condition);
struct rules_cond *fixture_cond_compile(struct fixture *f, const char *condition);
/* The words after "acl". */
void fixture_acl(struct fixture *f, const char *line);

/* Formats in logs, and in fields. */
const char *fixture_log(struct fixture *f, const char *format);
const char *fixture_field(struct fixture *f, const char *format);

/* Adds rules ("http-request" and the like by hook); fails the test on errors. */
struct rules_set *fixture_rules(struct fixture *f, enum rules_hook hook, const char *const *lines);
/* One rule, run on the fixture's messages. */
enum rules_verdict fixture_run(struct fixture *f, enum rules_hook hook, const char *line,
                               struct rules_outcome *out);

/* The text of the only error of what was compiled last; the count is reset. NULL when there was none. */
const char *fixture_error(struct fixture *f);
const char *fixture_warning(struct fixture *f);
/* Compiles and expects an error with `part` in it. */
void fixture_expr_fails(struct fixture *f, const char *expression, const char *part);
void fixture_cond_fails(struct fixture *f, const char *condition, const char *part);
void fixture_fmt_fails(struct fixture *f, const char *format, const char *part);
void fixture_rule_fails(struct fixture *f, enum rules_hook hook, const char *line,
                        const char *part);

/* All values of a field, joined by "|"; "<none>" without one. */
const char *fixture_field_values(struct fixture *f, const struct http_msg *m, const char *name);

/* A file in the build folder's scratch space with that content; its path. */
const char *fixture_file(struct fixture *f, const char *name, const char *content);

/* Rows of "expression -> expected". */
struct expectation {
    const char *input;
    const char *expected;
};
void fixture_check_typed(struct fixture *f, const struct expectation *rows, size_t n);

/* Fails unless each row of the table is used by one of the inputs. */
void fixture_check_fetches_used(const struct fetch_table *table, const struct expectation *rows,
                                size_t n);
void fixture_check_convs_used(const struct conv_table *table, const struct expectation *rows,
                              size_t n);

#define COUNT_OF(a) (sizeof(a) / sizeof *(a))
#define TEST(function) cmocka_unit_test_setup_teardown(function, fixture_setup, fixture_teardown)

#endif
