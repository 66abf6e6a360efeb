#include "http/http_names.h"

#include "http/http_chars.h"

#define NAME(text)             \
    {                          \
        text, sizeof(text) - 1 \
    }

const struct http_field_name http_field_names[HTTP_FIELD_ID_COUNT] = {
    [HTTP_FIELD_HOST] = NAME("host"),
    [HTTP_FIELD_CONNECTION] = NAME("connection"),
    [HTTP_FIELD_CONTENT_LENGTH] = NAME("content-length"),
    [HTTP_FIELD_TRANSFER_ENCODING] = NAME("transfer-encoding"),
    [HTTP_FIELD_UPGRADE] = NAME("upgrade"),
    [HTTP_FIELD_EXPECT] = NAME("expect"),
    [HTTP_FIELD_TE] = NAME("te"),
    [HTTP_FIELD_TRAILER] = NAME("trailer"),
    [HTTP_FIELD_KEEP_ALIVE] = NAME("keep-alive"),
    [HTTP_FIELD_PROXY_CONNECTION] = NAME("proxy-connection"),
    [HTTP_FIELD_COOKIE] = NAME("cookie"),
    [HTTP_FIELD_SET_COOKIE] = NAME("set-cookie"),
    [HTTP_FIELD_CONTENT_TYPE] = NAME("content-type"),
    [HTTP_FIELD_CONTENT_ENCODING] = NAME("content-encoding"),
    [HTTP_FIELD_ACCEPT_ENCODING] = NAME("accept-encoding"),
    [HTTP_FIELD_CACHE_CONTROL] = NAME("cache-control"),
    [HTTP_FIELD_PRAGMA] = NAME("pragma"),
    [HTTP_FIELD_EXPIRES] = NAME("expires"),
    [HTTP_FIELD_VARY] = NAME("vary"),
    [HTTP_FIELD_ETAG] = NAME("etag"),
    [HTTP_FIELD_DATE] = NAME("date"),
    [HTTP_FIELD_LOCATION] = NAME("location"),
    [HTTP_FIELD_AUTHORIZATION] = NAME("authorization"),
    [HTTP_FIELD_WWW_AUTHENTICATE] = NAME("www-authenticate"),
    [HTTP_FIELD_X_FORWARDED_FOR] = NAME("x-forwarded-for"),
    [HTTP_FIELD_RANGE] = NAME("range"),
    [HTTP_FIELD_IF_RANGE] = NAME("if-range"),
    [HTTP_FIELD_IF_MODIFIED_SINCE] = NAME("if-modified-since"),
    [HTTP_FIELD_IF_NONE_MATCH] = NAME("if-none-match"),
    [HTTP_FIELD_USER_AGENT] = NAME("user-agent"),
    [HTTP_FIELD_REFERER] = NAME("referer"),
    [HTTP_FIELD_SERVER] = NAME("server"),
    [HTTP_FIELD_SEC_WEBSOCKET_KEY] = NAME("sec-websocket-key"),
    [HTTP_FIELD_SEC_WEBSOCKET_ACCEPT] = NAME("sec-websocket-accept"),
};

