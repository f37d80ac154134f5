/* SPDX-License-Identifier: Apache-2.0 */
#include "image/layer.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"

/* In a user namespace root may lack some ids: the entry then stays with the caller. */
static bool chown_failed(int r)
{
	return r < 0 && errno != EPERM && errno != EINVAL;
}

int layer_dir(int root, const char *path, const struct layer_attr *a, struct err *e)
{
	if (mkdirat(root, path, 0700) < 0)
		return err_sys(e, errno, "cannot make '%s' in the layer", path);
	if (geteuid() == 0 &&
	    chown_failed(fchownat(root, path, a->uid, a->gid, AT_SYMLINK_NOFOLLOW)))
		return err_sys(e, errno, "cannot give away '%s' in the layer", path);
	if (fchmodat(root, path, a->mode, 0) < 0)
		return err_sys(e, errno, "cannot set the mode of '%s' in the layer", path);
	return 0;
}

int layer_file(int root, const char *path, struct str content, const struct layer_attr *a,
	       struct err *e)
{
	auto_close int fd =
		openat(root, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r;

	if (fd < 0)
		return err_sys(e, errno, "cannot make '%s' in the layer", path);
	r = io_write_all(fd, content.p, content.n);
	if (r < 0)
		return err_sys(e, -r, "cannot write '%s' in the layer", path);
	if (geteuid() == 0 && chown_failed(fchown(fd, a->uid, a->gid)))
		return err_sys(e, errno, "cannot give away '%s' in the layer", path);
	if (fchmod(fd, a->mode) < 0)
		return err_sys(e, errno, "cannot set the mode of '%s' in the layer", path);
	if (a->mtime && futimens(fd, (struct timespec[]){ *a->mtime, *a->mtime }) < 0)
		return err_sys(e, errno, "cannot set the time of '%s' in the layer", path);
	return 0;
}

int layer_link(int root, const char *path, const char *target, struct err *e)
{
	if (symlinkat(target, root, path) < 0)
		return err_sys(e, errno, "cannot make the link '%s' in the layer", path);
	return 0;
}
