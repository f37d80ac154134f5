/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/host/serve_notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "base/str.h"

void serve_notify(const char *text)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	auto_close int fd = FD_NONE;
	socklen_t n;

	if (!path || !str_copy(a.sun_path, sizeof a.sun_path, str_of(path)))
		return;
	n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
	if (a.sun_path[0] == '@') /* an abstract name */
		a.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd >= 0)
		(void)sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&a, n);
}
