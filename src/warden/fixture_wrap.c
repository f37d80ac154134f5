/* SPDX-License-Identifier: Apache-2.0 */
/* Replacements that the linker inserts for the clock, the loop's sleep and the gateway's jail. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/ns/jail.h"
#include "sys/process/raw.h"
#include "t.h"
#include "warden/fixture.h"
#include "wire/gateway_proto.h"

uint64_t __real_clock_mono_ns(void);
uint64_t __wrap_clock_mono_ns(void);
int __real_epoll_wait(int epfd, struct epoll_event *evs, int most, int timeout_ms);
int __wrap_epoll_wait(int epfd, struct epoll_event *evs, int most, int timeout_ms);
int __wrap_jail_start(const struct jail *j, pid_t *ret_pid, int *ret_pidfd);

struct fx_gateway fx_gateway;

enum { CHILD_MS = 2000 };

uint64_t __wrap_clock_mono_ns(void)
{
	return __real_clock_mono_ns() + fx.skew_ns;
}

/* True if a child of the warden will end by itself and wake the loop. */
static bool awaits_child(void)
{
	for (size_t i = 0; i < ARRAY_LEN(fx.w->sweepers); i++)
		if (fx.w->sweepers[i].pid)
			return true;
	if (fx.w->walks.job && !fx.w->walks.emitting)
		return true;
	return fx.w->gen_switch && fx.w->gen_switch->copy_pid;
}

int __wrap_epoll_wait(int epfd, struct epoll_event *evs, int most, int timeout_ms)
{
	int n = __real_epoll_wait(epfd, evs, most, 0);

	fx.turned = true;
	fx.stuck = false;
	if (n != 0 || timeout_ms == 0)
		return n;
	if (awaits_child())
		n = __real_epoll_wait(epfd, evs, most, CHILD_MS);
	if (n != 0)
		return n;
	fx.stuck = fx.frozen || timeout_ms < 0;
	if (!fx.stuck)
		fx.skew_ns += (uint64_t)timeout_ms * NS_PER_MS;
	return 0;
}

static void on_frame(struct conn *c, const struct frame *f, int *fds)
{
	struct fx_gateway *g = &fx_gateway;

	if (g->ngot < (int)sizeof g->got)
		g->got[g->ngot++] = f->type;
	for (int i = 0; i < f->nfds; i++)
		fd_close(&fds[i]);
	if (g->mute)
		return;
	if (f->type == GW_POLICY)
		(void)conn_send(c, GW_POLICY_SET, 0, STR_NONE);
	else if (f->type == GW_LIST)
		(void)conn_send(c, GW_END, 0, STR_NONE);
}

static void on_dialer_frame(struct conn *c, const struct frame *f, int *fds)
{
	for (int i = 0; i < f->nfds; i++)
		fd_close(&fds[i]);
	if (f->type == GW_POLICY)
		(void)conn_send(c, GW_POLICY_SET, 0, STR_NONE);
}

static void on_closed(struct conn *c, int err)
{
	(void)err;
	conn_done(c);
}

int __wrap_jail_start(const struct jail *j, pid_t *ret_pid, int *ret_pidfd)
{
	static const struct conn_ops ops = { .frame = on_frame, .closed = on_closed };
	static const struct conn_ops dialer = { .frame = on_dialer_frame, .closed = on_closed };
	bool dials = strcmp(j->role, "dialer") == 0;
	struct conn *c = dials ? &fx_gateway.dialer : &fx_gateway.conn;
	int err = fx_gateway.fail, fd;
	siginfo_t si;
	pid_t pid;

	if (err)
		return -err;
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) /* it stands for the gateway until the warden reaps it */
		_exit(0);
	while (waitid(P_PID, (id_t)pid, &si, WEXITED | WNOWAIT) <
	       0) /* so that it holds nothing open */
		CHECK(errno == EINTR);
	conn_done(c);
	fd = fcntl(j->stream_fd, F_DUPFD_CLOEXEC, 3);
	CHECK(fd >= 0 && conn_init(c, &fx.w->loop, fd, dials ? &dialer : &ops) == 0);
	fx_gateway.started += !dials;
	*ret_pid = *(dials ? &fx_gateway.dialer_pid : &fx_gateway.pid) = pid;
	*ret_pidfd = raw_pidfd_open(pid);
	return 0;
}
