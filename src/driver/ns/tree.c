/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sandbox's file systems: overlays over the template's layers, and read-only mounts.
 *
 * An overlay is assembled from descriptors. Upper and work directories and sealed layers are below
 * the state directory or in storage; each of these is one mount with the sandbox's ids. Anything
 * elsewhere on the host is a mount of its own. All of them disappear with the stage: closing a
 * detached mount costs a kernel grace period each, but those on the stage go at once.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "driver/ns/launch.h"
#include "driver/ns/ro.h"
#include "sys/files/resolve.h"
#include "sys/ns/caps.h"
#include "sys/ns/mnt.h"
#include "sys/process/raw.h"

enum {
	OPT_MAX = 256, /* the kernel's ceiling for one fsconfig value */
	LOWERS_MAX = CELL_LAYERS + CELL_LOWERS,
};

void tree_init(struct tree *t, const struct cell_spec *spec, int userns_fd, const int *owner_ns)
{
	*t = (struct tree){
		.spec = spec,
		.userns_fd = userns_fd,
		.owner_ns = owner_ns,
		.detached = spec->rootful,
		.upper = "upper",
		.fds_fd = FD_NONE,
		.roots = { FD_NONE, FD_NONE },
		.stage_fd = FD_NONE,
		.keel_fd = FD_NONE,
		.root_fd = FD_NONE,
		.proc_fd = FD_NONE,
		.dev_fd = FD_NONE,
		.sys_fd = FD_NONE,
		.void_fd = FD_NONE,
		.knobs_fd = FD_NONE,
	};
	for (int i = 0; i < CELL_MOUNTS; i++) {
		t->mount_fd[i] = FD_NONE;
		for (int j = 0; j < CELL_LOWERS; j++)
			t->lower_fd[i][j] = FD_NONE;
	}
}

int tree_fds(const struct tree *t, int *fds)
{
	for (int i = 0; i < t->spec->nmounts; i++)
		fds[i] = t->mount_fd[i];
	return t->spec->nmounts;
}

int tree_take_fds(const struct cell_spec *s, int to[CELL_MOUNTS], int *fds, int n)
{
	if (n != s->nmounts)
		return -EBADMSG;
	for (int i = 0; i < n; i++) {
		fd_close(&to[i]);
		to[i] = TAKE_FD(fds[i]);
	}
	return 0;
}

bool tree_is_same(const struct tree *t, int i)
{
	/* Never rebuild read-only mounts: the host may have changed the files there. */
	return t->change && (t->change->same[i] || t->spec->mounts[i].kind == MOUNT_RO);
}

const char *tree_slot(unsigned generation)
{
	return generation % 2 ? "b" : "a";
}

int tree_put(struct tree *t, int mount_fd, const char *name)
{
	if (mount_fd < 0)
		return mount_fd;
	if (mkdirat(t->stage_fd, name, 0700) < 0)
		return -errno;
	return mnt_attach_at(mount_fd, t->stage_fd, name);
}

int tree_userns(const struct tree *t, int i)
{
	int own = t->owner_ns[i];

	return own >= 0 ? own : t->userns_fd;
}

/* The part of a path below the state directory; NULL: it is elsewhere. */
static const char *below_state(const struct tree *t, const char *path)
{
	size_t n = strlen(t->spec->state);

	return strncmp(path, t->spec->state, n) == 0 && path[n] == '/' ? path + n + 1 : NULL;
}

