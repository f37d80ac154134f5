/* SPDX-License-Identifier: Apache-2.0 */
#include "api/handover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/number.h"
#include "wire/frame.h"

static const char variable[] = "CAY_SERVE_HANDOVER";

enum { HANDOVER_MOST = 64 * 1024 };

/* A field with NUMBER behind it belongs to the field before. Unknown ones are skipped. */
enum handover_tag {
	LEFT_GENERATION = 1,
	LEFT_TICKET,
	LEFT_LISTENER,	  /* its name */
	LEFT_LISTENER_FD, /* of the listener before */
	LEFT_FRONT,	  /* its pid */
	LEFT_FRONT_FD,	  /* of the front before */
	LEFT_WORKER,	  /* of the front before: slot << 32 | pid */
};

/* ---- writing ---- */

static int put_front(struct buf *b, const struct handover_front *f)
{
	int r = field_put_u64(b, LEFT_FRONT, (uint64_t)f->pid);

	if (r == 0)
		r = field_put_u64(b, LEFT_FRONT_FD, (uint64_t)f->fd);
	for (uint64_t slot = 0; slot < JOB_WORKERS && r == 0; slot++)
		if (f->workers[slot])
			r = field_put_u64(b, LEFT_WORKER, slot << 32 | (uint32_t)f->workers[slot]);
	return r;
}

static int put_all(struct buf *b, const struct handover *h)
{
	int r = field_put_u64(b, LEFT_GENERATION, h->generation);

	if (r == 0)
		r = field_put(b, LEFT_TICKET,
			      (struct str){ (const char *)h->ticket, sizeof h->ticket });
	for (int i = 0; i < h->nlisteners && r == 0; i++) {
		r = field_put_c(b, LEFT_LISTENER, h->listeners[i].name);
		if (r == 0)
			r = field_put_u64(b, LEFT_LISTENER_FD, (uint64_t)h->listeners[i].fd);
	}
	for (int i = 0; i < h->nfronts && r == 0; i++)
		r = put_front(b, &h->fronts[i]);
	return r;
}

static void keep_open(const struct handover *h, bool keep)
{
	int flags = keep ? 0 : FD_CLOEXEC;

	for (int i = 0; i < h->nlisteners; i++)
		(void)fcntl(h->listeners[i].fd, F_SETFD, flags);
	for (int i = 0; i < h->nfronts; i++)
		(void)fcntl(h->fronts[i].fd, F_SETFD, flags);
}

int handover_exec(const struct handover *h, const char *program, char *const *argv, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(HANDOVER_MOST);
	auto_close int fd = memfd_create("handover", MFD_CLOEXEC);
	char number[16];
	int r = fd < 0 ? -errno : put_all(&b, h);

	if (r == 0)
		r = io_write_all(fd, b.data, b.len);
	if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
		r = -errno;
	(void)snprintf(number, sizeof number, "%d", fd);
	if (r == 0 && setenv(variable, number, 1) < 0)
		r = -errno;
	if (r < 0)
		return err_sys(e, -r, "write down what the next program gets");
	keep_open(h, true);
	(void)fcntl(fd, F_SETFD, 0);
	(void)execv(program, argv);
	r = errno;
	keep_open(h, false);
	(void)unsetenv(variable);
	return err_sys(e, r, "run '%s'", program);
}

/* ---- reading ---- */

static int take_fd(uint64_t number, int *ret)
{
	int fd = number <= INT32_MAX ? (int)number : FD_NONE;

	if (fd < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		return -EBADF;
	*ret = fd;
	return 0;
}

static int take_listener(struct handover *h, struct str name)
{
	if (h->nlisteners == CONTROL_LISTENERS ||
	    !str_copy(h->listeners[h->nlisteners].name, HANDOVER_NAME, name))
		return -E2BIG;
	h->listeners[h->nlisteners++].fd = FD_NONE;
	return 0;
}

static int take_front(struct handover *h, uint64_t pid)
{
	if (h->nfronts == HANDOVER_FRONTS || pid == 0 || pid > INT32_MAX)
		return -E2BIG;
	h->fronts[h->nfronts++] = (struct handover_front){ .pid = (pid_t)pid, .fd = FD_NONE };
	return 0;
}

static int take_field(struct handover *h, struct field f)
{
	struct handover_front *front = h->nfronts ? &h->fronts[h->nfronts - 1] : NULL;
	uint64_t n = 0;

	if (f.tag == LEFT_LISTENER)
		return take_listener(h, f.value);
	if (f.tag == LEFT_TICKET) {
		if (f.value.n == sizeof h->ticket)
			memcpy(h->ticket, f.value.p, sizeof h->ticket);
		return 0;
	}
	if (f.tag > LEFT_WORKER)
		return 0;
	if (field_u64(f, &n) < 0)
		return -EBADMSG;
	if (f.tag == LEFT_GENERATION)
		h->generation = n;
	else if (f.tag == LEFT_LISTENER_FD && h->nlisteners)
		return take_fd(n, &h->listeners[h->nlisteners - 1].fd);
	else if (f.tag == LEFT_FRONT)
		return take_front(h, n);
	else if (f.tag == LEFT_FRONT_FD && front)
		return take_fd(n, &front->fd);
	else if (f.tag == LEFT_WORKER && front && n >> 32 < JOB_WORKERS)
		front->workers[n >> 32] = (pid_t)(n & INT32_MAX);
	return 0;
}

int handover_read(struct handover *ret, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(HANDOVER_MOST);
	const char *text = getenv(variable);
	auto_close int fd = FD_NONE;
	struct field f;
	struct str body;
	int r;

	*ret = (struct handover){ 0 };
	if (!text)
		return 0;
	fd = atoi(text);
	(void)unsetenv(variable);
	r = io_read_all(fd, &b);
	body = buf_str(&b);
	while (r == 0 && (r = field_next(&body, &f)) == 1)
		r = take_field(ret, f);
	return r < 0 ? err_sys(e, -r, "read what the last program left") : 1;
}

int handover_listener(struct handover *h, const char *name)
{
	for (int i = 0; i < h->nlisteners; i++)
		if (strcmp(h->listeners[i].name, name) == 0)
			return TAKE_FD(h->listeners[i].fd);
	return FD_NONE;
}

void handover_close_listeners(struct handover *h)
{
	for (int i = 0; i < h->nlisteners; i++)
		fd_close(&h->listeners[i].fd);
}
