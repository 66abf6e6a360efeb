/*
 * Regular expressions: PCRE2 with JIT and a bound on the work that a hostile
 * subject can cause. A compiled expression is shared by all threads; what one
 * match needs lives on the caller's stack.
 */
#ifndef SP_RULES_REGEX_H
#define SP_RULES_REGEX_H

#include "rules/rules.h"

struct regex;

#define REGEX_GROUPS 10 /* the whole match and \1 to \9 */

struct regex_groups {
    size_t start[REGEX_GROUPS], end[REGEX_GROUPS]; /* REGEX_UNSET for groups that took no part */
};
#define REGEX_UNSET ((size_t)-1)

/*
 * Compiles; the registry releases it. `captures` false forgets groups. Returns
 * SP_EINVAL with PCRE2's message and the offset in `why`, or SP_ENOMEM.
 */
int regex_compile(struct rules_registry *registry, const char *pattern, bool ignore_case,
                  bool captures, struct regex **out, char *why, size_t why_bytes);
void regex_free(struct regex *re);
/* Frees the first of a registry's list and returns the next. */
struct regex *regex_unlink(struct regex *first);

/* Exceeding the match limit counts as no match. */
bool regex_test(const struct regex *re, struct str subject);
/* `not_start`: the subject's first byte is not the beginning of a line. */
bool regex_match(const struct regex *re, struct str subject, bool not_start,
                 struct regex_groups *out);

/*
 * Appends a replacement: \0 to \9 are groups, \xHH a byte, any other escaped
 * byte itself. SP_ETOOBIG when it does not fit, SP_EINVAL on a lone backslash at the end.
 */
int regex_expand(struct str replacement, struct str subject, const struct regex_groups *g,
                 struct buf *out);

#endif
