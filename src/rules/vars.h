/*
 * Variables: "scope.name" with the scopes proc, sess, txn, req, res.
 */
#ifndef SP_RULES_VARS_H
#define SP_RULES_VARS_H

#include "rules/rules.h"

struct var_ref {
    enum rules_scope scope;
    uint64_t name; /* hash */
};

/* Conditions of set-var: all must hold. */
enum {
    VAR_IF_EXISTS = 1 << 0,
    VAR_IF_NOT_EXISTS = 1 << 1,
    VAR_IF_EMPTY = 1 << 2,
    VAR_IF_NOT_EMPTY = 1 << 3,
    VAR_IF_SET = 1 << 4,
    VAR_IF_NOT_SET = 1 << 5,
    VAR_IF_GREATER = 1 << 6, /* the variable's value is greater than the new one */
    VAR_IF_LESS = 1 << 7,
};

/* SP_EINVAL with a static text in *why. */
int var_parse(struct str name, struct var_ref *out, const char **why);
/* The bit of a condition's name; 0 for an unknown one. */
unsigned var_condition(struct str name);

bool var_get(const struct var_ref *ref, struct rules_ctx *ctx, struct sample *out);
/* Copies the value. False when a condition does not hold, the scope does not exist here or memory is out. */
bool var_set(const struct var_ref *ref, struct rules_ctx *ctx, const struct sample *value,
             unsigned conditions);
void var_unset(const struct var_ref *ref, struct rules_ctx *ctx);

#endif