/* (length + 10 * first + 53 * last) mod 128 has no collision among the names above. */
const uint8_t http_field_slots[128] = {
    [2] = HTTP_FIELD_UPGRADE,
    [6] = HTTP_FIELD_LOCATION,
    [11] = HTTP_FIELD_IF_RANGE,
    [20] = HTTP_FIELD_IF_MODIFIED_SINCE,
    [21] = HTTP_FIELD_REFERER,
    [22] = HTTP_FIELD_SEC_WEBSOCKET_ACCEPT,
    [24] = HTTP_FIELD_HOST,
    [28] = HTTP_FIELD_SEC_WEBSOCKET_KEY,
    [29] = HTTP_FIELD_AUTHORIZATION,
    [30] = HTTP_FIELD_SERVER,
    [31] = HTTP_FIELD_WWW_AUTHENTICATE,
    [32] = HTTP_FIELD_USER_AGENT,
    [33] = HTTP_FIELD_KEEP_ALIVE,
    [41] = HTTP_FIELD_TRAILER,
    [44] = HTTP_FIELD_ACCEPT_ENCODING,
    [45] = HTTP_FIELD_VARY,
    [46] = HTTP_FIELD_CONNECTION,
    [47] = HTTP_FIELD_IF_NONE_MATCH,
    [54] = HTTP_FIELD_PROXY_CONNECTION,
    [65] = HTTP_FIELD_CONTENT_ENCODING,
    [71] = HTTP_FIELD_CACHE_CONTROL,
    [72] = HTTP_FIELD_EXPIRES,
    [73] = HTTP_FIELD_ETAG,
    [77] = HTTP_FIELD_COOKIE,
    [83] = HTTP_FIELD_CONTENT_TYPE,
    [85] = HTTP_FIELD_DATE,
    [89] = HTTP_FIELD_X_FORWARDED_FOR,
    [98] = HTTP_FIELD_RANGE,
    [108] = HTTP_FIELD_TRANSFER_ENCODING,
    [113] = HTTP_FIELD_SET_COOKIE,
    [115] = HTTP_FIELD_TE,
    [116] = HTTP_FIELD_CONTENT_LENGTH,
    [123] = HTTP_FIELD_PRAGMA,
    [124] = HTTP_FIELD_EXPECT,
};

enum http_field_id http_field_id_of(struct str name)
{
    unsigned id = http_field_lookup(name.ptr, name.len);

    if (id != HTTP_FIELD_OTHER && memchr(name.ptr, '\r', name.len))
        return HTTP_FIELD_OTHER;
    return (enum http_field_id)id;
}

static enum http_method method_if(struct str text, const char *name, enum http_method method)
{
    return memcmp(text.ptr, name, text.len) == 0 ? method : HTTP_METHOD_OTHER;
}

enum http_method http_method_of(struct str text)
{
    switch (text.len) {
    case 3:
        return text.ptr[0] == 'G' ? method_if(text, "GET", HTTP_GET)
                                  : method_if(text, "PUT", HTTP_PUT);
    case 4:
        return text.ptr[0] == 'P' ? method_if(text, "POST", HTTP_POST)
                                  : method_if(text, "HEAD", HTTP_HEAD);
    case 5:
        return text.ptr[0] == 'P' ? method_if(text, "PATCH", HTTP_PATCH)
                                  : method_if(text, "TRACE", HTTP_TRACE);
    case 6:
        return method_if(text, "DELETE", HTTP_DELETE);
    case 7:
        return text.ptr[0] == 'O' ? method_if(text, "OPTIONS", HTTP_OPTIONS)
                                  : method_if(text, "CONNECT", HTTP_CONNECT);
    default:
        return HTTP_METHOD_OTHER;
    }
}

#undef NAME
#define REASON(text)           \
    {                          \
        text, sizeof(text) - 1 \
    }

