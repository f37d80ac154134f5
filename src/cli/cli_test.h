/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: runs the command line in this process and captures its output. */
#pragma once

#include <fcntl.h>
#include <stdarg.h>
#include <sys/mman.h>

#include "cli/cmd.h"
#include "t.h"

struct ran {
	int code;
	char out[32768], err[8192];
};

static inline int ran_divert(int fd, int *ret_saved)
{
	int to = memfd_create("ran", MFD_CLOEXEC);

	*ret_saved = fcntl(fd, F_DUPFD_CLOEXEC, 10);
	CHECK(to >= 0 && *ret_saved >= 0 && dup2(to, fd) == fd);
	return to;
}

static inline void ran_collect(int from, int fd, int saved, char *text, size_t size)
{
	ssize_t n = pread(from, text, size - 1, 0);

	CHECK(dup2(saved, fd) == fd);
	CHECK(n >= 0);
	text[n] = '\0';
	close(saved);
	close(from);
}

/* Arguments after "cay", ended by NULL. */
static inline __attribute__((unused, sentinel)) struct ran *cay(const char *arg, ...)
{
	static struct ran r;
	char *argv[32] = { (char *)"cay" };
	int argc = 1, out, err, saved_out, saved_err;
	va_list ap;

	va_start(ap, arg);
	for (; arg && argc < 31; arg = va_arg(ap, const char *))
		argv[argc++] = (char *)arg;
	va_end(ap);
	fflush(stdout);
	out = ran_divert(STDOUT_FILENO, &saved_out);
	err = ran_divert(STDERR_FILENO, &saved_err);
	r.code = cli_main(argc, argv);
	fflush(stdout);
	fflush(stderr);
	ran_collect(err, STDERR_FILENO, saved_err, r.err, sizeof r.err);
	ran_collect(out, STDOUT_FILENO, saved_out, r.out, sizeof r.out);
	return &r;
}

#define CHECK_HAS(text, part) \
	(strstr((text), (part)) ? (void)0 : t_fail_str(__FILE__, __LINE__, (text), (part)))
#define CHECK_LACKS(text, part) \
	(strstr((text), (part)) ? t_fail_str(__FILE__, __LINE__, (text), "no " part) : (void)0)
