/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/catalog_hold.h"

#include <fcntl.h>

enum { DEAD_MANS_SWITCH = 128 };

void catalog_hold(struct warden *w)
{
	struct flock switch_byte = {
		.l_type = F_RDLCK,
		.l_whence = SEEK_SET,
		.l_start = DEAD_MANS_SWITCH,
		.l_len = 1,
	};

	if (w->catalog_fd >= 0)
		return;
	w->catalog_fd = openat(w->roots.state_fd, "catalog.db-shm",
			       O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	/* Somebody is making the index just now. */
	if (w->catalog_fd >= 0 && fcntl(w->catalog_fd, F_SETLK, &switch_byte) < 0)
		fd_close(&w->catalog_fd);
}
