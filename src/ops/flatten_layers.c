/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/flatten_layers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/limits.h"
#include "ops/layers_free.h"
#include "store/flatten_rows.h"
#include "store/layer_open.h"
#include "store/snapshots.h"
#include "store/starts.h"
#include "store/storage.h"
#include "sys/files/btrfs.h"
#include "sys/files/layercopy.h"
#include "sys/files/voltree.h"
#include "sys/ns/userns.h"
#include "wire/frame.h"
#include "wire/proto.h"

enum {
	MOUNTS_MAX = 64,
	STACK_MAX = LAYERCOPY_MAX,
	TRIES = 1000,
	DEEP = LIMIT_LAYERS / 2,
	RAISE = 255, /* not an error number: the lowest layer of a run is not worth copying */
};

struct stack {
	char id[STACK_MAX][ID_SIZE]; /* topmost first */
	int level[STACK_MAX];
	int n;
};

struct run {
	int first, n;	   /* of the stack */
	char id[ID_SIZE];  /* id of the merged layer */
	struct str recipe; /* describes the template's lowers */
	struct layer_roots roots;
	bool pooled; /* made where its topmost layer is: in storage */
};

static int base_of(const struct run *r)
{
	return r->pooled ? r->roots.storage_fd : r->roots.state_fd;
}

/* The lowest run of one level. Spares some of the newest layers, which are likely to be removed. */
static bool find_run(const struct stack *s, struct run *ret)
{
	for (int end = s->n; end > 0;) {
		int begin = end - 1;

		while (begin > 0 && s->level[begin - 1] == s->level[end - 1])
			begin--;
		if (s->level[begin] < START_LEVEL &&
		    end - begin >= FLATTEN_RUN + (begin == 0 ? FLATTEN_SPARE : 0)) {
			*ret = (struct run){ .first = end - FLATTEN_RUN, .n = FLATTEN_RUN };
			return true;
		}
		end = begin;
	}
	return false;
}

static void name_new(const struct run *r, char out[64])
{
	(void)snprintf(out, 64, "layers/new-%s", r->id);
}

/* Open one more lower after the first m. */
static int open_lower(struct str name, int *fds, int *m)
{
	char path[LIMIT_PATH];

	if (*m == STACK_MAX || !str_copy(path, sizeof path, name))
		return -ENAMETOOLONG;
	fds[*m] = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fds[*m] < 0 ? -errno : (++*m, 0);
}

/* The template's directories of mount i. If one is missing, we cannot know what it contained. */
static int open_lowers(struct str recipe, int i, int *fds, int *m)
{
	struct field f, x;
	int at = 0, err = 0;

	while (err == 0 && field_next(&recipe, &f) > 0) {
		if (f.tag != TAG_MOUNT || at++ != i)
			continue;
		while (err == 0 && field_next(&f.value, &x) > 0)
			err = x.tag == M_LOWER ? open_lower(x.value, fds, m) : 0;
	}
	return err;
}

/* What mount i starts from, if it was frozen below the run; else the template's directories. */
static int open_start(const struct stack *st, const struct run *r, int i, int *fds, int *m)
{
	for (int j = r->first; j < st->n && *m < STACK_MAX; j++) {
		int fd = layer_open_start(&r->roots, st->id[j], i, O_PATH | O_DIRECTORY);

		if (fd >= 0)
			fds[(*m)++] = fd;
		if (fd != -ENOENT)
			return fd < 0 ? fd : 0;
	}
	return open_lowers(r->recipe, i, fds, m);
}

