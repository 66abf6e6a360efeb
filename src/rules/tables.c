/*
 * The tables of fetches and converters, in the order of the documentation.
 */
#include "rules/tables.h"

const struct fetch_table *const fetch_tables[] = {
    &fetch_misc_table,  &fetch_conn_table,    &fetch_tls_table,
    &fetch_http_table,  &fetch_header_table,  &fetch_cookie_table,
    &fetch_param_table, &fetch_payload_table, &fetch_log_table,
};
const size_t fetch_table_count = sizeof fetch_tables / sizeof *fetch_tables;

const struct conv_table *const conv_tables[] = {
    &conv_str_table,  &conv_field_table, &conv_bin_table,  &conv_hash_table, &conv_num_table,
    &conv_time_table, &conv_json_table,  &conv_misc_table, &conv_map_table,
};
const size_t conv_table_count = sizeof conv_tables / sizeof *conv_tables;
