/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Real overlays: a few layers of random changes, viewed through overlayfs unchanged, and with some
 * or all of them merged into one. Both views must be equal.
 */
#include "sys/files/layercopy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>

#include "base/buf.h"
#include "base/io.h"
#include "t.h"
#include "t_ns.h"

enum { LAYERS = 5, STEPS = 60, NAMES = 7 };

static unsigned seed;
static bool privileged;

static const char *const xattrs[] = { "user.x", "user.overlay.opaque", "user.overlay.whiteout",
				      "user.overlay.origin" };

static unsigned rnd(unsigned n)
{
	seed = seed * 1103515245u + 12345u;
	return (seed >> 16) % n;
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0644);

	if (fd < 0)
		return;
	CHECK(io_write_all(fd, text, strlen(text)) == 0 && close(fd) == 0);
}

static void random_path(char out[64])
{
	int parts = 1 + (int)rnd(3);

	out[0] = '\0';
	for (int i = 0; i < parts; i++)
		(void)snprintf(out + strlen(out), 64 - strlen(out), "%s%c", i ? "/" : "",
			       'a' + (int)rnd(NAMES));
}

/* Most steps fail, because the names are random. */
static void tried(int r)
{
	(void)r;
}

static void random_step(int i)
{
	struct timespec t[2] = { { .tv_sec = 1000000 + i },
				 { .tv_sec = 2000000 + i, .tv_nsec = 7 } };
	char a[64], b[64], text[32];

	random_path(a);
	random_path(b);
	(void)snprintf(text, sizeof text, "%u", rnd(100000));
	switch (rnd(12)) {
	case 0:
	case 1:
		put(a, text);
		break;
	case 2:
	case 3:
		(void)mkdir(a, 0700 + rnd(64));
		break;
	case 4:
		(void)unlink(a);
		break;
	case 5:
		(void)rmdir(a);
		break;
	case 6:
		(void)rename(a, b);
		break;
	case 7:
		tried(link(a, b));
		break;
	case 8:
		tried(symlink(text, a));
		break;
	case 9:
		/*
		 * Some of the other attributes belong to overlayfs: set these in the layer
		 * directly.
		 */
		(void)setxattr(a, xattrs[rnd(ARRAY_LEN(xattrs))], rnd(2) ? "y" : text, 1, 0);
		break;
	case 10:
		(void)utimensat(AT_FDCWD, a, t, AT_SYMLINK_NOFOLLOW);
		break;
	default:
		(void)mkfifo(a, 0600);
		break;
	}
}

