/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What init is asked to run, from raw frames: limits hold, texts are texts, and every
 * descriptor is either in the request or closed, whatever the bytes say.
 */
#include <fcntl.h>
#include <string.h>

#include "base/limits.h"
#include "fuzz.h"
#include "init/request.h"

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static void check_list(char **list, int n, int most)
{
	FUZZ_CHECK(n >= 0 && n <= most && (list || n == 0));
	for (int i = 0; i < n; i++)
		FUZZ_CHECK(list[i] && strlen(list[i]) <= LIMIT_FRAME_BODY);
	FUZZ_CHECK(!list || !list[n]);
}

static int roles_of(const struct request *r, int fd)
{
	int n = 0;

	for (int i = 0; i < FD_ROLES; i++)
		n += r->fds[i] == fd;
	return n;
}

static void check_frame(const struct frame *f)
{
	int fds[LIMIT_FRAME_FDS], kept[LIMIT_FRAME_FDS];
	struct request r;
	int rc;

	for (int i = 0; i < f->nfds; i++)
		FUZZ_CHECK((fds[i] = kept[i] = fcntl(2, F_DUPFD_CLOEXEC, 3)) >= 0);
	rc = request_parse(&r, f, fds, false);
	FUZZ_CHECK(rc <= 0);
	check_list(r.argv, r.argc, LIMIT_ARGS);
	check_list(r.envp, r.envc, LIMIT_ENV);
	FUZZ_CHECK((r.mode & ~0777u) == 0);
	for (int i = 0; i < f->nfds; i++)
		FUZZ_CHECK(fds[i] == FD_NONE && roles_of(&r, kept[i]) == is_open(kept[i]));
	FUZZ_CHECK(rc < 0 || (r.fds[FD_STDIN] >= 0 && (r.op == CALL_EXEC || r.path)));
	request_done(&r);
	for (int i = 0; i < f->nfds; i++)
		FUZZ_CHECK(!is_open(kept[i]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str in = { (const char *)data, size };
	struct frame f = { 0 };
	int64_t n;

	while ((n = frame_parse(in, &f)) > 0) {
		check_frame(&f);
		in.p += n;
		in.n -= (size_t)n;
	}
	return 0;
}
