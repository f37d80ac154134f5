/* SPDX-License-Identifier: Apache-2.0 */
/* cay-warden, which has no memory for the configuration of its second gateway. */
#include <errno.h>
#include <unistd.h>

#include "loop/conn.h"
#include "sys/ns/jail.h"

enum { PROCESSES = 2 }; /* of a gateway */

static int started;

int __real_jail_start(const struct jail *j, pid_t *ret_pid, int *ret_pidfd);
int __wrap_jail_start(const struct jail *j, pid_t *ret_pid, int *ret_pidfd);
int __real_conn_end(struct conn *c, size_t at, const int *fds, int nfds);
int __wrap_conn_end(struct conn *c, size_t at, const int *fds, int nfds);

int __wrap_jail_start(const struct jail *j, pid_t *ret_pid, int *ret_pidfd)
{
	started++;
	return __real_jail_start(j, ret_pid, ret_pidfd);
}

int __wrap_conn_end(struct conn *c, size_t at, const int *fds, int nfds)
{
	if (started != 2 * PROCESSES)
		return __real_conn_end(c, at, fds, nfds);
	started++;
	for (int i = 0; i < nfds; i++)
		(void)close(fds[i]);
	conn_cancel(c, at);
	return -ENOMEM;
}
