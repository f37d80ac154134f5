/* SPDX-License-Identifier: Apache-2.0 */
/* The files that a call changed, according to its trace. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "ops/cay.h"

struct path_list {
	char **v; /* owned */
	size_t n, cap;
};

void path_list_done(struct path_list *l);
DEFINE_AUTO(struct path_list, path_list_done)
/* Takes ownership of path. Returns 0 or -ENOMEM. */
int path_list_add(struct path_list *l, char *path);
/* The list must be sorted. */
bool path_list_has(const struct path_list *l, const char *path);

/*
 * Fills a sorted list. sandbox, call: as cay trace takes them. NOT_FOUND if there is no such call.
 */
int call_paths_load(struct cay *c, const char *sandbox, const char *call, struct path_list *ret,
		    struct err *e);
