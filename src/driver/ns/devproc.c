/* SPDX-License-Identifier: Apache-2.0 */
/* /proc with its masks, and a /dev of our own. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "driver/ns/launch.h"
#include "sys/mnt.h"
#include "sys/raw.h"

enum { HARMLESS = RAW_ATTR_NOSUID | RAW_ATTR_NODEV | RAW_ATTR_NOEXEC };

/* Below /proc; the names are paths so that whoever checks the tree can use them too. */
#define PROC "/proc/"
enum { MASK = RAW_ATTR_RDONLY | RAW_ATTR_NOSUID | RAW_ATTR_NOEXEC };

/*
 * Files that tell about the host or its kernel, and are of no use inside. The first is always
 * there.
 */
static const char *const masked_files[] = {
	PROC "cmdline",	    PROC "interrupts",	  PROC "kallsyms",	PROC "kcore",
	PROC "keys",	    PROC "key-users",	  PROC "kmsg",		PROC "kpagecount",
	PROC "kpageflags",  PROC "kpagecgroup",	  PROC "latency_stats", PROC "sched_debug",
	PROC "slabinfo",    PROC "sysrq-trigger", PROC "timer_list",	PROC "timer_stats",
	PROC "vmallocinfo", PROC "pagetypeinfo",  PROC "config.gz",	PROC "iomem",
	PROC "ioports",	    PROC "bootconfig",
};
static const char *const masked_dirs[] = { PROC "acpi", PROC "asound", PROC "scsi", PROC "driver",
					   PROC "dynamic_debug" };
static const char *const read_only[] = { PROC "bus", PROC "fs", PROC "irq", PROC "sys",
					 PROC "mtrr" };

/* The host's own null device, verified: an image could bring another. */
static int open_null(void)
{
	auto_close int fd = open("/dev/null", O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISCHR(st.st_mode) || st.st_rdev != makedev(1, 3))
		return -ENODEV;
	return TAKE_FD(fd);
}

/* A bind of src, or of the thing itself, over a name: the mount, or -errno. */
static int cover(const struct tree *t, int src_fd, const char *name, unsigned attrs)
{
	auto_close int target =
		openat(t->proc_fd, name + strlen(PROC), O_PATH | O_NOFOLLOW | O_CLOEXEC);
	auto_close int bind = FD_NONE;
	int r;

	if (target < 0)
		return -errno;
	bind = mnt_bind(src_fd < 0 ? target : src_fd, attrs, 0, FD_NONE);
	r = bind < 0 ? bind : mnt_attach(bind, target);
	return r < 0 ? r : TAKE_FD(bind);
}

static int cannot_mask(struct tree *t, const char *name, int r)
{
	(void)snprintf(t->what, sizeof t->what, "mask %s", name);
	return r;
}

/* mount_fd over every name that is there; the working directory is /proc. */
static int cover_all(struct tree *t, int mount_fd, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int r = mnt_cover(mount_fd, names[i] + strlen(PROC));

		if (r < 0 && r != -ENOENT)
			return cannot_mask(t, names[i], r);
	}
	return 0;
}

static int mask_files(struct tree *t)
{
	auto_close int null = open_null(), first = FD_NONE;

	if (null < 0) {
		(void)snprintf(t->what, sizeof t->what, "/dev/null of the host");
		return null;
	}
	first = cover(t, null, masked_files[0], MASK);
	if (first < 0)
		return cannot_mask(t, masked_files[0], first);
	return cover_all(t, first, masked_files + 1, ARRAY_LEN(masked_files) - 1);
}

static int make_read_only(struct tree *t)
{
	for (size_t i = 0; i < ARRAY_LEN(read_only); i++) {
		auto_close int fd = cover(t, FD_NONE, read_only[i], RAW_ATTR_RDONLY | HARMLESS);

		if (fd < 0 && fd != -ENOENT)
			return cannot_mask(t, read_only[i], fd);
	}
	return 0;
}

