/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The base layer of the template `host`, at STATE/templates/host/v2-KEY/root.
 *
 * KEY is a hash of what the layer was made from (times of the host's main files, the links
 * at its top, who built it), so a layer never changes: a host that changed gets a new one.
 * A layer is built under another name and renamed when it is complete and on disk; so what
 * has its name is whole, and a crash leaves only a `.new-` directory that a later builder
 * removes. A lock keeps two from building the same. Sandboxes and snapshots use old layers as
 * long as they live: cay gc removes those that nothing is made of any more.
 *
 * Beside root lie left-out: which files of the host are not in the layer, and why; and, where
 * root built it, mask/NAME for the directory /NAME of the host: see host_mask.h.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"

enum { HOST_TOPS = 6, HOST_LINK_SIZE = 256 };

enum host_top_kind { HOST_TOP_ABSENT, HOST_TOP_LINK, HOST_TOP_DIR };

/* /bin, /sbin, /lib…: links into /usr on most hosts, directories on others. */
struct host_top {
	const char *name; /* without slash */
	enum host_top_kind kind;
	char target[HOST_LINK_SIZE]; /* of a link */
};

struct host_root {
	struct host_top top[HOST_TOPS];
};

int host_root_scan(struct host_root *ret, struct err *e);

/* Path of the layer for the host as it is now; built where it is not there. Caller frees. */
int host_layer_get(const char *state_dir, const struct host_root *root, char **ret_path,
		   struct err *e);
/* Remove what builders have left that died some minutes ago or longer. 0 or -errno. */
int host_layer_sweep(const char *state_dir);
/* Remove all layers but the newest, and those in use, by name. How many, or -errno. */
int host_layer_prune(const char *state_dir, bool (*in_use)(void *ctx, const char *name), void *ctx);
