/* SPDX-License-Identifier: Apache-2.0 */
/* The files that a call changed, as its trace has them. */
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
/* Takes path. 0 or -ENOMEM. */
int path_list_add(struct path_list *l, char *path);
/* Of a sorted list. */
bool path_list_has(const struct path_list *l, const char *path);

/* Sorted. sandbox, call: as cay trace takes them. NOT_FOUND where there is no such call. */
int call_paths_load(struct cay *c, const char *sandbox, const char *call, struct path_list *ret,
		    struct err *e);
