/* SPDX-License-Identifier: Apache-2.0 */
/* cay-warden, of which the next generation of a sandbox has a /sys that can be written. */
#include <string.h>

#include "sys/ns/mnt.h"

int __real_mnt_copy_at(int dir_fd, const char *name);
int __wrap_mnt_copy_at(int dir_fd, const char *name);

int __wrap_mnt_copy_at(int dir_fd, const char *name)
{
	if (strcmp(name, "sys") == 0)
		return mnt_new("tmpfs", NULL, 0);
	return __real_mnt_copy_at(dir_fd, name);
}
