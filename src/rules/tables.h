#ifndef SP_RULES_TABLES_H
#define SP_RULES_TABLES_H

#include "rules/expr.h"

extern const struct fetch_table fetch_misc_table, fetch_conn_table, fetch_tls_table,
    fetch_http_table, fetch_header_table, fetch_cookie_table, fetch_param_table,
    fetch_payload_table, fetch_log_table;
extern const struct conv_table conv_str_table, conv_field_table, conv_bin_table, conv_hash_table,
    conv_num_table, conv_time_table, conv_json_table, conv_misc_table, conv_map_table;

#define TABLE_OF(rows)                        \
    {                                         \
        (rows), sizeof(rows) / sizeof *(rows) \
    }

#endif
