// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* Memory of requests: pages behind a scatterlist, in pieces of up to 64 KiB. */

#include "sweep_kmod.h"

#include <linux/mm.h>
#include <linux/scatterlist.h>

#define PIECE_ORDER_MAX 4

int spk_buffer_init(struct spk_buffer *buffer, size_t bytes)
{
    size_t left = max_t(size_t, bytes, 1);

    memset(buffer, 0, sizeof(*buffer));
    buffer->sg = kvcalloc(DIV_ROUND_UP(left, PAGE_SIZE), sizeof(*buffer->sg), GFP_KERNEL);
    if (!buffer->sg)
        return -ENOMEM;
    sg_init_table(buffer->sg, DIV_ROUND_UP(left, PAGE_SIZE));
    while (left) {
        unsigned order = min_t(unsigned, get_order(left), PIECE_ORDER_MAX);
        struct page *page = NULL;
        size_t piece;

        if (order)
            page = alloc_pages(GFP_KERNEL | __GFP_NOWARN | __GFP_NORETRY, order);
        if (!page) {
            order = 0;
            page = alloc_page(GFP_KERNEL);
        }
        if (!page) {
            spk_buffer_release(buffer);
            return -ENOMEM;
        }
        piece = min_t(size_t, left, PAGE_SIZE << order);
        sg_set_page(&buffer->sg[buffer->count++], page, piece, 0);
        left -= piece;
    }
    sg_mark_end(&buffer->sg[buffer->count - 1]);
    buffer->bytes = bytes;
    return 0;
}

void spk_buffer_release(struct spk_buffer *buffer)
{
    unsigned i;

    /*
     * A piece is as long as the pages it was allocated with, except the last, which rounds up to
     * them.
     */
    for (i = 0; i < buffer->count; i++)
        __free_pages(sg_page(&buffer->sg[i]), get_order(buffer->sg[i].length));
    kvfree(buffer->sg);
    memset(buffer, 0, sizeof(*buffer));
}
