/* SPDX-License-Identifier: Apache-2.0 */
#include "image/host_home.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/dir.h"
#include "base/io.h"
#include "image/host_accounts.h"
#include "image/layer.h"

enum { SKEL_FILE_MAX = 64 * 1024, SKEL_ENTRIES = 64 };

#define HOME "home/user/"

static const struct layer_attr users_file = { .mode = 0644,
					      .uid = HOST_USER_UID,
					      .gid = HOST_USER_UID };

/* Without it `npm install -g` writes to /usr, which belongs to root. */
static const char npmrc[] = "prefix=${HOME}/.local\n";

/* A regular file of the layer's own etc/skel, which is filtered already. Others are left out. */
static int copy_one(int layer, int skel, const char *name, struct err *e)
{
	auto_done(buf_done) struct buf content = BUF_INIT(SKEL_FILE_MAX);
	char path[sizeof HOME + 256];
	struct stat st;

	if (fstatat(skel, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) ||
	    io_read_file(skel, name, &content) < 0)
		return 0;
	(void)snprintf(path, sizeof path, HOME "%s", name);
	return layer_file(layer, path, buf_str(&content), &users_file, e);
}

static int copy_skel(int layer, struct err *e)
{
	auto_done(dir_free) DIR *d = dir_open_at(layer, "etc/skel");
	struct dirent *de;
	int r = 0, left = SKEL_ENTRIES;

	while (d && r == 0 && left-- > 0 && (de = readdir(d)))
		if (!dir_is_dots(de->d_name))
			r = copy_one(layer, dirfd(d), de->d_name, e);
	return r;
}

int host_home_make(int layer, struct err *e)
{
	static const char *const dirs[] = { HOME ".local", HOME ".local/bin" };
	struct layer_attr attr = users_file;

	attr.mode = 0755;
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
		if (layer_dir(layer, dirs[i], &attr, e) < 0)
			return -1;
	if (copy_skel(layer, e) < 0)
		return -1;
	return faccessat(layer, HOME ".npmrc", F_OK, AT_SYMLINK_NOFOLLOW) == 0
		       ? 0
		       : layer_file(layer, HOME ".npmrc", str_of(npmrc), &users_file, e);
}
