#include "config/preprocess.h"

#include "base/status.h"

#include <stdio.h>

void cfg_blocks_init(struct cfg_blocks *b)
{
    b->depth = 0;
}

enum cfg_directive cfg_directive_of(const char *word)
{
    if (word[0] != '.')
        return CFG_DIRECTIVE_NONE;
    if (strcmp(word, ".if") == 0)
        return CFG_DIRECTIVE_IF;
    if (strcmp(word, ".elif") == 0)
        return CFG_DIRECTIVE_ELIF;
    if (strcmp(word, ".else") == 0)
        return CFG_DIRECTIVE_ELSE;
    return strcmp(word, ".endif") == 0 ? CFG_DIRECTIVE_ENDIF : CFG_DIRECTIVE_NONE;
}

bool cfg_blocks_active(const struct cfg_blocks *b)
{
    return b->depth == 0 || b->stack[b->depth - 1].state == CFG_BLOCK_TAKEN;
}

static int fail(struct cfg_condition_error *error, const char *text)
{
    snprintf(error->text, sizeof(error->text), "%s", text);
    error->position = 0;
    return SP_EINVAL;
}

/* Sets the state of a branch from its condition. */
static int decide(struct cfg_block *block, const struct cfg_environment *env, const char *condition,
                  struct cfg_condition_error *error)
{
    int value = cfg_condition_eval(env, condition, error);

    /* After a condition that means nothing, neither its branch nor a later one is read. */
    if (value < 0)
        block->state = CFG_BLOCK_DONE;
    else
        block->state = value ? CFG_BLOCK_TAKEN : CFG_BLOCK_WAITING;
    return value < 0 ? value : 0;
}

static int open_block(struct cfg_blocks *b, const struct cfg_environment *env,
                      const char *condition, struct cfg_loc loc, struct cfg_condition_error *error)
{
    bool active = cfg_blocks_active(b);
    struct cfg_block *block;

    if (b->depth == CFG_BLOCK_DEPTH)
        return fail(error, "too many nested '.if', at most 128 are allowed");
    block = &b->stack[b->depth++];
    *block = (struct cfg_block){.state = CFG_BLOCK_DONE, .loc = loc};
    return active ? decide(block, env, condition, error) : 0;
}

int cfg_blocks_directive(struct cfg_blocks *b, const struct cfg_environment *env,
                         enum cfg_directive directive, const char *condition, struct cfg_loc loc,
                         struct cfg_condition_error *error)
{
    struct cfg_block *block;

    if (directive == CFG_DIRECTIVE_IF)
        return open_block(b, env, condition, loc, error);
    if (b->depth == 0)
        return fail(error, "there is no matching '.if'");
    block = &b->stack[b->depth - 1];
    if (directive != CFG_DIRECTIVE_ELIF && *condition)
        return fail(error, "no argument is expected");
    if (directive == CFG_DIRECTIVE_ENDIF) {
        b->depth--;
        return 0;
    }
    if (block->has_else)
        return fail(error, "it is not permitted after '.else'");
    block->has_else = directive == CFG_DIRECTIVE_ELSE;
    if (block->state != CFG_BLOCK_WAITING) {
        block->state = CFG_BLOCK_DONE;
        return 0;
    }
    if (directive == CFG_DIRECTIVE_ELIF)
        return decide(block, env, condition, error);
    block->state = CFG_BLOCK_TAKEN;
    return 0;
}