static int gather_lower(const struct tree *t, int i, int j)
{
	const char *path = t->spec->mounts[i].lower[j];
	int fd;

	if (t->detached)
		return mnt_bind_path(path, RAW_ATTR_RDONLY | RAW_ATTR_NODEV, 0, tree_userns(t, i));
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int gather_root(struct tree *t, const char *path, int *ret_fd)
{
	int fd = t->detached ? mnt_bind_path(path, RAW_ATTR_NODEV, 0, t->userns_fd)
			     : open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int err = errno;

	*ret_fd = fd;
	if (fd >= 0)
		return 0;
	(void)snprintf(t->what, sizeof t->what, "open '%.200s'", path);
	return t->detached ? fd : -err;
}

/* The frozen start of mount i; -ENOENT if there is none. */
static int open_start(const struct tree *t, int i)
{
	int fd = -ENOENT;

	for (int j = 0; j < t->spec->nlayers && fd == -ENOENT; j++)
		fd = layer_open_start(&t->roots, t->spec->layers[j], i, O_PATH | O_DIRECTORY);
	return fd;
}

/* If the start is frozen, the host's directory is not needed, and may be gone. */
static bool is_started(const struct tree *t, int i)
{
	auto_close int fd = open_start(t, i);

	return fd >= 0;
}

int tree_gather(struct tree *t)
{
	int r = gather_root(t, t->spec->state, &t->roots.state_fd);

	if (r == 0 && t->spec->storage)
		r = gather_root(t, t->spec->storage, &t->roots.storage_fd);
	for (int i = 0; i < t->spec->nmounts && r == 0; i++) {
		const struct cell_mount *m = &t->spec->mounts[i];

		if (tree_is_same(t, i) || m->kind != MOUNT_OVERLAY || is_started(t, i))
			continue;
		for (int j = 0; j < m->nlower && r == 0; j++) {
			int *fd = &t->lower_fd[i][j];

			if (below_state(t, m->lower[j]))
				continue;
			*fd = gather_lower(t, i, j);
			if (*fd < 0) {
				(void)snprintf(t->what, sizeof t->what, "open '%.200s'",
					       m->lower[j]);
				r = *fd;
			}
		}
	}
	return r;
}

static int stage_all(struct tree *t)
{
	char name[32];
	int r = tree_put(t, t->roots.state_fd, "state");

	if (r == 0 && t->spec->storage)
		r = tree_put(t, t->roots.storage_fd, "storage");
	(void)snprintf(t->what, sizeof t->what, "put layers on the stage");
	for (int i = 0; i < t->spec->nmounts; i++)
		for (int j = 0; j < CELL_LOWERS && r == 0; j++) {
			if (t->lower_fd[i][j] < 0 || tree_is_same(t, i))
				continue;
			(void)snprintf(name, sizeof name, "%d.%d", i, j);
			r = tree_put(t, t->lower_fd[i][j], name);
		}
	return r;
}

/* Descriptors of one overlay's lowers, topmost first; owned. */
struct lowers {
	int fd[LOWERS_MAX];
	int n;
};

static void lowers_done(struct lowers *l)
{
	for (int j = 0; j < l->n; j++)
		fd_close(&l->fd[j]);
}
DEFINE_AUTO(struct lowers, lowers_done)

/* In storage, a generation is one subvolume. */
static int open_part(const struct tree *t, const char *part, const char *name)
{
	char path[LIMIT_PATH];

	if (t->spec->storage)
		(void)snprintf(path, sizeof path, "%s/%s/%s", t->spec->id, part, name);
	else
		(void)snprintf(path, sizeof path, "%s/%s/%s", below_state(t, t->spec->dir), part,
			       name);
	return resolve_beneath(t->spec->storage ? t->roots.storage_fd : t->roots.state_fd, path,
			       O_PATH | O_DIRECTORY, 0);
}

/* The upper of the running generation, which is not a layer yet. */
static int open_running(const struct tree *t, int i, struct lowers *l)
{
	char name[12];
	int fd;

	if (!t->change || !t->change->below[i])
		return 0;
	(void)snprintf(name, sizeof name, "%d", i);
	fd = open_part(t, "upper", name);
	if (fd < 0)
		return fd;
	l->fd[l->n++] = fd;
	return 0;
}

/* A layer has a directory only for mounts that changed in its time. */
static int open_layers(struct tree *t, int i, struct lowers *l)
{
	char path[64];

	for (int j = 0; j < t->spec->nlayers; j++) {
		int fd;

		if (layer_is_start(t->spec->layers[j]))
			continue;
		(void)snprintf(path, sizeof path, "%s/%d", t->spec->layers[j], i);
		fd = layer_open(&t->roots, path, O_PATH | O_DIRECTORY);
		if (fd >= 0)
			l->fd[l->n++] = fd;
		else if (fd != -ENOENT)
			return fd;
	}
	return 0;
}

static int open_lowers(struct tree *t, int i, struct lowers *l)
{
	const struct cell_mount *m = &t->spec->mounts[i];
	int r = open_running(t, i, l), start;

	if (r == 0)
		r = open_layers(t, i, l);
	start = r == 0 ? open_start(t, i) : r;
	if (start >= 0)
		l->fd[l->n++] = start;
	if (start != -ENOENT)
		return start < 0 ? start : 0;
	for (int j = 0; j < m->nlower && r == 0; j++) {
		const char *path = below_state(t, m->lower[j]);
		int fd = path ? resolve_beneath(t->roots.state_fd, path, O_PATH | O_DIRECTORY, 0)
			      : fcntl(t->lower_fd[i][j], F_DUPFD_CLOEXEC, 3);

		if (fd < 0) {
			(void)snprintf(t->what, sizeof t->what, "open '%.200s'", m->lower[j]);
			return path ? fd : -errno;
		}
		l->fd[l->n++] = fd;
	}
	return r;
}

/* "5:6:7": names in fds_fd, which is the working directory then. */
static int name_lowers(const struct lowers *l, char opt[OPT_MAX])
{
	int at = 0;

	for (int j = 0; j < l->n; j++) {
		at += snprintf(opt + at, OPT_MAX - (size_t)at, "%s%d", j ? ":" : "", l->fd[j]);
		if (at >= OPT_MAX)
			return -E2BIG;
	}
	return 0;
}

static unsigned overlay_attrs(const struct cell_spec *s)
{
	/* Do not update access times: with noatime, reading fresh files takes a fifth less CPU. */
	return RAW_ATTR_NODEV | RAW_ATTR_NOATIME | (s->nosuid ? RAW_ATTR_NOSUID : 0);
}

/* The detached overlay of mount i. */
static int new_overlay(struct tree *t, int i)
{
	char lower[OPT_MAX], upper[OPT_MAX], work[OPT_MAX], work_dir[16], name[32];
	auto_done(lowers_done) struct lowers l = { .n = 0 };
	auto_close int upper_fd = FD_NONE, work_fd = FD_NONE;
	const struct mnt_opt opts[] = {
		{ "lowerdir", lower },
		{ "upperdir", upper },
		{ "workdir", work },
		{ "index", "off" },
		/* Layers are merged with others and moved, so each must be complete in itself. */
		{ "redirect_dir", "nofollow" },
		{ "metacopy", "off" },
		/*
		 * fsync inside must not wait for the disk, and the end of a sandbox must not sync
		 * the whole file system. Data that must last is synced when it is sealed.
		 */
		{ "volatile", NULL },
		{ t->spec->rootful ? NULL : "userxattr", NULL },
		{ NULL, NULL },
	};
	int r;

	(void)snprintf(name, sizeof name, "%d", i);
	upper_fd = open_part(t, t->upper, name);
	(void)snprintf(upper, sizeof upper, "%d", upper_fd);
	(void)snprintf(work_dir, sizeof work_dir, "%s%swork", t->spec->storage ? t->upper : "",
		       t->spec->storage ? "/" : "");
	(void)snprintf(name, sizeof name, "%d.%u", i, t->generation);
	work_fd = open_part(t, work_dir, name);
	(void)snprintf(work, sizeof work, "%d", work_fd);
	r = upper_fd < 0 ? upper_fd : work_fd < 0 ? work_fd : open_lowers(t, i, &l);
	if (r == 0)
		r = name_lowers(&l, lower);
	if (r == 0 && fchdir(t->fds_fd) < 0)
		r = -errno;
	if (r == 0)
		r = mnt_new("overlay", opts, overlay_attrs(t->spec));
	if (r < 0)
		(void)snprintf(t->what, sizeof t->what, "mount overlay for '%.100s' over '%.100s'",
			       t->spec->mounts[i].dest, t->spec->mounts[i].lower[0]);
	return r;
}

/* A read-only mount brings along the host's mounts below it. */
int tree_take_over(struct tree *t)
{
	for (int i = 0; i < t->spec->nmounts; i++) {
		if (!tree_is_same(t, i))
			continue;
		t->mount_fd[i] = mnt_copy(t->same_fd[i], t->spec->mounts[i].kind != MOUNT_OVERLAY);
		if (t->mount_fd[i] < 0) {
			(void)snprintf(t->what, sizeof t->what, "take over '%.200s'",
				       t->spec->mounts[i].dest);
			return t->mount_fd[i];
		}
	}
	return 0;
}

static int mount_of(struct tree *t, int i)
{
	if (tree_is_same(t, i))
		return t->mount_fd[i];
	return t->spec->mounts[i].kind == MOUNT_OVERLAY ? new_overlay(t, i) : ro_new(t, i);
}

/*
 * The copy of a read-only mount also has the last generation's mounts below it. Detach them, or
 * they would stay hidden below the new mount for ever.
 */
static int uncover(struct tree *t, int i, int target)
{
	char name[16];

	for (int j = 1; j < i; j++) {
		const struct cell_mount *m = &t->spec->mounts[j];
		size_t n = strlen(m->dest);

		if (!tree_is_same(t, j) || m->kind != MOUNT_RO ||
		    strncmp(t->spec->mounts[i].dest, m->dest, n) != 0 ||
		    t->spec->mounts[i].dest[n] != '/')
			continue;
		(void)snprintf(name, sizeof name, "%d", target);
		return fchdir(t->fds_fd) < 0 || umount2(name, MNT_DETACH) < 0 ? -errno : 1;
	}
	return 0;
}

/*
 * The mount point inside, resolved as the sandbox would resolve it; made if missing. New
 * directories above a user's mount belong to the user, as outside: `git worktree add ../x` must
 * work.
 */
static int open_place(struct tree *t, int i, int mount_fd)
{
	const struct cell_spec *s = t->spec;
	bool users = s->mounts[i].has_owner;
	uid_t root = s->rootful ? s->uid_base + (users ? s->user : 0) : 0;
	struct stat st;

	if (fstat(mount_fd, &st) == 0 && !S_ISDIR(st.st_mode))
		return resolve_mkfile(t->root_fd, s->mounts[i].dest, root, root);
	return resolve_mkdirs(t->root_fd, s->mounts[i].dest, 0755, root, root);
}

static int attach(struct tree *t, int i, int mount_fd)
{
	auto_close int target = open_place(t, i, mount_fd);
	int r = target < 0 ? target : uncover(t, i, target);

	if (r > 0) {
		fd_close(&target);
		target = open_place(t, i, mount_fd);
		r = target < 0 ? target : 0;
	}
	if (r == 0)
		r = mnt_attach(mount_fd, target);
	if (r < 0)
		(void)snprintf(t->what, sizeof t->what, "mount on '%.200s' inside",
			       t->spec->mounts[i].dest);
	return r;
}

static int new_tmpfs(const char *mode, const char *size, int *ret)
{
	const struct mnt_opt opts[] = { { "mode", mode }, { "size", size }, { NULL, NULL } };

	*ret = mnt_new("tmpfs", opts, RAW_ATTR_NOSUID | RAW_ATTR_NODEV | RAW_ATTR_NOEXEC);
	return *ret < 0 ? *ret : 0;
}

/* Where mounts are assembled: in this mount namespace only; it goes away with the old root. */
int tree_stage(struct tree *t)
{
	char path[LIMIT_PATH];
	auto_close int at = FD_NONE;
	int r;

	(void)snprintf(t->what, sizeof t->what, "make a stage for mounts");
	(void)snprintf(path, sizeof path, "%s/stage", t->spec->dir);
	if (mkdir(path, 0700) < 0)
		return -errno;
	at = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (at < 0)
		return -errno;
	r = new_tmpfs("0700", "64k", &t->stage_fd);
	return r < 0 ? r : mnt_attach(t->stage_fd, at);
}

/*
 * A mount namespace inside may mount a new proc only if the namespace around it has a proc without
 * covers. This proc is on the keel, where no process inside can reach it.
 */
static int add_pristine_proc(struct tree *t)
{
	auto_close int proc =
		mnt_new("proc", NULL, RAW_ATTR_NOSUID | RAW_ATTR_NODEV | RAW_ATTR_NOEXEC);

	if (proc < 0)
		return proc;
	if (mkdirat(t->keel_fd, "p", 0) < 0)
		return -errno;
	return mnt_attach_at(proc, t->keel_fd, "p");
}

int tree_on_top(void)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(".", "/", NULL, MS_MOVE, NULL) < 0 || chroot(".") < 0)
		return -errno;
	return 0;
}

