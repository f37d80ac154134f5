/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/limit/disk_usage.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/limits.h"

enum { NAME_BYTES = 4096 };

struct sum {
	uint64_t bytes, most;
	int depth;
};

static void add_dir(struct sum *s, int fd);

static void add_name(struct sum *s, int dirfd, const struct dirent *ent)
{
	struct stat st;
	uint64_t bytes;

	if (fstatat(dirfd, ent->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	bytes = (uint64_t)st.st_blocks * 512;
	if (st.st_nlink > 1 && !S_ISDIR(st.st_mode))
		bytes /= st.st_nlink;
	s->bytes += bytes > NAME_BYTES ? bytes : NAME_BYTES;
	if (S_ISDIR(st.st_mode))
		add_dir(s, openat(dirfd, ent->d_name,
				  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

/* Takes fd. A directory that cannot be read (rootless, closed by its owner) counts as one name. */
static void add_dir(struct sum *s, int fd)
{
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d) {
		fd_close(&fd);
		return;
	}
	if (++s->depth > LIMIT_TREE_DEPTH)
		s->bytes = UINT64_MAX; /* no sandbox can hide files below our reach */
	for (struct dirent *ent = readdir(d); ent && s->bytes <= s->most; ent = readdir(d)) {
		const char *n = ent->d_name;

		if (n[0] == '.' && (n[1] == '\0' || (n[1] == '.' && n[2] == '\0')))
			continue;
		add_name(s, dirfd(d), ent);
	}
	s->depth--;
	(void)closedir(d);
}

uint64_t disk_usage(int fd, uint64_t most)
{
	struct sum s = { .most = most };

	add_dir(&s, openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	return s.bytes;
}
