/* SPDX-License-Identifier: Apache-2.0 */
#include "image/host_layer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/failpoint.h"
#include "base/io.h"
#include "base/limits.h"
#include "image/host_accounts.h"
#include "image/host_etc.h"
#include "image/host_home.h"
#include "image/host_mask.h"
#include "image/host_var.h"
#include "image/layer.h"
#include "sys/files/rmtree.h"

#define PREFIX	  "v4-" /* the format of a layer: changing it rebuilds all layers */
#define UNDER_WAY ".new-"

enum {
	NAME_SIZE = 64,
	LEFTOVER_S = 10 * 60,
	REPORT_MAX = 256 * 1024,
};

static void close_dir(DIR *d)
{
	closedir(d);
}
DEFINE_AUTO_PTR(DIR, close_dir)

int host_root_scan(struct host_root *ret, struct err *e)
{
	static const char *const names[HOST_TOPS] = { "bin",   "sbin",	"lib",
						      "lib32", "lib64", "libx32" };

	*ret = (struct host_root){ 0 };
	for (int i = 0; i < HOST_TOPS; i++) {
		struct host_top *t = &ret->top[i];
		char path[16];
		struct stat st;
		ssize_t n;

		t->name = names[i];
		(void)snprintf(path, sizeof path, "/%s", names[i]);
		n = readlink(path, t->target, sizeof t->target);
		if (n >= (ssize_t)sizeof t->target)
			return err_set(e, ERR_INVALID, "the link '%s' is too long", path);
		if (n >= 0) {
			t->target[n] = '\0';
			t->kind = HOST_TOP_LINK;
		} else if (errno == EINVAL && lstat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
			t->kind = HOST_TOP_DIR;
		} else if (errno != ENOENT && errno != EINVAL) {
			return err_sys(e, errno, "cannot look at '%s'", path);
		}
	}
	return 0;
}

/* FNV-1a: it names states of one host and is no security boundary. */
static void mix(uint64_t *h, const void *p, size_t n)
{
	for (const unsigned char *c = p; n > 0; n--, c++)
		*h = (*h ^ *c) * 0x100000001b3ull;
}

static void mix_u64(uint64_t *h, uint64_t v)
{
	mix(h, &v, sizeof v);
}

/* ctime also reflects chmod: a file that became private must leave the layer. */
static void mix_stat(uint64_t *h, const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0) {
		mix_u64(h, 0);
		return;
	}
	mix_u64(h, st.st_ino);
	mix_u64(h, st.st_mode);
	mix_u64(h, (uint64_t)st.st_size);
	mix_u64(h, (uint64_t)st.st_mtim.tv_sec);
	mix_u64(h, (uint64_t)st.st_mtim.tv_nsec);
	mix_u64(h, (uint64_t)st.st_ctim.tv_sec);
	mix_u64(h, (uint64_t)st.st_ctim.tv_nsec);
}

/* The entries of a directory, in any order. */
static void mix_entries(uint64_t *h, const char *dir)
{
	auto_done(close_dir) DIR *d = opendir(dir);
	uint64_t all = 0;
	struct dirent *de;

	while (d && (de = readdir(d))) {
		char path[LIMIT_PATH];
		uint64_t one = 0xcbf29ce484222325ull;

		(void)snprintf(path, sizeof path, "%s/%s", dir, de->d_name);
		if (strcmp(de->d_name, "..") != 0)
			mix_stat(&one, path);
		all ^= one;
	}
	mix_u64(h, all);
}

