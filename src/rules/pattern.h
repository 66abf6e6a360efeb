/*
 * Pattern matching: what ACLs and maps compare samples with.
 *
 * A set holds the patterns of one criterion or one map, all with the same
 * method. Its index is immutable once built: exact strings in a hash table,
 * prefixes by length, networks by prefix length, everything else in order.
 */
#ifndef SP_RULES_PATTERN_H
#define SP_RULES_PATTERN_H

#include "rules/expr.h"

#include <stdatomic.h>

enum pat_match {
    PAT_FOUND,
    PAT_BOOL,
    PAT_INT,
    PAT_IP,
    PAT_BIN,
    PAT_LEN,
    PAT_STR,
    PAT_BEG,
    PAT_SUB,
    PAT_DIR,
    PAT_DOM,
    PAT_END,
    PAT_REG,
    PAT_DOTTED, /* integers written major.minor, as TLS versions are */
    PAT_MATCH_COUNT
};

extern const char *const
    pat_match_names[PAT_MATCH_COUNT]; /* those that "-m" knows come first; PAT_DOTTED is NULL */
int pat_match_find(struct str name);  /* SP_ENOENT */
/* The type a sample is cast to before matching. */
enum value_type pat_match_type(enum pat_match m);
bool pat_match_takes_patterns(enum pat_match m);

enum { PAT_IGNORE_CASE = 1, PAT_RESOLVE = 2 };

/* One pattern as written, with a map's value. */
struct pat_source {
    struct str key;
    struct str value; /* ptr NULL: none */
};

struct pat_entry {
    struct str text;      /* STR to END: the pattern; BIN: its bytes */
    struct str delimited; /* DIR and DOM: without delimiters at both ends */
    int64_t min, max;     /* INT, LEN, DOTTED */
    struct addr_net net;
    struct regex *regex;
    struct sample value; /* of a map, parsed to its output type */
    bool has_value;
};

struct pat_index {
    enum pat_match match;
    bool ignore_case;
    bool resolve;  /* host names are looked up */
    bool captures; /* regular expressions keep their groups (maps) */
    unsigned count;
    struct pat_entry *entries;
    uint32_t *slots; /* hash table: entry number + 1, 0 empty; NULL: search in order */
    uint32_t mask;
    uint32_t *lengths; /* PAT_BEG: distinct pattern lengths, longest first */
    unsigned length_count;
    uint8_t prefixes[2][129]; /* PAT_IP: distinct prefix lengths by family, longest first */
    unsigned prefix_count[2];
};

/*
 * Builds an index from sources. `map_type` VALUE_ANY: keys only; otherwise
 * values are parsed to that type. Everything is put into `arena` and
 * `registry` (regular expressions). A message names the pattern at fault in `why`.
 */
int pat_index_build(enum pat_match match, unsigned flags, enum value_type map_type,
                    const struct pat_source *sources, unsigned count, struct arena *arena,
                    struct rules_registry *registry, struct pat_index **out,
                    char why[RULES_WHY_BYTES]);

/* The entry that matches, NULL for none. `s` has the type of pat_match_type. */
const struct pat_entry *pat_index_find(const struct pat_index *index, const struct sample *s);

struct pat_set {
    struct pat_set *next; /* of the same file */
    enum pat_match match;
    unsigned flags;
    enum value_type map_type;
    bool from_file; /* may be edited at run time */
    _Atomic(struct pat_index *) index;
};

static inline bool pat_set_is_editable(const struct pat_set *set)
{
    return set->from_file;
}

static inline const struct pat_index *pat_set_index(const struct pat_set *set)
{
    return atomic_load_explicit(&((struct pat_set *)(uintptr_t)set)->index, memory_order_acquire);
}

/* A set of words. NULL with the error in diag. */
struct pat_set *pat_set_words(struct rules_compiler *c, enum pat_match match, unsigned flags,
                              int argc, char *const *argv);
/* The set of a file (shared with others that use it the same way). `as_map`: two columns. */
struct pat_set *pat_set_file(struct rules_compiler *c, enum pat_match match, unsigned flags,
                             enum value_type map_type, bool as_map, const char *name);

/* Closes what the registry's pattern lists own. */
void patterns_release(struct rules_registry *registry);

#endif
