/* SPDX-License-Identifier: Apache-2.0 */
/* Copies one file. */
#include <errno.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "sys/files/attrs.h"
#include "sys/files/filecopy.h"
#include "sys/freeze/freeze_parts.h"

enum { TRIES = 4 };

/*
 * Times advance in ticks; file systems without nanoseconds have a resolution of one or two seconds.
 */
#define TICK_NS	  (20 * NS_PER_MS)
#define COARSE_NS (2100 * NS_PER_MS)

static uint64_t ns_of(struct timespec t)
{
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static struct timespec time_of(uint64_t ns)
{
	return (struct timespec){ (time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S) };
}

static struct frozen_key key_of(const struct stat *st)
{
	return (struct frozen_key){
		.dev = st->st_dev,
		.ino = st->st_ino,
		.size = (uint64_t)st->st_size,
		.mtime_ns = ns_of(st->st_mtim),
		.ctime_ns = ns_of(st->st_ctim),
		.mode = st->st_mode,
		.uid = st->st_uid,
		.gid = st->st_gid,
		.nlink = (uint32_t)st->st_nlink,
	};
}

static uint64_t ns_of_x(struct statx_timestamp t)
{
	return (uint64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

int freeze_look(int dir, const char *name, struct frozen_key *ret, bool *ret_mount)
{
	struct statx x;

	if (syscall(SYS_statx, dir, name, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH, STATX_BASIC_STATS,
		    &x) < 0)
		return -errno;
	*ret = (struct frozen_key){
		.dev = makedev(x.stx_dev_major, x.stx_dev_minor),
		.ino = x.stx_ino,
		.size = x.stx_size,
		.mtime_ns = ns_of_x(x.stx_mtime),
		.ctime_ns = ns_of_x(x.stx_ctime),
		.mode = x.stx_mode,
		.uid = x.stx_uid,
		.gid = x.stx_gid,
		.nlink = x.stx_nlink,
	};
	*ret_mount = x.stx_attributes & STATX_ATTR_MOUNT_ROOT;
	return 0;
}

bool freeze_is_settled(const struct frozen_key *key, uint64_t *ret_nap_ns)
{
	uint64_t now = clock_real_ns();
	bool coarse = key->ctime_ns % NS_PER_S == 0;
	uint64_t end = key->ctime_ns + (coarse ? COARSE_NS : TICK_NS);

	*ret_nap_ns = !coarse && key->ctime_ns <= now && now < end ? end - now : 0;
	return end <= now;
}

void freeze_note(struct freeze_names *n, const char *dir, const char *name, int err)
{
	if (n->n++ == 0) {
		n->err = err;
		(void)snprintf(n->first, sizeof n->first, "%.127s%.127s", dir, name);
	}
}

static uint32_t swap(const struct freeze *f, uint32_t id)
{
	/* An id outside the sandbox's map stays outside. */
	if (id == f->user)
		return f->owner < 65536 ? f->owner : UINT16_MAX - 1;
	return id == f->owner ? f->user : id;
}

int freeze_like(const struct freeze *f, int from, int to, const struct frozen_key *key)
{
	struct timespec t = time_of(key->mtime_ns);
	char proc[32];
	int r;

	if (f->privileged &&
	    fchownat(to, "", swap(f, key->uid), swap(f, key->gid), AT_EMPTY_PATH) < 0)
		return -errno;
	if (S_ISLNK(key->mode))
		return utimensat(to, "", (struct timespec[]){ t, t }, AT_EMPTY_PATH) < 0 ? -errno
											 : 0;
	r = attrs_copy_all_xattrs(from, to, f->privileged);
	if (r < 0 && r != -EOPNOTSUPP)
		return r;
	/* After the owner and the access list, which change the mode. */
	(void)snprintf(proc, sizeof proc, "/proc/self/fd/%d", to);
	if (chmod(proc, key->mode & 07777) < 0 ||
	    utimensat(to, "", (struct timespec[]){ t, t }, AT_EMPTY_PATH) < 0)
		return -errno;
	return 0;
}

/*
 * The same for a new file that was created with its mode and, like most files, has no other
 * attributes.
 */
static int like_quickly(const struct freeze *f, int from, int to, const struct frozen_key *key)
{
	struct timespec t = time_of(key->mtime_ns);

	if (key->mode & 07000 || flistxattr(from, NULL, 0) > 0)
		return freeze_like(f, from, to, key);
	if (f->privileged && fchown(to, swap(f, key->uid), swap(f, key->gid)) < 0)
		return -errno;
	return futimens(to, (struct timespec[]){ t, t }) < 0 ? -errno : 0;
}

static int copy_content(struct freeze_worker *w, int from, int to, const struct stat *st)
{
	ssize_t n, done;

	if (w->clone || st->st_size > FILECOPY_CHUNK || st->st_blocks * 512 < st->st_size)
		return filecopy_data(from, to, st->st_size, w->chunk, &w->clone);
	n = pread(from, w->chunk, FILECOPY_CHUNK, 0);
	if (n != st->st_size)
		return n < 0 ? -errno : -ESTALE;
	done = n ? pwrite(to, w->chunk, (size_t)n, 0) : 0;
	return done < 0 ? -errno : done < n ? -ENOSPC : 0;
}

static bool is_same(const struct frozen_key *a, const struct frozen_key *b)
{
	return a->ino == b->ino && a->size == b->size && a->mtime_ns == b->mtime_ns &&
	       a->ctime_ns == b->ctime_ns && a->mode == b->mode;
}

static void nap(uint64_t ns)
{
	struct timespec t = time_of(ns);

	(void)nanosleep(&t, NULL);
}

/* One attempt. 1: the file did not change meanwhile. 0: it did. */
static int copy_once(struct freeze_worker *w, int from, int to, struct frozen_key *key)
{
	struct frozen_key now;
	struct stat st;
	uint64_t wait;
	int r;

	if (fstat(from, &st) < 0)
		return -errno;
	*key = key_of(&st);
	if (!freeze_is_settled(key, &wait) && wait) {
		nap(wait);
		if (fstat(from, &st) < 0)
			return -errno;
		*key = key_of(&st);
	}
	r = copy_content(w, from, to, &st);
	if (r < 0)
		return r == -ESTALE ? 0 : r;
	if (fstat(from, &st) < 0)
		return -errno;
	now = key_of(&st);
	return is_same(key, &now);
}

static int fill(struct freeze_worker *w, int from, int to, const char *name, struct frozen_key *key)
{
	int r = 0;

	/*
	 * Not for a new file: ext4 takes truncation for a replacement, and waits for the disk at
	 * close.
	 */
	for (int i = 0; i < TRIES && r == 0; i++)
		r = i && ftruncate(to, 0) < 0 ? -errno : copy_once(w, from, to, key);
	if (r < 0)
		return r;
	if (r == 0)
		freeze_note(&w->did.unsteady, w->dir, name, EAGAIN);
	w->did.bytes += key->size;
	return like_quickly(w->z->f, from, to, key);
}

static int copy_regular(struct freeze_worker *w, int dir, int to_dir, const char *name,
			struct frozen_key *key)
{
	auto_close int from = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	auto_close int to = FD_NONE;
	uint64_t unused;
	uint64_t unsteady = w->did.unsteady.n;
	int r;

	if (from < 0)
		return -errno;
	to = openat(to_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    key->mode & 0777);
	if (to < 0)
		return errno == EACCES || errno == EPERM ? -EIO : -errno;
	r = fill(w, from, to, name, key);
	if (r < 0)
		return r == -EACCES || r == -EPERM ? -EIO : r;
	if (w->did.unsteady.n > unsteady || !freeze_is_settled(key, &unused))
		key->nlink = 0;
	return 0;
}

static int copy_link(const struct freeze *f, int dir, int to_dir, const char *name,
		     const struct frozen_key *key)
{
	auto_close int to = FD_NONE;
	char target[LIMIT_PATH];
	ssize_t n = readlinkat(dir, name, target, sizeof target);

	if (n < 0 || n == (ssize_t)sizeof target)
		return n < 0 ? -errno : -ENAMETOOLONG;
	target[n] = '\0';
	if (symlinkat(target, to_dir, name) < 0)
		return -errno;
	to = openat(to_dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	return to < 0 ? -errno : freeze_like(f, FD_NONE, to, key);
}

static int copy_special(const struct freeze *f, int dir, int to_dir, const char *name,
			const struct frozen_key *key)
{
	auto_close int from = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	auto_close int to = FD_NONE;
	struct stat st;

	if (from < 0 || fstat(from, &st) < 0)
		return -errno;
	if (mknodat(to_dir, name, st.st_mode & (S_IFMT | 0777), st.st_rdev) < 0)
		return -errno;
	to = openat(to_dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	return to < 0 ? -errno : freeze_like(f, from, to, key);
}

static int copy_new(struct freeze_worker *w, int from, int to, const char *name,
		    struct frozen_key *key)
{
	uint64_t unused;
	int r;

	if (S_ISREG(key->mode))
		return copy_regular(w, from, to, name, key);
	r = S_ISLNK(key->mode) ? copy_link(w->z->f, from, to, name, key)
			       : copy_special(w->z->f, from, to, name, key);
	if (!freeze_is_settled(key, &unused))
		key->nlink = 0;
	return r;
}

/* 1: the earlier copy has the same file, and it was linked. */
static int link_last(const struct freeze_worker *w, int to, const char *name,
		     const struct frozen_key *key)
{
	const struct freeze *f = w->z->f;
	char path[LIMIT_PATH];

	if (!f->last || snprintf(path, sizeof path, "%s%s", w->dir, name) >= LIMIT_PATH ||
	    !frozen_index_has(f->last, path, key))
		return 0;
	/* The file may be removed or have the maximum of names: then copy. */
	return linkat(f->last_fd, path, to, name, 0) == 0;
}

static int copy_or_link(struct freeze_worker *w, int from, int to, const char *name,
			struct frozen_key *key)
{
	int r;

	if (link_last(w, to, name, key)) {
		w->did.linked++;
		return 0;
	}
	r = copy_new(w, from, to, name, key);
	w->did.copied += r == 0;
	return r;
}

static int copy_twin(struct freeze_worker *w, int from, int to, const char *name,
		     struct frozen_key *key)
{
	struct twins *t = &w->z->twins;
	uint64_t copied_ns = 0;
	const char *twin;
	int r;

	(void)pthread_mutex_lock(&w->z->twins_lock);
	twin = twins_find(t, key->dev, key->ino, &copied_ns);
	if (twin)
		r = linkat(w->z->to_fd, twin, to, name, 0) < 0 ? -errno : 0;
	else
		r = copy_or_link(w, from, to, name, key);
	if (r == 0 && !twin)
		r = twins_add(t, key->dev, key->ino, w->dir, name, key->nlink ? key->ctime_ns : 0);
	(void)pthread_mutex_unlock(&w->z->twins_lock);
	/* The copy under the first name is older than the state under this name. */
	if (twin && copied_ns != key->ctime_ns)
		key->nlink = 0;
	return r;
}

int freeze_entry(struct freeze_worker *w, int from, int to, const char *name,
		 struct frozen_key *key)
{
	int r = key->nlink > 1 ? copy_twin(w, from, to, name, key)
			       : copy_or_link(w, from, to, name, key);

	switch (-r) {
	case 0:
		return 1;
	case ENOENT: /* removed meanwhile */
	case ESTALE:
		return 0;
	case ELOOP: /* it has become something else */
	case ENXIO:
		freeze_note(&w->did.unsteady, w->dir, name, -r);
		return 0;
	case EACCES:
	case EPERM:
		freeze_note(&w->did.left_out, w->dir, name, -r);
		return 0;
	default:
		return r;
	}
}
