/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the reader and writer of tar streams; internal to them. */
#pragma once

#include "wire/tar.h"

#define TAR_XATTR_KEY "SCHILY.xattr."

/* A header block (POSIX.1-2017, pax, "ustar Interchange Format"). */
struct tar_header {
	unsigned char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type[1];
	unsigned char link[100], magic[6], version[2], uname[32], gname[32], major[8], minor[8];
	unsigned char prefix[155], rest[12];
};
_Static_assert(sizeof(struct tar_header) == TAR_BLOCK, "a header is one block");
