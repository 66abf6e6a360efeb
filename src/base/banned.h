/*
 * Functions that cannot be used safely are compile errors.
 *
 * The build includes this file before every translation unit (-include). The
 * headers that declare the functions come first: a poisoned name is an error
 * wherever it appears afterwards, in system headers too. Because those headers
 * are read before a file's own first line, feature macros such as _GNU_SOURCE
 * belong on the command line and not in a file.
 *
 *   instead of             use
 *   strcpy, stpcpy, strcat memcpy with a known length, str and buf
 *   sprintf, vsprintf      snprintf, vsnprintf, buf_printf
 *   gets                   fgets, getline
 *   strtok                 str_chr and str_from
 *   atoi, atol, atoll      str_to_i64, str_to_u64
 *   alloca                 a fixed array, the arena or the heap
 *   tmpnam, mktemp         mkstemp
 */
#ifndef SP_BASE_BANNED_H
#define SP_BASE_BANNED_H

#ifndef __ASSEMBLER__

#include <alloca.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Macros in some configurations of glibc; poisoning an existing macro is a warning. */
#undef alloca
#undef sprintf
#undef vsprintf

#pragma GCC poison strcpy stpcpy strcat sprintf vsprintf gets strtok
#pragma GCC poison atoi atol atoll alloca tmpnam mktemp

#endif

#endif
