/*
 * What the files of this folder share and others do not see.
 */
#ifndef SP_HTTP_HTTP_INTERNAL_H
#define SP_HTTP_HTTP_INTERNAL_H

#include "http/http.h"

/* Room for one more field; SP_ENOMEM. The array may move. */
int http_msg_grow(struct http_msg *m);

static inline int http_msg_reserve(struct http_msg *m)
{
    return m->field_count < m->field_capacity ? 0 : http_msg_grow(m);
}

/*
 * Takes the next element of a comma-separated list that allows neither quotes nor empty elements.
 * False at the end; an empty element is returned as such. *rest starts as the value.
 */
bool http_list_element(struct str *rest, struct str *element);

#endif
