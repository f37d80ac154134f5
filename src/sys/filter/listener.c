/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/filter/listener.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sys/process/patience.h"

/* musl declares the request as int, glibc as unsigned long; the kernel takes 32 bits. */
#define IOCTL_RECV  ((int)SECCOMP_IOCTL_NOTIF_RECV)
#define IOCTL_SEND  ((int)SECCOMP_IOCTL_NOTIF_SEND)
#define IOCTL_VALID ((int)SECCOMP_IOCTL_NOTIF_ID_VALID)
/* Linux 6.6; newer than the headers that we build with. */
#define IOCTL_SET_FLAGS	  ((int)_IOW('!', 4, uint64_t))
#define FLAG_SYNC_WAKE_UP 1ull

static size_t at_least(size_t a, size_t b)
{
	return a > b ? a : b;
}

int listener_bufs_init(struct listener_bufs *b)
{
	if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &b->sizes) < 0)
		return -errno;
	b->notif = calloc(1, at_least(b->sizes.seccomp_notif, sizeof *b->notif));
	b->resp = calloc(1, at_least(b->sizes.seccomp_notif_resp, sizeof *b->resp));
	return b->notif && b->resp ? 0 : -ENOMEM;
}

void listener_bufs_done(struct listener_bufs *b)
{
	free(b->notif);
	free(b->resp);
	*b = (struct listener_bufs){ .notif = NULL };
}

void listener_sync_wake_up(int fd)
{
	(void)ioctl(fd, IOCTL_SET_FLAGS, FLAG_SYNC_WAKE_UP);
}

int listener_receive(int fd, struct listener_bufs *b)
{
	int r = patience_begin(LISTENER_RECEIVE_MS, NULL);

	if (r < 0)
		return r;
	memset(b->notif, 0, b->sizes.seccomp_notif);
	r = ioctl(fd, IOCTL_RECV, b->notif) < 0 ? -errno : 0;
	patience_end();
	return r;
}

bool listener_is_valid(int fd, uint64_t id)
{
	return ioctl(fd, IOCTL_VALID, &id) == 0;
}

static int answer(int fd, struct listener_bufs *b, uint64_t id, uint32_t flags, int err)
{
	memset(b->resp, 0, b->sizes.seccomp_notif_resp);
	b->resp->id = id;
	b->resp->flags = flags;
	b->resp->error = -err;
	return ioctl(fd, IOCTL_SEND, b->resp) < 0 ? -errno : 0;
}

int listener_continue(int fd, struct listener_bufs *b, uint64_t id)
{
	return answer(fd, b, id, SECCOMP_USER_NOTIF_FLAG_CONTINUE, 0);
}

int listener_refuse(int fd, struct listener_bufs *b, uint64_t id, int err)
{
	return answer(fd, b, id, 0, err);
}
