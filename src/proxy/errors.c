#include "proxy/errors.h"

#include "http/h1.h"
#include "proxy/session.h"

const unsigned proxy_error_statuses[PROXY_ERROR_STATUSES] = {
    200, 400, 401, 403, 404, 405, 407, 408, 410, 413, 421, 422, 425, 429, 500, 502, 503, 504,
};

static const struct error_text {
    unsigned status;
    const char *title; /* HAProxy's, where it differs from the standard reason */
    const char *text;
} error_texts[] = {
    {200, "OK", "Service ready."},
    {400, "Bad request", "Your browser sent an invalid request."},
    {401, "Unauthorized", "You need a valid user and password to access this content."},
    {403, "Forbidden", "Request forbidden by administrative rules."},
    {404, "Not Found", "The resource could not be found."},
    {405, "Method Not Allowed", "A request was made of a resource using a request method not supported by that resource"},
    {407, "Unauthorized", "You need a valid user and password to access this content."},
    {408, "Request Time-out", "Your browser didn't send a complete request in time."},
    {410, "Gone", "The resource is no longer available and will not be available again."},
    {413, "Payload Too Large", "The request entity exceeds the maximum allowed."},
    {421, "Misdirected Request", "Request sent to a non-authoritative server."},
    {422, "Unprocessable Content", "The server cannot process the contained instructions."},
    {425, "Too Early", "Your browser sent early data."},
    {429, "Too Many Requests", "You have sent too many requests in a given amount of time."},
    {500, "Internal Server Error", "An internal server error occurred."},
    {501, "Not Implemented", "The server does not support the functionality required to fulfill the request."},
    {502, "Bad Gateway", "The server returned an invalid or incomplete response."},
    {503, "Service Unavailable", "No server is available to handle this request."},
    {504, "Gateway Time-out", "The server didn't respond in time."},
};

int errors_slot(unsigned status)
{
    for (int i = 0; i < PROXY_ERROR_STATUSES; i++)
        if (proxy_error_statuses[i] == status)
            return i;
    return -1;
}

unsigned h1_error_status(enum h1_error error)
{
    return error == H1_UNKNOWN_CODING ? 422 : 400;
}

struct str errors_builtin(struct arena *arena, unsigned status)
{
    struct str reason = http_reason_of(status);
    const char *title = NULL, *text = "The request could not be served.";
    char *body, *page;
    bool close = status == 400 || status == 408;

    for (size_t i = 0; i < sizeof(error_texts) / sizeof(error_texts[0]); i++) {
        if (error_texts[i].status == status) {
            title = error_texts[i].title;
            text = error_texts[i].text;
        }
    }
    if (!title)
        title = reason.len ? arena_printf(arena, "%.*s", STR_FMT(reason)) : "Error";
    body = arena_printf(arena, "<html><body><h1>%u %s</h1>\n%s\n</body></html>\n", status, title ? title : "", text);
    if (!body)
        return STR_NULL;
    page = arena_printf(arena,
                        "HTTP/1.1 %u %s\r\nContent-Length: %zu\r\nCache-Control: no-cache\r\n%s%s"
                        "Content-Type: text/html\r\n\r\n%s",
                        status, title, strlen(body), close ? "Connection: close\r\n" : "",
                        status == 401 ? "WWW-Authenticate: Basic realm=\"\"\r\n" : "", body);
    return str_of(page);
}
