/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debian compiles its static libraries, such as SQLite, against glibc headers. musl has the same
 * ABI except for the names below, which glibc headers refer to.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>

#undef fcntl64

void *__memcpy_chk(void *dst, const void *src, size_t n, size_t room);
void *__memset_chk(void *dst, int c, size_t n, size_t room);
char *__strncpy_chk(char *dst, const char *src, size_t n, size_t room);
int __snprintf_chk(char *dst, size_t n, int flag, size_t room, const char *format, ...);
int __vsnprintf_chk(char *dst, size_t n, int flag, size_t room, const char *format, va_list ap);
int __sprintf_chk(char *dst, int flag, size_t room, const char *format, ...);
#ifndef __GLIBC__
int fcntl64(int fd, int cmd, ...);
#endif
long __fdelt_chk(long fd);
int __fprintf_chk(FILE *f, int flag, const char *format, ...);
int __vfprintf_chk(FILE *f, int flag, const char *format, va_list ap);
#ifndef __GLIBC__
int getcontext(void *context);
int setcontext(const void *context);
void makecontext(void *context, void (*fn)(void), int argc, ...);
#endif

static void fits(size_t n, size_t room)
{
	if (n > room)
		abort();
}

void *__memcpy_chk(void *dst, const void *src, size_t n, size_t room)
{
	fits(n, room);
	return memcpy(dst, src, n);
}

void *__memset_chk(void *dst, int c, size_t n, size_t room)
{
	fits(n, room);
	return memset(dst, c, n);
}

char *__strncpy_chk(char *dst, const char *src, size_t n, size_t room)
{
	fits(n, room);
	return strncpy(dst, src, n);
}

int __vsnprintf_chk(char *dst, size_t n, int flag, size_t room, const char *format, va_list ap)
{
	(void)flag;
	fits(n, room);
	return vsnprintf(dst, n, format, ap);
}

int __snprintf_chk(char *dst, size_t n, int flag, size_t room, const char *format, ...)
{
	va_list ap;
	int r;

	va_start(ap, format);
	r = __vsnprintf_chk(dst, n, flag, room, format, ap);
	va_end(ap);
	return r;
}

int __sprintf_chk(char *dst, int flag, size_t room, const char *format, ...)
{
	va_list ap;
	int r;

	(void)flag;
	va_start(ap, format);
	r = vsnprintf(dst, room, format, ap);
	va_end(ap);
	fits((size_t)(r < 0 ? 0 : r) + 1, room);
	return r;
}

/* The argument may be a number, a pointer or missing. Each is passed in one register. */
int fcntl64(int fd, int cmd, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, cmd);
	arg = va_arg(ap, void *);
	va_end(ap);
	return fcntl(fd, cmd, arg);
}

/* The index of a descriptor's word in an fd_set. */
long __fdelt_chk(long fd)
{
	fits((size_t)fd, FD_SETSIZE - 1);
	return fd / (long)(8 * sizeof(long));
}

int __vfprintf_chk(FILE *f, int flag, const char *format, va_list ap)
{
	(void)flag;
	return vfprintf(f, format, ap);
}

int __fprintf_chk(FILE *f, int flag, const char *format, ...)
{
	va_list ap;
	int r;

	va_start(ap, format);
	r = __vfprintf_chk(f, flag, format, ap);
	va_end(ap);
	return r;
}

#ifndef __GLIBC__
/* OpenSSL refers to these for asynchronous jobs, which we never start. */
int getcontext(void *context)
{
	(void)context;
	return -1;
}

int setcontext(const void *context)
{
	(void)context;
	return -1;
}

void makecontext(void *context, void (*fn)(void), int argc, ...)
{
	(void)context;
	(void)fn;
	(void)argc;
}
#endif
