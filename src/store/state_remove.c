/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remove a dead sandbox. First kill its processes, so that nothing fills what we empty. Then save
 * the trace and remove the files, the control groups, and last the lock: without a lock there is
 * nothing else.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/failpoint.h"
#include "base/str.h"
#include "store/groups.h"
#include "store/state.h"
#include "store/storage.h"
#include "sys/files/rmtree.h"

static int remove_files(const struct state *s, const char *id, struct err *e)
{
	auto_close int boxes = openat(s->fd, "sandboxes", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (boxes < 0)
		return errno == ENOENT ? 0 : err_sys(e, errno, "cannot open %s/sandboxes", s->dir);
	r = state_save_trace(s, id);
	if (r > 0)
		r = state_trim_ended(s);
	if (r < 0)
		return err_sys(e, -r, "cannot keep the trace of '%s' in %s/ended", id, s->dir);
	r = rmtree_at(boxes, id);
	failpoint("remove.files");
	if (r == 0)
		return 0;
	err_sys(e, -r, "cannot remove all of %s/sandboxes/%s", s->dir, id);
	if (r == -EXDEV || r == -EBUSY)
		return err_hint(e, "something is mounted there: unmount it");
	if (r == -EPERM || r == -EACCES)
		return err_hint(e, "some files there belong to other users: remove it as root");
	return -1;
}

static int remove_lock(const struct state *s, const char *id, struct err *e)
{
	char lock[sizeof "locks/" + ID_SIZE];

	(void)snprintf(lock, sizeof lock, "locks/%s", id);
	if (unlinkat(s->fd, lock, 0) < 0 && errno != ENOENT)
		return err_sys(e, errno, "cannot remove %s/%s", s->dir, lock);
	failpoint("remove.lock");
	return 0;
}

/* own: this process's group, or negative if it has none. */
static int end_processes(int own, const char *id, struct err *e)
{
	int r = own < 0 ? 0 : groups_kill(own, id);

	if (own < 0 && own != -ENOENT)
		return err_sys(e, -own, "cannot open the control group of this process");
	return r < 0 ? err_sys(e, -r, "cannot kill control group cay-%s", id) : 0;
}

static int remove_groups(int own, const char *id, struct err *e)
{
	int r = groups_remove(own, id);

	return r < 0 ? err_sys(e, -r, "cannot remove control group cay-%s", id) : 0;
}

int state_end_processes(const char *id, struct err *e)
{
	auto_close int own = groups_open();

	return end_processes(own, id, e) < 0 ? -1 : remove_groups(own, id, e);
}

static int remove_all(const struct state *s, const char *id, struct err *e)
{
	auto_close int own = groups_open();

	if (end_processes(own, id, e) < 0 || remove_files(s, id, e) < 0 ||
	    storage_drop(s, id, e) < 0 || remove_groups(own, id, e) < 0)
		return -1;
	return remove_lock(s, id, e);
}

int state_remove(const struct state *s, const char *id, int lock_fd, struct err *e)
{
	int r;

	if (state_id_ok(id))
		r = remove_all(s, id, e);
	else
		r = err_set(e, ERR_INVALID, "'%s' is not a sandbox id", id);
	fd_close(&lock_fd);
	return r;
}
