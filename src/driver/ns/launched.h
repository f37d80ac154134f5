/* SPDX-License-Identifier: Apache-2.0 */
/* State of a launch, kept until the sandbox is fully verified: its spec, and facts to compare. */
#pragma once

#include "driver/ns/launch.h"
#include "driver/ns/ns.h"
#include "driver/ns/posture.h"

struct launched {
	struct launch l;
	struct posture posture;
	unsigned looks; /* bits of the finished parts of verify */
};

struct launched *launched_new(const struct cell_spec *s);
void launched_free(struct launched *b);
/* Once the child runs: collect our own facts, and open the child's /proc files. */
int launched_watch(struct launched *b, const struct ns_cell *c, struct err *e);
/* The child has reported: release what only the child needed. */
void launched_reported(struct launched *b, int root_fd);
