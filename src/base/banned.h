/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that must not be used: naming one is a compile error. The build includes this file
 * before every source file. It includes the headers that declare these functions first, because a
 * poisoned name may not be declared either. tests/check finds the misuse that a preprocessor cannot
 * see, such as open() without O_CLOEXEC.
 */
#pragma once

#include <alloca.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef CAY_UNIT_TEST /* tests handle no hostile bytes */

#undef alloca

/* These functions have no bound. Use buf_add(), buf_printf(), snprintf() or str_copy(). */
/* With fortify some of them are macros, and clang refuses to poison a macro. */
#undef sprintf
#undef vsprintf
#undef strcpy
#undef strcat
#undef strncpy
#undef stpcpy
#pragma GCC poison strcpy stpcpy strcat sprintf vsprintf gets alloca
/* strtok() keeps hidden state. */
#pragma GCC poison strtok
/* These functions run a shell. */
#pragma GCC poison system popen
/* Another process can create the file first. */
#pragma GCC poison mktemp tmpnam tempnam

#endif