static void layer_name(const struct host_root *root, char out[NAME_SIZE])
{
	static const char *const sources[] = {
		"/etc",
		"/etc/passwd",
		"/etc/group",
		"/etc/ld.so.cache",
		"/etc/alternatives",
		"/etc/apt",
		"/etc/ssl/certs",
		"/etc/profile.d",
		"/var/lib/dpkg/status",
	};
	/* Where people install by hand. */
	static const char *const masked[] = { "/opt", "/usr/local", "/usr/local/etc" };
	uint64_t h = 0xcbf29ce484222325ull;

	mix_u64(&h, geteuid());
	for (int i = 0; i < HOST_TOPS; i++) {
		mix_u64(&h, root->top[i].kind);
		mix(&h, root->top[i].target, strlen(root->top[i].target) + 1);
	}
	for (size_t i = 0; i < ARRAY_LEN(sources); i++)
		mix_stat(&h, sources[i]);
	for (size_t i = 0; i < ARRAY_LEN(masked); i++)
		mix_entries(&h, masked[i]);
	(void)snprintf(out, NAME_SIZE, PREFIX "%016" PRIx64, h);
}

static const struct {
	const char *path;
	mode_t mode;
	uid_t owner;
} dirs[] = {
	{ "dev", 0755, 0 },	  { "etc", 0755, 0 },
	{ "home", 0755, 0 },	  { "home/user", 0750, HOST_USER_UID },
	{ "media", 0755, 0 },	  { "mnt", 0755, 0 },
	{ "opt", 0755, 0 },	  { "proc", 0555, 0 },
	{ "root", 0700, 0 },	  { "run", 0755, 0 },
	{ "run/lock", 01777, 0 }, { "srv", 0755, 0 },
	{ "sys", 0555, 0 },	  { "tmp", 01777, 0 },
	{ "usr", 0755, 0 },
};

static int make_top(int layer, const struct host_root *root, struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		struct layer_attr attr = { .mode = dirs[i].mode,
					   .uid = dirs[i].owner,
					   .gid = dirs[i].owner };

		if (layer_dir(layer, dirs[i].path, &attr, e) < 0)
			return -1;
	}
	for (int i = 0; i < HOST_TOPS; i++) {
		const struct host_top *t = &root->top[i];
		struct layer_attr attr = { .mode = 0755 };

		if (t->kind == HOST_TOP_LINK && layer_link(layer, t->name, t->target, e) < 0)
			return -1;
		if (t->kind == HOST_TOP_DIR && layer_dir(layer, t->name, &attr, e) < 0)
			return -1;
	}
	return 0;
}

