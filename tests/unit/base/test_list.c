#include "base/list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct node {
    int value;
    struct list link;
};

static int value_of(struct list *item)
{
    return LIST_ENTRY(item, struct node, link)->value;
}

static void keeps_order(void **state)
{
    struct list head;
    struct node nodes[4];
    int expected = 0;

    list_init(&head);
    assert_true(list_is_empty(&head));
    assert_null(list_pop_front(&head));
    for (int i = 0; i < 4; i++) {
        nodes[i].value = i;
        list_init(&nodes[i].link);
        assert_false(list_is_linked(&nodes[i].link));
    }
    list_push_back(&head, &nodes[1].link);
    list_push_back(&head, &nodes[3].link);
    list_push_front(&head, &nodes[0].link);
    list_insert_before(&nodes[3].link, &nodes[2].link);
    LIST_FOR_EACH(item, &head)
        assert_int_equal(value_of(item), expected++);
    assert_int_equal(expected, 4);
    assert_int_equal(value_of(list_pop_front(&head)), 0);
    assert_false(list_is_linked(&nodes[0].link));
    list_del(&nodes[0].link); /* harmless */
    list_del(&nodes[2].link);
    assert_int_equal(value_of(head.next), 1);
    assert_int_equal(value_of(head.next->next), 3);
}

static void elements_may_leave_while_walking(void **state)
{
    struct list head;
    struct node nodes[5];
    int seen = 0;

    list_init(&head);
    for (int i = 0; i < 5; i++) {
        nodes[i].value = i;
        list_push_back(&head, &nodes[i].link);
    }
    LIST_FOR_EACH_SAFE(item, following, &head) {
        assert_int_equal(value_of(item), seen++);
        list_del(item);
    }
    assert_int_equal(seen, 5);
    assert_true(list_is_empty(&head));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_order),
        cmocka_unit_test(elements_may_leave_while_walking),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
