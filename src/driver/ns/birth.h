/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is kept of a launch until the sandbox has been looked at whole: what it was asked to be,
 * and what it is compared with.
 */
#pragma once

#include "driver/ns/launch.h"
#include "driver/ns/posture.h"

struct birth {
	struct launch l;
	struct posture posture;
	unsigned looks; /* that are done, by bits */
};

struct birth *birth_new(const struct cell_spec *s);
void birth_free(struct birth *b);
/* Once the child lives: look up what is ours, and where its own will be found. */
int birth_watch(struct birth *b, const struct cell *c, struct err *e);
/* The child has reported: what only it needed is let go of. */
void birth_reported(struct birth *b, int root_fd);
/* driver.h */
int look(struct cell *c, enum cell_look what, pid_t command, struct err *e);
