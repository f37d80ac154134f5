/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that do not compile here. The build includes this file before every source, so
 * the headers that declare them come first; whoever names them afterwards gets an error.
 * What a preprocessor cannot tell (open() without O_CLOEXEC) is found by tests/check.
 */
#pragma once

#include <alloca.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef CAY_UNIT_TEST /* tests handle no hostile bytes */

#undef alloca

/* No bound: use buf_add(), buf_printf(), snprintf(), str_copy(). */
/* With fortify some of these are macros, which clang will not poison. */
#undef sprintf
#undef vsprintf
#undef strcpy
#undef strcat
#undef strncpy
#undef stpcpy
#pragma GCC poison strcpy stpcpy strcat sprintf vsprintf gets alloca
/* Hidden state. */
#pragma GCC poison strtok
/* A shell between us and the program. */
#pragma GCC poison system popen
/* A name that somebody else can take first. */
#pragma GCC poison mktemp tmpnam tempnam

#endif