static int mask_proc(struct tree *t)
{
	static const struct mnt_opt small[] = { { "size", "4k" },
						{ "mode", "0555" },
						{ NULL, NULL } };
	int r;

	/* It becomes /sys itself; there is nothing there that a sandbox needs. */
	t->sys_fd = mnt_new("tmpfs", small, RAW_ATTR_RDONLY | HARMLESS);
	r = tree_put(t, t->sys_fd, "sys");
	if (r < 0)
		return r;
	if (fchdir(t->proc_fd) < 0)
		return -errno;
	r = mask_files(t);
	if (r == 0)
		r = cover_all(t, t->sys_fd, masked_dirs, ARRAY_LEN(masked_dirs));
	return r < 0 ? r : make_read_only(t);
}

int tree_proc(struct tree *t)
{
	int r;

	(void)snprintf(t->what, sizeof t->what, "mount /proc");
	t->proc_fd = mnt_new("proc", NULL, HARMLESS);
	r = tree_put(t, t->proc_fd, "proc");
	if (r < 0)
		return r;
	t->knobs_fd = openat(t->proc_fd, "sys", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return t->knobs_fd < 0 ? -errno : mask_proc(t);
}

/* The host's node, bound: where we may not make one. */
static int bind_node(int dev_fd, const char *name)
{
	char host[32];
	auto_close int file = openat(dev_fd, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
	auto_close int node = FD_NONE, bind = FD_NONE;
	struct stat st;

	if (file < 0)
		return -errno;
	(void)snprintf(host, sizeof host, "/dev/%s", name);
	node = open(host, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (node < 0 || fstat(node, &st) < 0)
		return -errno;
	if (!S_ISCHR(st.st_mode))
		return -ENODEV;
	bind = mnt_bind(node, RAW_ATTR_NOSUID | RAW_ATTR_NOEXEC, 0, FD_NONE);
	return bind < 0 ? bind : mnt_attach_at(bind, dev_fd, name);
}

static int add_devpts(struct tree *t, int dev_fd)
{
	const struct cell_spec *s = t->spec;
	auto_close int fd = FD_NONE;
	char uid[16], gid[16];
	struct mnt_opt opts[] = {
		{ "ptmxmode", "0666" },
		{ "mode", "0620" },
		{ "max", "128" }, /* of the 3,072 that all sandboxes have together */
		{ s->rootful ? "uid" : NULL, uid },
		{ "gid", gid },
		{ NULL, NULL },
	};

	(void)snprintf(uid, sizeof uid, "%u", s->uid_base + s->user);
	(void)snprintf(gid, sizeof gid, "%u", s->uid_base + 5); /* tty */
	fd = mnt_new("devpts", opts, RAW_ATTR_NOSUID | RAW_ATTR_NOEXEC);
	if (fd < 0)
		return fd;
	if (mkdirat(dev_fd, "pts", 0755) < 0)
		return -errno;
	return mnt_attach_at(fd, dev_fd, "pts");
}

static int add_shm(int dev_fd)
{
	static const struct mnt_opt opts[] = { { "mode", "1777" }, { NULL, NULL } };
	auto_close int shm = mnt_new("tmpfs", opts, RAW_ATTR_NOSUID | RAW_ATTR_NODEV);

	if (shm < 0)
		return shm;
	if (mkdirat(dev_fd, "shm", 01777) < 0)
		return -errno;
	return mnt_attach_at(shm, dev_fd, "shm");
}

static int add_links(int dev_fd)
{
	static const char *const links[][2] = {
		{ "/proc/self/fd", "fd" },	 { "/proc/self/fd/0", "stdin" },
		{ "/proc/self/fd/1", "stdout" }, { "/proc/self/fd/2", "stderr" },
		{ "pts/ptmx", "ptmx" },
	};

	for (size_t i = 0; i < ARRAY_LEN(links); i++)
		if (symlinkat(links[i][0], dev_fd, links[i][1]) < 0)
			return -errno;
	return 0;
}

/* Number by number as the kernel has fixed them; root outside may make nodes, root inside not. */
static const struct node {
	const char *name;
	unsigned major, minor;
} nodes[] = {
	{ "null", 1, 3 },   { "zero", 1, 5 },	 { "full", 1, 7 },
	{ "random", 1, 8 }, { "urandom", 1, 9 }, { "tty", 5, 0 },
};

static int add_node(const struct tree *t, int dev_fd, const struct node *n)
{
	dev_t dev = makedev(n->major, n->minor);

	if (!t->spec->rootful)
		return bind_node(dev_fd, n->name);
	return mknodat(dev_fd, n->name, S_IFCHR | 0666, dev) < 0 ||
			       fchmodat(dev_fd, n->name, 0666, 0) < 0
		       ? -errno
		       : 0;
}

int tree_dev(struct tree *t)
{
	static const struct mnt_opt opts[] = { { "mode", "0755" },
					       { "size", "64k" },
					       { NULL, NULL } };
	int r, dev;

	(void)snprintf(t->what, sizeof t->what, "make /dev");
	t->dev_fd = dev = mnt_new("tmpfs", opts, RAW_ATTR_NOSUID | RAW_ATTR_NOEXEC);
	r = tree_put(t, dev, "dev");
	for (size_t i = 0; i < ARRAY_LEN(nodes) && r == 0; i++) {
		r = add_node(t, dev, &nodes[i]);
		if (r < 0)
			(void)snprintf(t->what, sizeof t->what, "make /dev/%s", nodes[i].name);
	}
	if (r == 0)
		r = add_devpts(t, dev);
	if (r == 0)
		r = add_shm(dev);
	return r < 0 ? r : add_links(dev);
}

static int expect_all(struct fixed_mount *out, const char *const *names, size_t n,
		      struct fixed_mount like)
{
	for (size_t i = 0; i < n; i++) {
		out[i] = like;
		out[i].path = names[i];
	}
	return (int)n;
}

int devproc_expects(const struct cell_spec *s, struct fixed_mount out[FIXED_MOUNTS])
{
	static const char *const bound[] = { "/dev/null",   "/dev/zero",    "/dev/full",
					     "/dev/random", "/dev/urandom", "/dev/tty" };
	static const struct fixed_mount always[] = {
		{ "/proc", "proc", "/", HARMLESS, false },
		{ "/sys", "tmpfs", "/", RAW_ATTR_RDONLY | HARMLESS, false },
		{ "/dev", "tmpfs", "/", RAW_ATTR_NOSUID | RAW_ATTR_NOEXEC, false },
		{ "/dev/pts", "devpts", "/", RAW_ATTR_NOSUID | RAW_ATTR_NOEXEC, false },
		{ "/dev/shm", "tmpfs", "/", RAW_ATTR_NOSUID | RAW_ATTR_NODEV, false },
	};
	const struct fixed_mount file = { .root = "/null", .attrs = MASK, .optional = true },
				 dir = { .type = "tmpfs",
					 .root = "/",
					 .attrs = RAW_ATTR_RDONLY | HARMLESS,
					 .optional = true },
				 ro = { .type = "proc",
					.attrs = RAW_ATTR_RDONLY | HARMLESS,
					.optional = true },
				 node = { .attrs = RAW_ATTR_NOSUID | RAW_ATTR_NOEXEC,
					  .optional = s->rootful };
	int n = (int)ARRAY_LEN(always);

	memcpy(out, always, sizeof always);
	n += expect_all(out + n, masked_files, ARRAY_LEN(masked_files), file);
	n += expect_all(out + n, masked_dirs, ARRAY_LEN(masked_dirs), dir);
	n += expect_all(out + n, read_only, ARRAY_LEN(read_only), ro);
	/* As root they are nodes of our own, without a mount each. */
	return s->rootful ? n : n + expect_all(out + n, bound, ARRAY_LEN(bound), node);
}
