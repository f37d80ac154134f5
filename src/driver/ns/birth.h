/* SPDX-License-Identifier: Apache-2.0 */
/* State of a launch, kept until the sandbox is fully verified: its spec, and facts to compare. */
#pragma once

#include "driver/ns/launch.h"
#include "driver/ns/ns.h"
#include "driver/ns/posture.h"

struct birth {
	struct launch l;
	struct posture posture;
	unsigned looks; /* bits of the finished parts of verify */
};

struct birth *birth_new(const struct cell_spec *s);
void birth_free(struct birth *b);
/* Once the child runs: collect our own facts, and open the child's /proc files. */
int birth_watch(struct birth *b, const struct ns_cell *c, struct err *e);
/* The child has reported: release what only the child needed. */
void birth_reported(struct birth *b, int root_fd);
