/*
 * Conditional blocks: .if, .elif, .else, .endif (HAProxy's manual, section 2.4).
 * Blocks do not cross the end of a file.
 */
#ifndef SP_CONFIG_PREPROCESS_H
#define SP_CONFIG_PREPROCESS_H

#include "config/condition.h"

enum { CFG_BLOCK_DEPTH = 128 };

enum cfg_block_state {
    CFG_BLOCK_TAKEN,   /* this branch is read */
    CFG_BLOCK_WAITING, /* no branch was true so far */
    CFG_BLOCK_DONE,    /* a branch was read already, or the whole block lies in one that is not */
};

struct cfg_blocks {
    struct cfg_block {
        enum cfg_block_state state;
        bool has_else;
        struct cfg_loc loc; /* of the .if */
    } stack[CFG_BLOCK_DEPTH];
    int depth;
};

enum cfg_directive {
    CFG_DIRECTIVE_NONE,
    CFG_DIRECTIVE_IF,
    CFG_DIRECTIVE_ELIF,
    CFG_DIRECTIVE_ELSE,
    CFG_DIRECTIVE_ENDIF
};

void cfg_blocks_init(struct cfg_blocks *b);

/* Which directive a line's first word is. */
enum cfg_directive cfg_directive_of(const char *word);

/* True when lines are read at present. */
bool cfg_blocks_active(const struct cfg_blocks *b);

/*
 * Handles one directive. `condition` is the rest of the line. 0, or SP_EINVAL with the reason in *error;
 * the block structure is kept going either way, with a branch that cannot be understood left out.
 */
int cfg_blocks_directive(struct cfg_blocks *b, const struct cfg_environment *env,
                         enum cfg_directive directive, const char *condition, struct cfg_loc loc,
                         struct cfg_condition_error *error);

#endif
