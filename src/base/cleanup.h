/* SPDX-License-Identifier: Apache-2.0 */
/* Scope-bound ownership: a variable marked auto_* is released when it leaves scope. */
#pragma once

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define FD_NONE (-1)

/* `unused`: an analyzer that does not see the cleanup would call TAKE_PTR a dead store. */
#define auto_free  __attribute__((cleanup(auto_free_fn), unused))
#define auto_close __attribute__((cleanup(auto_close_fn), unused))
/* For our own types: DEFINE_AUTO(struct buf, buf_done) gives auto_done(buf_done). */
#define auto_done(fn) __attribute__((cleanup(fn##_auto), unused))
#define DEFINE_AUTO(type, fn) \
	static inline void fn##_auto(type *p) \
	{ \
		fn(p); \
	}
#define DEFINE_AUTO_PTR(type, fn) \
	static inline void fn##_auto(type **p) \
	{ \
		if (*p) \
			fn(*p); \
	}

/* Hand a value on and leave the local empty, so that scope exit releases nothing. */
#define TAKE_PTR(p) \
	({ \
		__typeof__(p) take_ = (p); \
		(p) = NULL; \
		take_; \
	})
#define TAKE_FD(fd) \
	({ \
		int take_ = (fd); \
		(fd) = FD_NONE; \
		take_; \
	})

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define container_of(ptr, type, member) \
	((type *)(void *)((char *)(ptr) - __builtin_offsetof(type, member)))

static inline void auto_free_fn(void *p)
{
	free(*(void **)p);
}

/* Close and set to FD_NONE. Keeps errno: scope exit may run before the caller reads errno. */
static inline void fd_close(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		(void)close(*fd);
	*fd = FD_NONE;
	errno = saved;
}

static inline void auto_close_fn(int *fd)
{
	fd_close(fd);
}