/* Directories of mount i in the run and below it; *ret_n is the number in the run. */
static int open_dirs(const struct stack *st, const struct run *r, int i, int *fds, int *ret_n,
		     int *ret_m)
{
	int m = 0, err = 0;

	*ret_n = 0;
	for (int j = r->first; j < st->n && err == 0; j++) {
		char path[64];
		int fd;

		if (layer_is_start(st->id[j]))
			continue;
		(void)snprintf(path, sizeof path, "%s/%d", st->id[j], i);
		fd = layer_open(&r->roots, path, O_RDONLY | O_DIRECTORY);
		if (fd < 0) {
			err = fd == -ENOENT ? 0 : fd;
			continue;
		}
		fds[m++] = fd;
		*ret_n += j < r->first + r->n;
	}
	if (err == 0 && *ret_n)
		err = open_start(st, r, i, fds, &m);
	*ret_m = m;
	return err;
}

static int merge_mount(const struct stack *st, const struct run *r, int to, int i, bool privileged)
{
	int fds[STACK_MAX], n, m, err = open_dirs(st, r, i, fds, &n, &m);
	char name[12];

	(void)snprintf(name, sizeof name, "%d", i);
	if (err == 0 && n > 0)
		err = layercopy(fds, n, m, to, name, privileged);
	for (int j = 0; j < m; j++)
		(void)close(fds[j]);
	return err;
}

/* Each name adds something, because empty files are copied too. */
static uint64_t size_of(const struct run *r, const char *id)
{
	auto_close int fd = layer_open(&r->roots, id, O_RDONLY | O_DIRECTORY);

	return fd < 0 ? 0 : layers_copy_cost(fd);
}

/*
 * One large layer below small ones, as after a checkout: copying it would take long and gain one
 * place. Then it counts as merged. Not if the stack is deep, because it would grow too deep.
 */
static bool lowest_outweighs(const struct stack *st, const struct run *r)
{
	uint64_t above = 0;

	if (st->n > DEEP)
		return false;
	for (int j = r->first; j < r->first + r->n - 1; j++)
		above += size_of(r, st->id[j]);
	return size_of(r, st->id[r->first + r->n - 1]) > above * FLATTEN_RUN;
}

/* The new layer replaces layers that may have been on disk for long: sync it. */
static int merge_mounts(const struct stack *st, const struct run *r, int to, bool privileged)
{
	int err = 0;

	for (int i = 0; i < MOUNTS_MAX && err == 0; i++)
		err = merge_mount(st, r, to, i, privileged);
	return err == 0 && syncfs(to) < 0 ? -errno : err;
}

static void __attribute__((noreturn)) merge_all(const struct stack *st, const struct run *r, int to)
{
	bool privileged = geteuid() == 0;
	struct rlimit files;
	int err;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
	err = userns_become_root();
	if (err == 0 && lowest_outweighs(st, r))
		_exit(RAISE);
	if (err == 0)
		err = merge_mounts(st, r, to, privileged);
	_exit(err < 0 ? -err & 0xff : 0);
}

