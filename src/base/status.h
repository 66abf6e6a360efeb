/*
 * Status codes shared by every layer.
 *
 * A function that can fail returns 0 or a negative SP_E… code; a function that
 * counts bytes returns the count or a negative code. Output arguments are left
 * untouched on failure unless the function's contract says otherwise.
 */
#ifndef SP_BASE_STATUS_H
#define SP_BASE_STATUS_H

#include <sallyport/status.h>

/* A static English text for a status code; never NULL. */
const char *sp_status_text(int status);

#endif
