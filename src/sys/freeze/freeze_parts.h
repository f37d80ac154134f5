/* SPDX-License-Identifier: Apache-2.0 */
/* Shared between the files of freeze/. */
#pragma once

#include <pthread.h>

#include "base/limits.h"
#include "sys/files/twins.h"
#include "sys/freeze/freeze.h"

/* One copy, shared by its workers. */
struct freezing {
	const struct freeze *f;
	int to_fd;
	pthread_mutex_t lock; /* protects everything below */
	pthread_cond_t more;
	struct frozen_index *index;
	struct freeze_result *ret;
	char **dirs; /* still to be copied, owned */
	size_t ndirs, room;
	int busy; /* workers that have a directory */
	int err;
	/* Held while a file with several names is copied, so that each is copied once. */
	pthread_mutex_t twins_lock;
	struct twins twins;
};

struct freeze_worker {
	struct freezing *z;
	char dir[LIMIT_PATH]; /* the directory being copied, with a '/' at the end; "" for the first
			       */
	char *chunk;
	bool clone; /* as for filecopy_data() */
	struct freeze_result did;
};

/* Reads the key of a name, and whether it is a mount point. 0 or -errno. */
int freeze_look(int dir, const char *name, struct frozen_key *ret, bool *ret_mount);
/*
 * False while a change right now might leave the ctime unchanged. Waiting *ret_nap_ns may then
 * help.
 */
bool freeze_is_settled(const struct frozen_key *key, uint64_t *ret_nap_ns);
/* Sets owner, extended attributes, mode and times of a copy; fds as for attrs_copy(). */
int freeze_like(const struct freeze *f, int from, int to, const struct frozen_key *key);
/*
 * Copies anything but a directory. *key describes what was copied, with nlink 0 if it must not be
 * trusted. 1; 0: there is nothing to copy; -errno.
 */
int freeze_entry(struct freeze_worker *w, int from, int to, const char *name,
		 struct frozen_key *key);
void freeze_note(struct freeze_names *n, const char *dir, const char *name, int err);
