/*
 * One line of the configuration to words.
 *
 * The syntax is HAProxy's (manual section 2.2): words are separated by blanks;
 * '…' keeps everything; "…" keeps blanks, ' and #, and expands $NAME, ${NAME},
 * ${NAME-default} and, into several words, ${NAME[*]}; a backslash protects the
 * next character or stands for \n, \r, \t and \xNN, and stays where it protects
 * nothing; an unprotected # begins a comment. The pseudo-variables .FILE, .LINE
 * and .SECTION may be used like variables. A line ends at its end: a backslash
 * before it joins nothing.
 */
#ifndef SP_CONFIG_LEXER_H
#define SP_CONFIG_LEXER_H

#include "base/arena.h"

enum {
    CFG_LINE_BYTES = 65536,      /* longest line of a file */
    CFG_EXPANDED_BYTES = 262144, /* longest line after variables were expanded */
};

struct cfg_lexer {
    /* What the pseudo-variables stand for. */
    const char *file;
    int line;
    const char *section;

    /* The words of the last line: NUL-terminated, one after the other. */
    char *text;
    size_t text_len, text_room;
    size_t *starts;
    int word_count, word_room;

    const char *error; /* static; what is wrong when splitting failed */
    size_t position;   /* where, from 1 */
    int empty_word;    /* first empty word, from 0; -1 when there is none */
    bool trailing_backslash;
};

void cfg_lexer_init(struct cfg_lexer *lx);
void cfg_lexer_release(struct cfg_lexer *lx);

/*
 * Splits `line` (without its line feed). SP_EINVAL with error and position set, SP_ENOMEM.
 * `comments` false: # is an ordinary character, as in a "-cc" expression.
 */
int cfg_lexer_split(struct cfg_lexer *lx, struct str line, bool comments);

/* The words in `arena`, with a NULL after the last. NULL without memory. */
char **cfg_lexer_words(const struct cfg_lexer *lx, struct arena *arena);

/* All words from `first` on, joined by single spaces, in `arena`. NULL without memory. */
char *cfg_lexer_join(const struct cfg_lexer *lx, struct arena *arena, int first);

#endif
