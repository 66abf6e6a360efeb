/*
 * The TLS library's error queue, in words.
 */
#ifndef SP_TLS_ERRORS_H
#define SP_TLS_ERRORS_H

/* The reason of the newest queued error, or "unknown error"; static. */
const char *tls_last_error_text(void);
/* Reason of a code from the queue; static. */
const char *tls_error_reason(unsigned long code);
void tls_clear_errors(void);

#endif