int tree_keel(struct tree *t)
{
	int r;

	(void)snprintf(t->what, sizeof t->what, "make the keel");
	r = new_tmpfs("0000", "4k", &t->keel_fd);
	if (r == 0)
		r = tree_put(t, t->keel_fd, "keel");
	for (unsigned g = 0; g < 2 && r == 0; g++)
		if (mkdirat(t->keel_fd, tree_slot(g), 0) < 0)
			r = -errno;
	if (r == 0 && t->spec->nested)
		r = add_pristine_proc(t);
	return r < 0 ? r : mnt_make_readonly(t->keel_fd);
}

static int attach_root(struct tree *t)
{
	int r;

	t->root_fd = t->mount_fd[0] = mount_of(t, 0);
	if (t->root_fd < 0)
		return t->root_fd;
	r = mnt_attach_at(t->root_fd, t->keel_fd, tree_slot(t->generation));
	if (r < 0)
		(void)snprintf(t->what, sizeof t->what, "mount the root");
	return r;
}

static int mount_all(struct tree *t)
{
	int r = attach_root(t);

	for (int i = 1; i < t->spec->nmounts && r == 0; i++) {
		bool overlay = t->spec->mounts[i].kind == MOUNT_OVERLAY;
		int *fd = &t->mount_fd[i];

		*fd = mount_of(t, i);
		r = *fd < 0 ? *fd : attach(t, i, *fd);
		if (r == 0 && !overlay && !tree_is_same(t, i))
			r = ro_below(t, i);
	}
	return r;
}

