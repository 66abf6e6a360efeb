#include "config/parser.h"

bool cfg_doc_row(unsigned index, struct cfg_doc *out)
{
    const struct cfg_kw *kw = cfg_kw_at(index);

    if (!kw)
        return false;
    *out = (struct cfg_doc){
        .name = kw->name,
        .args = kw->args ? kw->args : "",
        .help = kw->help   ? kw->help
                : kw->note ? kw->note
                           : "",
        .supported = kw->kind != CFG_KW_REFUSED,
        /* Lines with a parser of their own, rules and sections need no field to have an effect. */
        .has_effect =
            kw->kind != CFG_KW_REFUSED &&
            (kw->at != CFG_NOWHERE || kw->kind == CFG_KW_PARSE || kw->kind == CFG_KW_LINE),
    };
    out->sections = cfg_places(out->sections_text, sizeof(out->sections_text), kw->sections);
    return true;
}