static int mask_dir(int dir, const char *name, struct buf *report, struct err *e)
{
	char path[32], host[32];
	auto_close int out = FD_NONE;
	int r;

	(void)snprintf(path, sizeof path, "mask/%s", name);
	(void)snprintf(host, sizeof host, "/%s", name);
	if (access(host, F_OK) < 0)
		return 0;
	if (mkdirat(dir, path, 0700) < 0)
		return err_sys(e, errno, "cannot make '%s'", path);
	out = openat(dir, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (out < 0)
		return err_sys(e, errno, "cannot open '%s'", path);
	r = host_mask_make(host, out, report, e);
	if (r == 0 && unlinkat(dir, path, AT_REMOVEDIR) < 0)
		return err_sys(e, errno, "cannot remove '%s'", path);
	return r < 0 ? -1 : 0;
}

static int make_masks(int dir, const struct host_root *root, struct buf *report, struct err *e)
{
	if (mkdirat(dir, "mask", 0700) < 0)
		return err_sys(e, errno, "cannot make 'mask'");
	if (mask_dir(dir, "usr", report, e) < 0 || mask_dir(dir, "opt", report, e) < 0)
		return -1;
	/* For a user, the kernel applies the same permissions inside and outside. */
	for (int i = 0; i < HOST_TOPS && geteuid() == 0; i++)
		if (root->top[i].kind == HOST_TOP_DIR &&
		    mask_dir(dir, root->top[i].name, report, e) < 0)
			return -1;
	return 0;
}

/* dir: the directory of the unfinished layer. */
static int fill(int dir, const struct host_root *root, struct err *e)
{
	auto_done(buf_done) struct buf report = BUF_INIT(REPORT_MAX);
	struct layer_attr top = { .mode = 0755 }, text = { .mode = 0644 };
	auto_close int layer = FD_NONE;

	if (layer_dir(dir, "root", &top, e) < 0)
		return -1;
	layer = openat(dir, "root", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (layer < 0)
		return err_sys(e, errno, "cannot open 'root' of the layer");
	if (make_top(layer, root, e) < 0 || host_etc_make(layer, &report, e) < 0 ||
	    host_home_make(layer, e) < 0 || host_var_make(layer, &report, e) < 0 ||
	    make_masks(dir, root, &report, e) < 0 ||
	    layer_file(dir, "left-out", buf_str(&report), &text, e) < 0)
		return -1;
	/* After a power failure, a named layer must not miss files that never reached the disk. */
	if (syncfs(layer) < 0)
		return err_sys(e, errno, "cannot write the layer to disk");
	return 0;
}

static bool is_layer(int host, const char *name)
{
	char path[NAME_SIZE + 8];
	struct stat st;

	(void)snprintf(path, sizeof path, "%s/root", name);
	return fstatat(host, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* Builds as tmp; the caller removes tmp if it remains. */
static int build_as(int host, const char *tmp, const char *name, const struct host_root *root,
		    struct err *e)
{
	auto_close int dir = FD_NONE;

	if (mkdirat(host, tmp, 0700) < 0)
		return err_sys(e, errno, "cannot make '%s'", tmp);
	dir = openat(host, tmp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return err_sys(e, errno, "cannot open '%s'", tmp);
	if (fill(dir, root, e) < 0)
		return -1;
	failpoint("template.filled");
	if (renameat(host, tmp, host, name) == 0) {
		failpoint("template.named");
		return 0;
	}
	/* If flock does not reach another builder, the first one wins. */
	if ((errno == ENOTEMPTY || errno == EEXIST) && is_layer(host, name))
		return 0;
	return err_sys(e, errno, "cannot rename '%s' to '%s'", tmp, name);
}

static int build(int host, const char *name, const struct host_root *root, struct err *e)
{
	char tmp[2 * NAME_SIZE];
	uint64_t random;
	int r;

	if (getrandom(&random, sizeof random, 0) != sizeof random)
		return err_sys(e, errno, "cannot get random bytes");
	(void)snprintf(tmp, sizeof tmp, "%s" UNDER_WAY "%016" PRIx64, name, random);
	r = build_as(host, tmp, name, root, e);
	(void)rmtree_at(host, tmp);
	return r;
}

static DIR *list(int host)
{
	int fd = openat(host, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d)
		fd_close(&fd);
	return d;
}

/* Remove what a crash left. If that fails, build anyway. */
static void sweep(int host)
{
	auto_done(close_dir) DIR *d = list(host);
	time_t now = time(NULL);
	struct dirent *de;
	struct stat st;

	while (d && (de = readdir(d)))
		if (strstr(de->d_name, UNDER_WAY) &&
		    fstatat(host, de->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    now - st.st_mtim.tv_sec > LEFTOVER_S)
			(void)rmtree_at(host, de->d_name);
}

static int open_dir(int at, const char *name)
{
	int r = io_mkdir(at, name, 0700), fd;

	if (r < 0)
		return r;
	fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Closing the descriptor releases the lock. */
static int lock(int templates)
{
	auto_close int fd =
		openat(templates, "host.lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	while (flock(fd, LOCK_EX) < 0)
		if (errno != EINTR)
			return -errno;
	return TAKE_FD(fd);
}

static int build_locked(const char *state_dir, const char *name, const struct host_root *root,
			struct err *e)
{
	auto_close int templates = FD_NONE, host = FD_NONE, locked = FD_NONE;
	auto_close int state = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (state < 0)
		return err_sys(e, errno, "cannot open '%s'", state_dir);
	templates = open_dir(state, "templates");
	if (templates < 0)
		return err_sys(e, -templates, "cannot make '%s/templates'", state_dir);
	host = open_dir(templates, "host");
	if (host < 0)
		return err_sys(e, -host, "cannot make '%s/templates/host'", state_dir);
	locked = lock(templates);
	if (locked < 0)
		return err_sys(e, -locked, "cannot lock '%s/templates/host.lock'", state_dir);
	if (is_layer(host, name))
		return 0;
	sweep(host);
	return build(host, name, root, e);
}

int host_layer_get(const char *state_dir, const struct host_root *root, char **ret_path,
		   struct err *e)
{
	auto_free char *path = NULL;
	char name[NAME_SIZE];
	struct stat st;

	layer_name(root, name);
	if (asprintf(&path, "%s/templates/host/%s/root", state_dir, name) < 0) {
		path = NULL;
		return err_sys(e, ENOMEM, "cannot name the layer");
	}
	if (lstat(path, &st) < 0 && build_locked(state_dir, name, root, e) < 0) {
		(void)err_ctx(e, "cannot build the base layer of template 'host'");
		return e->sys == ENOSPC
			       ? err_hint(e, "make room in '%s', or set CAY_STATE", state_dir)
			       : -1;
	}
	*ret_path = TAKE_PTR(path);
	return 0;
}

/* Of any format: layers of older formats are removed when no sandbox uses them. */
static bool is_layer_name(const char *name)
{
	return name[0] == 'v' && name[1 + strspn(name + 1, "0123456789")] == '-' &&
	       strlen(name) < NAME_SIZE && !strstr(name, UNDER_WAY);
}

static void find_newest(int host, DIR *d, char newest[NAME_SIZE])
{
	struct timespec best = { 0 };
	struct dirent *de;
	struct stat st;

	while ((de = readdir(d))) {
		if (!is_layer_name(de->d_name) ||
		    fstatat(host, de->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (newest[0] &&
		    (st.st_mtim.tv_sec < best.tv_sec ||
		     (st.st_mtim.tv_sec == best.tv_sec && st.st_mtim.tv_nsec < best.tv_nsec)))
			continue;
		best = st.st_mtim;
		(void)str_copy(newest, NAME_SIZE, str_of(de->d_name));
	}
}

/* Returns the number removed, or -errno. */
static int remove_all_but(int host, const char *current,
			  bool (*in_use)(void *ctx, const char *name), void *ctx)
{
	auto_done(close_dir) DIR *d = list(host);
	char newest[NAME_SIZE] = "";
	struct dirent *de;
	int r = 0, n = 0;

	if (!d)
		return -errno;
	find_newest(host, d, newest);
	rewinddir(d);
	while (r == 0 && (de = readdir(d)))
		if (is_layer_name(de->d_name) && strcmp(de->d_name, newest) != 0 &&
		    strcmp(de->d_name, current) != 0 && !in_use(ctx, de->d_name)) {
			r = rmtree_at(host, de->d_name);
			n++;
		}
	return r < 0 ? r : n;
}

/* 1: *ret_host is the layers' directory, locked by *ret_lock. 0: there is none. Or -errno. */
static int open_locked(int state, int *ret_host, int *ret_lock)
{
	auto_close int templates =
		openat(state, "templates", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	auto_close int host = FD_NONE;
	int fd;

	if (templates < 0)
		return errno == ENOENT ? 0 : -errno;
	host = openat(templates, "host", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (host < 0)
		return errno == ENOENT ? 0 : -errno;
	fd = lock(templates);
	if (fd < 0)
		return fd;
	*ret_lock = fd;
	*ret_host = TAKE_FD(host);
	return 1;
}

int host_layer_sweep(const char *state_dir)
{
	auto_close int state = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_close int host = FD_NONE, locked = FD_NONE;
	int r = state < 0 ? -errno : open_locked(state, &host, &locked);

	if (r > 0)
		sweep(host);
	return r < 0 ? r : 0;
}

int host_layer_prune(const char *state_dir, bool (*in_use)(void *ctx, const char *name), void *ctx)
{
	auto_close int state = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_close int host = FD_NONE, locked = FD_NONE;
	char current[NAME_SIZE];
	struct host_root root;
	struct err e;
	int r;

	if (state < 0)
		return -errno;
	r = open_locked(state, &host, &locked);
	if (r <= 0)
		return r;
	if (host_root_scan(&root, &e) < 0)
		return -EIO;
	layer_name(&root, current);
	return remove_all_but(host, current, in_use, ctx);
}