/*
 * Overlayfs acts on the layers as its mounter. The layers' id map must contain that user, and the
 * user needs all capabilities. The map must also contain every user that makes directories in it.
 */
int tree_mounts(struct tree *t)
{
	bool as_other = t->spec->rootful;
	uid_t root = t->spec->uid_base;
	int r = t->detached ? stage_all(t) : 0;

	if (r == 0 && as_other)
		r = caps_files_as(root, root);
	if (r == 0)
		r = mount_all(t);
	if (as_other && caps_files_as(0, 0) < 0)
		return -EPERM;
	return r;
}

int tree_place(struct tree *t)
{
	const struct {
		const char *name;
		int fd;
	} parts[] = { { "proc", t->proc_fd }, { "dev", t->dev_fd }, { "sys", t->sys_fd } };

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		int r = mnt_attach_at(parts[i].fd, t->root_fd, parts[i].name);

		if (r < 0) {
			(void)snprintf(t->what, sizeof t->what, "mount /%s", parts[i].name);
			return r;
		}
	}
	return 0;
}

struct fixed_mount tree_expects(const struct cell_spec *s, int i)
{
	if (s->mounts[i].kind == MOUNT_OVERLAY)
		return (struct fixed_mount){ .type = "overlay",
					     .root = "/",
					     .attrs = overlay_attrs(s) };
	return (struct fixed_mount){ .attrs = RAW_ATTR_RDONLY | RAW_ATTR_NODEV | RAW_ATTR_NOSUID };
}
