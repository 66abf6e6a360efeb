/*
 * Intrusive doubly linked lists with a sentinel head.
 */
#ifndef SP_BASE_LIST_H
#define SP_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
    struct list *prev, *next;
};

#define LIST_ENTRY(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#define LIST_FOR_EACH(item, head) \
    for (struct list *item = (head)->next; item != (head); item = item->next)

#define LIST_FOR_EACH_SAFE(item, following, head)                                   \
    for (struct list *item = (head)->next, *following = item->next; item != (head); \
         item = following, following = item->next)

static inline void list_init(struct list *head)
{
    head->prev = head->next = head;
}

static inline bool list_is_empty(const struct list *head)
{
    return head->next == head;
}

/* True while the element is in a list; list_init or list_del make it false. */
static inline bool list_is_linked(const struct list *item)
{
    return item->next != item;
}

static inline void list_insert_before(struct list *position, struct list *item)
{
    item->prev = position->prev;
    item->next = position;
    position->prev->next = item;
    position->prev = item;
}

static inline void list_push_back(struct list *head, struct list *item)
{
    list_insert_before(head, item);
}

static inline void list_push_front(struct list *head, struct list *item)
{
    list_insert_before(head->next, item);
}

/* Unlinks and leaves the element pointing at itself; harmless when unlinked. */
static inline void list_del(struct list *item)
{
    item->prev->next = item->next;
    item->next->prev = item->prev;
    list_init(item);
}

/* The first element, unlinked; NULL when empty. */
static inline struct list *list_pop_front(struct list *head)
{
    struct list *item = head->next;

    if (item == head)
        return NULL;
    list_del(item);
    return item;
}

#endif
