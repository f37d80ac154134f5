/* SPDX-License-Identifier: Apache-2.0 */
/* A private /dev, and the expected mounts of /dev, /proc and /sys. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "driver/ns/facts.h"
#include "driver/ns/launch.h"
#include "driver/ns/procfs.h"
#include "sys/ns/mnt.h"
#include "sys/process/raw.h"

enum { HARMLESS = RAW_ATTR_NOSUID | RAW_ATTR_NODEV | RAW_ATTR_NOEXEC };

/* Bind the host's node if we may not make one. */
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
		{ "max", "128" }, /* of the 3,072 terminals that all sandboxes share */
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

/* Message queues of the sandbox's own ipc namespace, as files. */
static int add_mqueue(int dev_fd)
{
	auto_close int fd = mnt_new("mqueue", NULL, HARMLESS);

	if (fd == -ENODEV) /* this kernel has no message queues */
		return 0;
	if (fd < 0)
		return fd;
	if (mkdirat(dev_fd, "mqueue", 01777) < 0)
		return -errno;
	return mnt_attach_at(fd, dev_fd, "mqueue");
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

/* Device numbers as the kernel fixed them. Root outside may make nodes, root inside may not. */
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
	if (r == 0)
		r = add_mqueue(dev);
	return r < 0 ? r : add_links(dev);
}

int devproc_expects(const struct cell_spec *s, struct fixed_mount out[FIXED_MOUNTS])
{
	static const char *const bound[] = { "/dev/null",   "/dev/zero",    "/dev/full",
					     "/dev/random", "/dev/urandom", "/dev/tty" };
	static const struct fixed_mount always[] = {
		{ .path = "/proc", .type = "proc", .root = "/", .attrs = HARMLESS },
		{ .path = "/sys",
		  .type = "tmpfs",
		  .root = "/",
		  .attrs = RAW_ATTR_RDONLY | HARMLESS },
		{ .path = "/dev",
		  .type = "tmpfs",
		  .root = "/",
		  .attrs = RAW_ATTR_NOSUID | RAW_ATTR_NOEXEC },
		{ .path = "/dev/pts",
		  .type = "devpts",
		  .root = "/",
		  .attrs = RAW_ATTR_NOSUID | RAW_ATTR_NOEXEC },
		{ .path = "/dev/shm",
		  .type = "tmpfs",
		  .root = "/",
		  .attrs = RAW_ATTR_NOSUID | RAW_ATTR_NODEV },
		{ .path = "/dev/mqueue",
		  .type = "mqueue",
		  .root = "/",
		  .attrs = HARMLESS,
		  .optional = true },
	};
	int n = (int)ARRAY_LEN(always);

	memcpy(out, always, sizeof always);
	n += knobs_expect(out + n);
	n += facts_expect(out + n);
	/* Root makes its own nodes; rootless, each node is a bind of the host's. */
	for (size_t i = 0; i < ARRAY_LEN(bound) && !s->rootful; i++)
		out[n++] = (struct fixed_mount){ .path = bound[i],
						 .attrs = RAW_ATTR_NOSUID | RAW_ATTR_NOEXEC };
	return n;
}
