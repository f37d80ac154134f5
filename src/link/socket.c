/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "link/link.h"

static int refuse_connect(const char *id, int err, struct err *e)
{
	if (err == EAGAIN) {
		(void)err_set(e, ERR_UNAVAILABLE, "the warden of sandbox '%s' has many clients",
			      id);
		return err_code(e, "warden.busy", id);
	}
	(void)err_set(e, ERR_UNAVAILABLE, "no warden answers for sandbox '%s': %s", id,
		      strerror(err));
	return err_code(e, "sandbox.lost", id);
}

int link_socket(const struct state *s, const char *id, int *ret_fd, struct err *e)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	auto_close int dir = FD_NONE;
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return err_sys(e, errno, "make a socket");
	if (state_sandbox_open(s, id, &dir, e) < 0)
		return -1;
	/* By descriptor, because the path may be longer than a socket address. */
	(void)snprintf(addr.sun_path, sizeof addr.sun_path, "/proc/self/fd/%d/sock", dir);
	if (connect(fd, (struct sockaddr *)&addr, sizeof addr) < 0)
		return refuse_connect(id, errno, e);
	*ret_fd = TAKE_FD(fd);
	return 0;
}
