/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The accounts inside: the host's system accounts (uid below 1000, and nobody), so that files and
 * package scripts find their owners, and `user`. People's accounts and all password hashes stay
 * outside. Pure: text in, text out. Drops malformed lines.
 */
#pragma once

#include <sys/types.h>

#include "base/buf.h"

enum { HOST_USER_UID = 1000, HOST_ACCOUNTS_MAX = 1 << 20 };

struct host_accounts {
	struct buf passwd, group, shadow, gshadow;
	gid_t shadow_gid; /* gid of the group that may read shadow; 0 if there is none */
};

/* shell: the login shell of `user`. */
int host_accounts_make(struct str passwd, struct str group, const char *shell,
		       struct host_accounts *ret, struct err *e);
void host_accounts_done(struct host_accounts *a);
DEFINE_AUTO(struct host_accounts, host_accounts_done)
