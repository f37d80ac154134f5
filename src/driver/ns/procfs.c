/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/ns/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sys/ns/mnt.h"
#include "sys/process/raw.h"

enum {
	HARMLESS = RAW_ATTR_NOSUID | RAW_ATTR_NODEV | RAW_ATTR_NOEXEC,
	COVER = RAW_ATTR_RDONLY | HARMLESS,
};

static void close_dir(DIR *d)
{
	closedir(d);
}
DEFINE_AUTO_PTR(DIR, close_dir)

/*
 * Programs need these: ps, top, htop, free, uptime, lscpu, nproc, node, the JVM, psutil, gdb.
 * cpuinfo, meminfo, stat, uptime and loadavg describe the machine, but programs fail without them.
 * sysvipc belongs to the IPC namespace. mounts and net are links into self.
 */
bool procfs_shows(const char *name)
{
	static const char *const shown[] = {
		"cpuinfo", "filesystems", "loadavg", "meminfo", "mounts",      "net",	  "self",
		"stat",	   "sys",	  "sysvipc", "uptime",	"thread-self", "version",
	};

	if (name[strspn(name, "0123456789")] == '\0')
		return true; /* a process */
	for (size_t i = 0; i < ARRAY_LEN(shown); i++)
		if (strcmp(name, shown[i]) == 0)
			return true;
	return false;
}

/* A link shows its target inside, and nothing can be mounted on it. */
bool procfs_covers(int dir_fd, const struct dirent *de, bool *ret_is_dir)
{
	unsigned char type = de->d_type;
	struct stat st;

	if (strcmp(de->d_name, ".") == 0 || strcmp(de->d_name, "..") == 0 ||
	    procfs_shows(de->d_name))
		return false;
	if (type == DT_UNKNOWN) {
		if (fstatat(dir_fd, de->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return errno != ENOENT;
		type = (unsigned char)IFTODT(st.st_mode);
	}
	*ret_is_dir = type == DT_DIR;
	return type != DT_LNK;
}

struct fixed_mount procfs_cover(const char *path, bool is_dir)
{
	return (struct fixed_mount){
		.path = path, .type = "tmpfs", .root = is_dir ? "/" : PROCFS_EMPTY, .attrs = COVER
	};
}

static int cannot_cover(struct tree *t, const char *name, int r)
{
	(void)snprintf(t->what, sizeof t->what, "cover /proc/%.200s", name);
	return r;
}

/* A bind of the empty file, attached on the stage, because mnt_cover() needs an attached mount. */
static int new_empty_file(struct tree *t)
{
	auto_close int file = openat(t->stage_fd, &PROCFS_EMPTY[1],
				     O_CREAT | O_EXCL | O_RDONLY | O_CLOEXEC, 0444);
	auto_close int bind = FD_NONE;
	int r;

	if (file < 0 || fchmod(file, 0444) < 0)
		return -errno;
	bind = mnt_bind(file, COVER, 0, FD_NONE);
	r = bind < 0 ? bind : mnt_attach(bind, file);
	return r < 0 ? r : TAKE_FD(bind);
}

/* The working directory is /proc. */
static int cover_entries(struct tree *t)
{
	auto_close int empty = new_empty_file(t);
	auto_done(close_dir) DIR *d = opendir(".");
	struct dirent *de;

	if (empty < 0)
		return cannot_cover(t, "", empty);
	while (d && (errno = 0, de = readdir(d))) {
		bool is_dir = false;
		int r;

		if (!procfs_covers(dirfd(d), de, &is_dir))
			continue;
		r = mnt_cover(is_dir ? t->void_fd : empty, de->d_name);
		if (r < 0 && r != -ENOENT)
			return cannot_cover(t, de->d_name, r);
	}
	return errno ? cannot_cover(t, "", -errno) : 0;
}

/* An empty directory, which covers directories of /proc. */
static int make_void(struct tree *t)
{
	static const struct mnt_opt small[] = { { "size", "4k" },
						{ "mode", "0555" },
						{ NULL, NULL } };

	t->void_fd = mnt_new("tmpfs", small, COVER);
	return tree_put(t, t->void_fd, "void");
}

static int cover_knobs(struct tree *t)
{
	auto_close int knobs = knobs_new(t, t->knobs_fd);
	int r = knobs < 0 ? knobs : mnt_attach_at(knobs, t->proc_fd, "sys");

	return r < 0 ? r : knobs_bind(t);
}

int tree_proc(struct tree *t)
{
	int r;

	(void)snprintf(t->what, sizeof t->what, "mount /proc");
	t->proc_fd = mnt_new("proc", NULL, HARMLESS);
	r = tree_put(t, t->proc_fd, "proc");
	if (r == 0)
		r = make_void(t);
	if (r < 0)
		return r;
	t->knobs_fd = openat(t->proc_fd, "sys", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (t->knobs_fd < 0 || fchdir(t->proc_fd) < 0)
		return -errno;
	r = cover_entries(t);
	return r < 0 ? r : cover_knobs(t);
}
