/* SPDX-License-Identifier: Apache-2.0 */
/* /etc of the base layer: the host's, without what host_filter.h leaves out, plus our own files. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

enum {
	HOST_ETC_FILE_MAX = 1 << 20,   /* bytes of one file */
	HOST_ETC_TOTAL_MAX = 32 << 20, /* bytes of all */
	HOST_ETC_ENTRIES_MAX = 20000,
};

/* layer: root of the layer, with an empty etc. report: see struct host_copy. */
int host_etc_make(int layer, struct buf *report, struct err *e);