static void mount_at(const char *lower, const char *upper, const char *work)
{
	char opts[512];

	(void)snprintf(opts, sizeof opts, "lowerdir=%s%s%s%s%s,index=off%s", lower,
		       upper ? ",upperdir=" : "", upper ? upper : "", upper ? ",workdir=" : "",
		       upper ? work : "", privileged ? "" : ",userxattr");
	if (mount("overlay", "in", "overlay", 0, opts) < 0)
		t_skip("overlayfs cannot be mounted here");
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static void dump_xattrs(struct buf *out, const char *path)
{
	char value[64];

	for (size_t i = 0; i < ARRAY_LEN(xattrs); i++) {
		ssize_t n = lgetxattr(path, xattrs[i], value, sizeof value);

		if (n >= 0)
			CHECK(buf_printf(out, " %s='%.*s'", xattrs[i], (int)n, value) == 0);
	}
}

static void dump(struct buf *out, const char *path)
{
	char sub[512], text[256] = "";
	struct dirent **names = NULL;
	struct stat st;
	int n = 0, fd;

	CHECK(lstat(path, &st) == 0);
	if (S_ISREG(st.st_mode)) {
		fd = open(path, O_RDONLY | O_CLOEXEC);
		CHECK(fd >= 0 && read(fd, text, sizeof text - 1) >= 0 && close(fd) == 0);
	}
	if (S_ISLNK(st.st_mode))
		CHECK(readlink(path, text, sizeof text - 1) > 0);
	/* Not the link count: names hidden by a layer above count only before the merge. */
	CHECK(buf_printf(out, "\n%s %o %u:%u %lld.%ld '%s'", path, st.st_mode, st.st_uid, st.st_gid,
			 (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec, text) == 0);
	dump_xattrs(out, path);
	if (!S_ISDIR(st.st_mode))
		return;
	n = scandir(path, &names, NULL, by_name);
	CHECK(n >= 0);
	for (int i = 0; i < n; i++) {
		(void)snprintf(sub, sizeof sub, "%s/%s", path, names[i]->d_name);
		if (strcmp(names[i]->d_name, ".") != 0 && strcmp(names[i]->d_name, "..") != 0)
			dump(out, sub);
		free(names[i]);
	}
	free(names);
}

static char *view(const char *lower)
{
	struct buf out = BUF_INIT(1 << 20);

	mount_at(lower, NULL, NULL);
	dump(&out, "in");
	CHECK(umount("in") == 0);
	return buf_take(&out, NULL);
}

static void shows(const char *lower, const char *want)
{
	char *seen = view(lower);

	CHECK_STR(seen, want);
	free(seen);
}

static void begin(void)
{
	privileged = geteuid() == 0;
	if (!privileged)
		t_own_namespaces(0);
	else
		CHECK(unshare(CLONE_NEWNS) == 0 && mnt_make_private() == 0);
	CHECK(mount("tmpfs", "/tmp", "tmpfs", 0, NULL) == 0 && chdir("/tmp") == 0);
	umask(0);
	CHECK(mkdir("in", 0755) == 0 && mkdir("base", 0755) == 0);
	if (setxattr("base", "user.x", "", 0, 0) < 0)
		t_skip("before Linux 6.6 a tmpfs has no extended attributes for users");
	CHECK(removexattr("base", "user.x") == 0);
}

static void make_layers(void)
{
	char lower[64] = "base", upper[16], work[16];

	CHECK(chdir("base") == 0);
	for (int i = 0; i < STEPS; i++)
		random_step(i);
	CHECK(chdir("/tmp") == 0);
	for (int l = 0; l < LAYERS; l++) {
		char next[64];

		(void)snprintf(upper, sizeof upper, "l%d", l);
		(void)snprintf(work, sizeof work, "w%d", l);
		CHECK(mkdir(upper, 0755) == 0 && mkdir(work, 0755) == 0);
		mount_at(lower, upper, work);
		CHECK(chdir("in") == 0);
		for (int i = 0; i < STEPS; i++)
			random_step(l * 1000 + i);
		CHECK(chdir("/tmp") == 0 && umount("in") == 0);
		(void)snprintf(next, sizeof next, "l%d:%.40s", l, lower);
		memcpy(lower, next, sizeof lower);
	}
}

/* Merges layers first..last, topmost last, into `name`. */
static void merge(int first, int last, const char *name)
{
	int fds[LAYERS + 1], n = 0, m, cwd = open(".", O_PATH | O_CLOEXEC);
	char path[16];

	for (int l = last; l >= first; l--) {
		(void)snprintf(path, sizeof path, "l%d", l);
		fds[n] = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		CHECK(fds[n++] >= 0);
	}
	for (m = n; m <= last + 1; m++) {
		(void)snprintf(path, sizeof path, "l%d", last - m);
		fds[m] = open(last == m - 1 ? "base" : path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		CHECK(fds[m] >= 0);
	}
	CHECK(layercopy(fds, n, m, cwd, name, privileged) == 0);
	for (int i = 0; i < m; i++)
		CHECK(close(fds[i]) == 0);
	CHECK(close(cwd) == 0);
}

static void merged_layers_show_the_same_files(void)
{
	const char *given = getenv("CAY_SEED");
	char *as_is;

	begin();
	seed = given ? (unsigned)strtoul(given, NULL, 10)
		     : (unsigned)time(NULL) ^ (unsigned)getpid() << 8;
	printf("# seed %u\n", seed);
	make_layers();
	as_is = view("l4:l3:l2:l1:l0:base");
	merge(0, 4, "all");
	shows("all:base", as_is);
	merge(1, 3, "some");
	shows("l4:some:l0:base", as_is);
	merge(3, 4, "top");
	shows("top:l2:l1:l0:base", as_is);
	merge(2, 2, "one");
	shows("l4:l3:one:l1:l0:base", as_is);
	free(as_is);
}

/* Random changes rarely cover this: each way in which a name of a layer hides lower names. */
static void hidden_files_stay_hidden(void)
{
	char *as_is;

	begin();
	CHECK(mkdir("base/anew", 0755) == 0 && mkdir("base/gone", 0755) == 0);
	CHECK(mkdir("base/file", 0755) == 0 && mkdir("base/kept", 0755) == 0);
	put("base/anew/low", "low");
	put("base/gone/low", "low");
	put("base/file/low", "low");
	put("base/kept/low", "low");
	CHECK(mkdir("l0", 0755) == 0 && mkdir("w0", 0755) == 0 && mkdir("l1", 0755) == 0);
	CHECK(mkdir("w1", 0755) == 0);
	mount_at("base", "l0", "w0");
	CHECK(unlink("in/anew/low") == 0 && rmdir("in/anew") == 0 && mkdir("in/anew", 0700) == 0);
	put("in/anew/mid", "mid");
	CHECK(unlink("in/gone/low") == 0 && rmdir("in/gone") == 0);
	CHECK(unlink("in/file/low") == 0 && rmdir("in/file") == 0);
	put("in/file", "a file");
	put("in/kept/mid", "mid");
	CHECK(mkdir("in/only", 0755) == 0);
	put("in/only/mid", "mid");
	CHECK(umount("in") == 0);
	mount_at("l0:base", "l1", "w1");
	put("in/anew/high", "high");
	CHECK(unlink("in/only/mid") == 0);
	CHECK(unlink("in/kept/low") == 0 && unlink("in/file") == 0 && mkdir("in/file", 0755) == 0);
	put("in/file/high", "high");
	CHECK(umount("in") == 0);
	as_is = view("l1:l0:base");
	CHECK(strstr(as_is, "/low") == NULL && strstr(as_is, "in/anew/mid") != NULL);
	merge(0, 1, "all");
	shows("all:base", as_is);
	/* With nothing left to hide, some kernels would list the whiteout. */
	CHECK(access("all/only", F_OK) == 0 && access("all/only/mid", F_OK) < 0);
	CHECK(access("all/gone", F_OK) == 0);
	merge(0, 0, "low");
	shows("l1:low:base", as_is);
	merge(1, 1, "high");
	shows("high:l0:base", as_is);
	free(as_is);
}

static void holes_and_links_are_kept(void)
{
	struct stat a, b;
	int fd, cwd;

	begin();
	CHECK(mkdir("l0", 0755) == 0);
	fd = open("l0/sparse", O_RDWR | O_CREAT | O_CLOEXEC, 0640);
	CHECK(fd >= 0 && ftruncate(fd, 64 << 20) == 0 && pwrite(fd, "x", 1, 32 << 20) == 1);
	CHECK(close(fd) == 0 && link("l0/sparse", "l0/twin") == 0);
	cwd = open(".", O_PATH | O_CLOEXEC);
	fd = open("l0", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(layercopy(&fd, 1, 1, cwd, "copy", privileged) == 0);
	CHECK(stat("copy/sparse", &a) == 0 && stat("copy/twin", &b) == 0);
	CHECK(a.st_ino == b.st_ino && a.st_nlink == 2 && a.st_size == 64 << 20);
	CHECK(a.st_blocks < 1024 && (a.st_mode & 07777) == 0640);
	CHECK(layercopy(&fd, 1, 1, cwd, "copy", privileged) == -EEXIST);
	CHECK(layercopy(&fd, 0, 1, cwd, "none", privileged) == -EINVAL);
	CHECK(close(fd) == 0 && close(cwd) == 0);
}

int main(void)
{
	struct t_case c[] = {
		T(merged_layers_show_the_same_files),
		T(hidden_files_stay_hidden),
		T(holes_and_links_are_kept),
	};

	return t_run(c, sizeof c / sizeof c[0]);
}