/* In storage a layer is a subvolume, so removing it is fast. */
static int make_new(const struct run *r, int *ret_fd, struct err *e)
{
	auto_close int layers =
		openat(base_of(r), "layers", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char path[64];
	const char *name = path + sizeof "layers";
	int err = layers < 0 ? -errno : 0;

	name_new(r, path);
	if (err == 0 && r->pooled)
		err = btrfs_subvolume(layers, name);
	else if (err == 0 && mkdirat(layers, name, 0700) < 0)
		err = -errno;
	if (err < 0)
		return err_sys(e, -err, "cannot make %s", path);
	*ret_fd = openat(layers, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return *ret_fd < 0 ? err_sys(e, errno, "cannot open %s", path) : 0;
}

/* 1: nothing to make; the lowest layer of the run moves to the next level unchanged. */
static int make_files(const struct stack *st, const struct run *r, struct err *e)
{
	auto_close int to = FD_NONE;
	pid_t pid;
	int status = 0;

	if (make_new(r, &to, e) < 0)
		return -1;
	pid = fork();
	if (pid == 0)
		merge_all(st, r, to);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (pid < 0)
		return err_sys(e, errno, "merge layers");
	if (WIFEXITED(status) && WEXITSTATUS(status) == RAISE)
		return 1;
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		return err_sys(e, WIFEXITED(status) ? WEXITSTATUS(status) : EIO, "merge layers");
	return 0;
}

/* Rename the files first: a row without files would be worse than files without a row. */
static int put_in_place(struct catalog *c, struct stack *st, const struct run *r, struct err *e)
{
	const char *below = r->first + r->n < st->n ? st->id[r->first + r->n] : NULL;
	const struct timespec nap = { .tv_nsec = 3 * (long)NS_PER_MS };
	char from[64], to[64];
	int ok;

	name_new(r, from);
	(void)snprintf(to, sizeof to, "layers/%s", r->id);
	if (renameat(base_of(r), from, base_of(r), to) < 0)
		return err_sys(e, errno, "cannot rename %s", from);
	failpoint("flatten.renamed");
	for (int i = 0;; i++) {
		ok = catalog_replace_layers(c, st->id + r->first, r->n, below, r->id,
					    st->level[r->first] + 1, e);
		/* Freeing layers finds the files of a failed commit. */
		if (ok != 0 || i == TRIES)
			break;
		(void)nanosleep(&nap, NULL);
	}
	if (ok == 0)
		(void)voltree_remove(base_of(r), to);
	return ok;
}

/* Also checks that storage is there: a missing layer would be left out. */
static int find_roots(const struct state *s, const struct stack *st, struct run *r, int *storage,
		      struct err *e)
{
	const struct layer_roots here = { s->fd, FD_NONE };
	auto_close int fd = FD_NONE;

	if (storage_open(s, storage, e) < 0)
		return -1;
	r->roots = (struct layer_roots){ s->fd, *storage };
	fd = layer_open(&here, st->id[r->first], O_PATH | O_DIRECTORY);
	r->pooled = fd == -ENOENT && *storage >= 0;
	return 0;
}

int flatten_once(struct catalog *c, const struct state *s, const char *top, const char *sandbox,
		 struct err *e)
{
	auto_done(buf_done) struct buf recipe = BUF_INIT(LIMIT_FRAME_BODY);
	auto_close int storage = FD_NONE;
	struct stack st;
	struct run r;
	char path[64];
	int made;

	if (catalog_levels(c, top, st.id, st.level, STACK_MAX, &st.n, e) < 0)
		return -1;
	if (!find_run(&st, &r))
		return 0;
	if (catalog_recipe(c, sandbox, &recipe, e) < 0 || state_id_new(r.id, e) < 0)
		return -1;
	r.recipe = buf_str(&recipe);
	if (find_roots(s, &st, &r, &storage, e) < 0)
		return -1;
	made = make_files(&st, &r, e);
	if (made != 0) {
		name_new(&r, path);
		(void)voltree_remove(base_of(&r), path);
		if (made < 0 || catalog_raise_layer(c, st.id[r.first + r.n - 1], e) < 0)
			return -1;
		return 1;
	}
	failpoint("flatten.made");
	return put_in_place(c, &st, &r, e);
}

/*
 * Sandboxes and snapshots at the end of a stack; ids distinguish their rows. 1: one was merged, and
 * there may be more. A stack that cannot be merged does not stop others.
 */
static int each_top(struct catalog *c, const struct state *s, struct err *e)
{
	auto_free char(*ids)[ID_SIZE] = NULL;
	size_t n = 0;
	int r = 0, failed = 0;

	if (catalog_tops(c, &ids, &n, e) < 0)
		return -1;
	for (size_t i = 0; i + 1 < n && r <= 0; i += 2) {
		struct err one;

		r = flatten_once(c, s, ids[i], ids[i + 1], &one);
		if (r < 0 && !failed)
			*e = one;
		failed |= r < 0;
	}
	return r > 0 ? 1 : failed ? -1 : 0;
}

int flatten_all(struct catalog *c, const struct state *s, struct err *e)
{
	int r;

	do {
		struct err ignored;

		r = each_top(c, s, e);
		if (layers_free(c, s, NULL, NULL, r < 0 ? &ignored : e) < 0)
			return -1;
	} while (r > 0);
	return r;
}
