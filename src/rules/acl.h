/*
 * Named ACLs and conditions, inside.
 */
#ifndef SP_RULES_ACL_H
#define SP_RULES_ACL_H

#include "rules/pattern.h"

/* MISS: more bytes could change the answer. */
enum acl_result { ACL_FAIL = 0, ACL_MISS = 1, ACL_PASS = 3 };

/* One criterion with its patterns. */
struct acl_test {
    struct acl_test *next;
    struct rules_expr *expr;
    enum pat_match match;
    unsigned set_count;
    struct pat_set **sets;
};

struct acl {
    struct acl *next;
    const char *name;                     /* "" for anonymous ones */
    struct acl_test *tests, **tests_tail; /* one that passes is enough */
};

struct rules_acls {
    struct arena *arena;
    struct acl *acls, **tail;
};

/* Named, or one of the predefined ones, which are compiled at first use. NULL when there is none (no message). */
struct acl *acl_lookup(struct rules_compiler *c, const char *name);
/* An anonymous ACL: the words between braces. NULL with the error in diag. */
struct acl *acl_anonymous(struct rules_compiler *c, int argc, char *const *argv);

/* `final`: no more bytes will come. */
enum acl_result acl_test(const struct acl *acl, struct rules_ctx *ctx, bool final);
/* -1 never, 1 always, 0 depends. */
int acl_fold(const struct acl *acl, bool listener_tls, struct arena *scratch);
unsigned acl_needs(const struct acl *acl);

/* A condition as rules see it. */
enum acl_result cond_test(const struct rules_cond *cond, struct rules_ctx *ctx, bool final);
unsigned cond_needs(const struct rules_cond *cond);

/* Names for suggestions and documentation. */
extern const char *const acl_predefined_names[];
extern const size_t acl_predefined_count;

/* ACL-only criteria: a fetch under another name or with a matching method of its own. */
struct acl_keyword {
    const char *name;
    const char *fetch;
    enum pat_match match;
};
const struct acl_keyword *acl_keyword_find(struct str name);
extern const struct acl_keyword acl_keywords[];
extern const size_t acl_keyword_count;

#endif
