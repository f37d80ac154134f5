/* SPDX-License-Identifier: Apache-2.0 */
/* For tests that mount or need capabilities: namespaces of the test's own. */
#pragma once

#include <fcntl.h>
#include <sched.h>

#include "sys/ns/mnt.h"
#include "sys/ns/userns.h"
#include "t.h"

/* All capabilities, over nothing but new user and mount namespaces, as the one uid `inside`. */
static inline void t_own_namespaces(uint32_t inside)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	int proc;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		t_skip("needs user namespaces");
	proc = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	CHECK(proc >= 0 && userns_map_self(proc, inside, uid, gid) == 0);
	CHECK(close(proc) == 0 && mnt_make_private() == 0);
}

static inline void t_needs_root(void)
{
	if (geteuid() != 0)
		t_skip("needs root");
}
