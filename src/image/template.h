/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Templates: what a sandbox starts from. A template resolves to a list of mounts that the driver
 * makes, the root first.
 *
 * `host`: the host's own system, read-only below each sandbox's writes. /usr and /opt (and /bin,
 * /lib… if they are directories) are shown as they are. Everything else comes from a base layer
 * below the state directory: a copy of those files of /etc that every user of the host may read,
 * without secrets and identity, the parts of /var that package tools need, and empty directories.
 * So nothing is visible by default, and unlisted files cannot leak. Private files of the host's
 * root stay private, although root inside could bypass their permission bits (host_mask.h: those of
 * /usr and /opt).
 *
 * `dir:PATH`: any directory with a root file system.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "wire/proto.h"

enum { TEMPLATE_MOUNTS = 16, TEMPLATE_LOWERS = 4 };

struct template_mount {
	enum mount_kind kind;
	char *dest;		      /* inside */
	char *lower[TEMPLATE_LOWERS]; /* outside, topmost first */
	int nlower;
};

struct template
{
	char *name;
	struct template_mount mounts[TEMPLATE_MOUNTS];
	int nmounts;
};

/* state_dir: absolute. Builds or refreshes the base layer of `host` if needed. */
int template_resolve(const char *state_dir, const char *name, struct template *ret, struct err *e);
void template_done(struct template *t);

/*
 * Remove outdated layers of `host`, except the newest and those in use. The name is part of the
 * path, templates/host/NAME. Returns the number, or -errno.
 */
int template_host_prune(const char *state_dir, bool (*in_use)(void *ctx, const char *name),
			void *ctx);
/* Remove what builders of such a layer left that died some minutes ago or earlier. */
int template_host_sweep(const char *state_dir);
