/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The base layer of the template `host`, at STATE/templates/host/v3-KEY/root.
 *
 * KEY is a hash of the layer's sources: times of the host's main files, the links at its top, and
 * who built it. So a layer never changes; if the host changes, we build a new layer. A builder uses
 * a temporary name and renames the layer when it is complete and on disk. So a named layer is
 * complete, and a crash leaves only a `.new-` directory, which a later builder removes. A lock
 * keeps two builders from building the same layer. Sandboxes and snapshots use old layers as long
 * as they live; cay gc removes unused ones.
 *
 * Beside root are left-out (which host files are not in the layer, and why) and, if root built it,
 * mask/NAME for the host's directory /NAME: see host_mask.h.
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
	char target[HOST_LINK_SIZE]; /* target of a link */
};

struct host_root {
	struct host_top top[HOST_TOPS];
};

int host_root_scan(struct host_root *ret, struct err *e);

/* Path of the layer for the host's current state; builds it if missing. The caller frees it. */
int host_layer_get(const char *state_dir, const struct host_root *root, char **ret_path,
		   struct err *e);
/* Remove what builders left that died some minutes ago or earlier. 0 or -errno. */
int host_layer_sweep(const char *state_dir);
/* Remove all layers except the newest and those in use, by name. Returns the number, or -errno. */
int host_layer_prune(const char *state_dir, bool (*in_use)(void *ctx, const char *name), void *ctx);
