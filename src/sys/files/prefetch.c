/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/files/prefetch.h"

#include <fcntl.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "sys/files/resolve.h"

static bool prefetch_path(int root_fd, const char *name)
{
	auto_close int fd = resolve_open(root_fd, name, O_PATH);

	return fd >= 0;
}

void prefetch(int root_fd, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		(void)prefetch_path(root_fd, names[i]);
}

void prefetch_usual(int root_fd)
{
	static const char *const names[] = {
		"lib64/ld-linux-x86-64.so.2",	  "etc/ld.so.preload", "etc/ld.so.cache",
		"lib/x86_64-linux-gnu/libc.so.6", "etc/passwd",	       "etc/group"
	};

	prefetch(root_fd, names, ARRAY_LEN(names));
}

void prefetch_program(int root_fd, struct str name)
{
	/* init's default PATH. */
	static const char *const places[] = { "/usr/local/sbin", "/usr/local/bin", "/usr/sbin",
					      "/usr/bin" };
	char path[LIMIT_PATH];
	bool found = false;

	if (name.n == 0 || name.n > LIMIT_PATH / 2)
		return;
	if (str_copy(path, sizeof path, name) && path[0] == '/')
		(void)prefetch_path(root_fd, path);
	else if (!memchr(name.p, '/', name.n))
		for (size_t i = 0; i < ARRAY_LEN(places) && !found; i++) {
			(void)snprintf(path, sizeof path, "%s/%.*s", places[i], (int)name.n,
				       name.p);
			found = prefetch_path(root_fd, path);
		}
}
