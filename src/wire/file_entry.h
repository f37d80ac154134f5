/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directory entries as CALL_LIST writes them inside a sandbox, and find(1) with FILE_ENTRY_FORMAT.
 * The text is hostile: root inside can replace find.
 */
#pragma once

#include <stdint.h>

#include "base/str.h"

#define FILE_ENTRY_FORMAT "%y\\0%Y\\0%s\\0%m\\0%M\\0%u\\0%g\\0%T@\\0%l\\0%p\\0\\0"

enum { FILE_ENTRY_FIELDS = 11 };

/* Texts are views of the input. */
struct file_entry {
	char type;   /* f, d, l, …: type of the entry itself */
	char target; /* type of a link's target; N: missing */
	uint64_t size;
	unsigned mode; /* permission bits */
	struct str permissions, owner, group;
	uint64_t mtime_ns;
	struct str link; /* target of a link */
	struct str path;
	struct str metadata; /* lines K=V; find does not tell it */
};

/* Extended attributes with this prefix are metadata of clients. */
#define FILE_ENTRY_XATTR "user.e2b."

/* Takes the next entry. 1 and *ret, 0 at the end, or -EBADMSG. */
int file_entry_next(struct str *rest, struct file_entry *ret);
/* Sorts directories before their contents, else by name. */
int file_entry_compare(struct str a, struct str b);
