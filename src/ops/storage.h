/* SPDX-License-Identifier: Apache-2.0 */
/* The btrfs storage for sandboxes' files: store/storage.h. All functions need root. */
#pragma once

#include "ops/cay.h"
#include "store/storage.h"

struct storage_spec {
	const char *dir; /* a new directory on an existing btrfs; NULL: in a file */
	uint64_t size;	 /* size of the file; 0: half of the free space */
};

/* *ret_made: false if storage already existed; it stays unchanged. */
int op_storage_make(struct cay *c, const struct storage_spec *spec, bool *ret_made, struct err *e);
/* Waits a few seconds for sandboxes that are ending. CONFLICT if it holds others, or layers. */
int op_storage_remove(struct cay *c, struct err *e);
/* 1: ret is filled. 0: there is no storage. -1: failure. */
int op_storage_info(struct cay *c, struct storage_info *ret, struct err *e);
