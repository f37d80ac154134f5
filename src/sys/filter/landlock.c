/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/filter/landlock.h"

#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

enum {
	CREATE_VERSION = 1,
	RULE_PATH_BENEATH = 1,
	ABI_REFER = 2, /* renames and links between directories; refused before */
	ABI_SCOPES = 6,
	SCOPE_ABSTRACT = 1,
	SCOPE_SIGNAL = 2,
};

struct ruleset {
	uint64_t fs, net, scoped;
};

struct path_beneath {
	uint64_t allowed;
	int32_t parent_fd;
} __attribute__((packed));

/* Each ABI adds its rights above those of the previous one. */
static uint64_t rights(int abi)
{
	int n = abi >= 9 ? 17 : abi >= 5 ? 16 : abi >= 3 ? 15 : 14;

	return (1ull << n) - 1;
}

static int allow_root(int ruleset, uint64_t fs, int root_fd)
{
	struct path_beneath rule = { .allowed = fs, .parent_fd = root_fd };

	if (syscall(SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &rule, 0) < 0)
		return -errno;
	return 0;
}

int landlock_enter(const struct landlock *l)
{
	int abi = (int)syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_VERSION);
	auto_close int fd = FD_NONE;
	/*
	 * Do not restrict TCP: the network namespace is the boundary, and Landlock's control has
	 * gaps.
	 */
	struct ruleset rs = { .scoped = abi >= ABI_SCOPES ? SCOPE_ABSTRACT | SCOPE_SIGNAL : 0 };
	int r;

	if (abi < ABI_REFER)
		return abi > 0 || errno == ENOSYS || errno == EOPNOTSUPP ? 0 : -errno;
	if (l->only_scopes && !rs.scoped)
		return 0;
	rs.fs = l->only_scopes ? 0 : rights(abi);
	/* An older kernel accepts a longer structure if the new fields are zero. */
	fd = (int)syscall(SYS_landlock_create_ruleset, &rs, sizeof rs, 0);
	if (fd < 0)
		return -errno;
	r = rs.fs ? allow_root(fd, rs.fs, l->root_fd) : 0;
	if (r == 0 && rs.fs && l->queues_fd >= 0)
		r = allow_root(fd, rs.fs, l->queues_fd);
	if (r == 0 && syscall(SYS_landlock_restrict_self, fd, 0) < 0)
		r = -errno;
	return r < 0 ? r : abi;
}
