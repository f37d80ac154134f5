/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a switch to the next generation; generation.c describes the whole. */
#pragma once

#include "warden/warden.h"

struct generation_switch {
	struct warden *w;
	struct client *client; /* NULL: it has disconnected */
	uint32_t chan;
	char seal[LAYER_ID]; /* empty: drop the uppers */
	char layers[CELL_LAYERS][LAYER_ID];
	int nlayers;
	bool force;
	bool alone; /* refuse while calls run */
	char snapshot[64], name[64];
	/* Progress of the switch. */
	bool looked;		/* only init runs, and `same` is correct: nothing has run since */
	bool made;		/* the next generation is in `other` */
	bool same[CELL_MOUNTS]; /* mounts whose upper and lower layers stay the same */
	bool moved[CELL_MOUNTS];
	bool volume_moved;		 /* in storage: the subvolume `upper` was moved */
	char was[CELL_LAYERS][LAYER_ID]; /* layers of the last generation */
	int nwas;
	struct generation *other; /* the next generation; after the order to enter, the last one */
	struct loop_timer retry;
	uint64_t start_ns, until_ns, took_us;
	unsigned generation; /* number of the last generation */
	bool ordered;	     /* the warden has ordered init to enter */
	/* generation_copy.c */
	pid_t copy_pid; /* 0: no copy in progress */
	int copy_pidfd;
	struct loop_io copy_io;
	uint64_t frozen_ns; /* when the calls were frozen; 0: they run */
	bool flushing;	    /* calls run while the kernel writes back their data */
};

/* generation_files.c: find the mounts that stay the same; true if all do. */
bool switch_find_same(const struct warden *w, struct generation_switch *t);
/* Move the uppers to their new place, and back. */
int switch_move_away(struct warden *w, struct generation_switch *t);
int switch_move_back(struct warden *w, struct generation_switch *t);
/* Record the uppers in `next` before any process can use them; make them the uppers. */
int switch_remember_fresh(struct warden *w);
int switch_rename_next(struct warden *w);
/* Remove the remains of the last generation, in a child. */
void switch_drop_last(struct warden *w, struct generation_switch *t);
/* Remove a directory in disk_fd, in a child. */
void turn_remove(struct warden *w, const char *heap);
void switch_end_sweepers(struct warden *w);

/* generation_volume.c: the same in storage */
int volume_move_away(struct warden *w, struct generation_switch *t);
int volume_move_back(struct warden *w, struct generation_switch *t);
int volume_rename_next(struct warden *w);
/* Make a layer `name`: a copy of the present uppers. */
int volume_copy(const struct warden *w, const char *name);
/* Remove everything but the changes from such a layer. */
int volume_tidy_copy(const struct warden *w, const char *name);

/* generation_copy.c: seal a copy while calls are frozen. The switch ends later. */
int switch_copy(struct warden *w, struct err *e);
void switch_copy_end(struct warden *w);

/* generation.c: answer the client, and free the switch. */
enum switch_result { SWITCH_UNCHANGED, SWITCH_SEALED, SWITCH_COPIED };
void switch_answer(struct generation_switch *t, enum switch_result result, uint64_t freeze_us);
void switch_fail(struct warden *w, const struct err *why);
void generation_done(struct warden *w);