/* The IANA registry of status codes, RFC 9110 section 16.2. */
static const struct str reasons[512] = {
    [100] = REASON("Continue"),
    [101] = REASON("Switching Protocols"),
    [102] = REASON("Processing"),
    [103] = REASON("Early Hints"),
    [200] = REASON("OK"),
    [201] = REASON("Created"),
    [202] = REASON("Accepted"),
    [203] = REASON("Non-Authoritative Information"),
    [204] = REASON("No Content"),
    [205] = REASON("Reset Content"),
    [206] = REASON("Partial Content"),
    [207] = REASON("Multi-Status"),
    [208] = REASON("Already Reported"),
    [226] = REASON("IM Used"),
    [300] = REASON("Multiple Choices"),
    [301] = REASON("Moved Permanently"),
    [302] = REASON("Found"),
    [303] = REASON("See Other"),
    [304] = REASON("Not Modified"),
    [305] = REASON("Use Proxy"),
    [307] = REASON("Temporary Redirect"),
    [308] = REASON("Permanent Redirect"),
    [400] = REASON("Bad Request"),
    [401] = REASON("Unauthorized"),
    [402] = REASON("Payment Required"),
    [403] = REASON("Forbidden"),
    [404] = REASON("Not Found"),
    [405] = REASON("Method Not Allowed"),
    [406] = REASON("Not Acceptable"),
    [407] = REASON("Proxy Authentication Required"),
    [408] = REASON("Request Timeout"),
    [409] = REASON("Conflict"),
    [410] = REASON("Gone"),
    [411] = REASON("Length Required"),
    [412] = REASON("Precondition Failed"),
    [413] = REASON("Content Too Large"),
    [414] = REASON("URI Too Long"),
    [415] = REASON("Unsupported Media Type"),
    [416] = REASON("Range Not Satisfiable"),
    [417] = REASON("Expectation Failed"),
    [421] = REASON("Misdirected Request"),
    [422] = REASON("Unprocessable Content"),
    [423] = REASON("Locked"),
    [424] = REASON("Failed Dependency"),
    [425] = REASON("Too Early"),
    [426] = REASON("Upgrade Required"),
    [428] = REASON("Precondition Required"),
    [429] = REASON("Too Many Requests"),
    [431] = REASON("Request Header Fields Too Large"),
    [451] = REASON("Unavailable For Legal Reasons"),
    [500] = REASON("Internal Server Error"),
    [501] = REASON("Not Implemented"),
    [502] = REASON("Bad Gateway"),
    [503] = REASON("Service Unavailable"),
    [504] = REASON("Gateway Timeout"),
    [505] = REASON("HTTP Version Not Supported"),
    [506] = REASON("Variant Also Negotiates"),
    [507] = REASON("Insufficient Storage"),
    [508] = REASON("Loop Detected"),
    [510] = REASON("Not Extended"),
    [511] = REASON("Network Authentication Required"),
};

struct str http_reason_of(unsigned status)
{
    return status < 512 && reasons[status].ptr ? reasons[status] : STR("");
}

bool http_is_token(struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!http_char_is(s.ptr[i], HTTP_CHAR_TOKEN))
            return false;
    return s.len > 0;
}

/* The text between the brackets: an IPv6 address, as far as characters and colons tell. */
static bool is_ip_literal(struct str s)
{
    unsigned colons = 0;

    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] == ':')
            colons++;
        else if (s.ptr[i] != '.' && !http_char_is(s.ptr[i], HTTP_CHAR_HEX))
            return false;
    }
    return colons >= 2 && colons <= 8 && s.len <= 45;
}

static bool is_reg_name(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (http_char_is(s.ptr[i], HTTP_CHAR_HOST))
            continue;
        if (s.ptr[i] != '%' || s.len - i < 3 || !http_char_is(s.ptr[i + 1], HTTP_CHAR_HEX) ||
            !http_char_is(s.ptr[i + 2], HTTP_CHAR_HEX))
            return false;
        i += 2;
    }
    return true;
}

static bool is_port(struct str s)
{
    unsigned value = 0;

    for (size_t i = 0; i < s.len; i++) {
        if (!http_char_is(s.ptr[i], HTTP_CHAR_DIGIT))
            return false;
        value = value * 10 + (unsigned)(s.ptr[i] - '0');
        if (value > 65535)
            return false;
    }
    return true;
}

bool http_is_authority(struct str s)
{
    size_t host_len;

    if (s.len && s.ptr[0] == '[') {
        host_len = str_chr(s, ']');
        if (host_len == s.len || !is_ip_literal(str_make(s.ptr + 1, host_len - 1)))
            return false;
        host_len++;
    } else {
        host_len = str_chr(s, ':');
        if (!is_reg_name(str_make(s.ptr, host_len)))
            return false;
    }
    if (host_len == s.len)
        return true;
    return s.ptr[host_len] == ':' && is_port(str_from(s, host_len + 1));
}
