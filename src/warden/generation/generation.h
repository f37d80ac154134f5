/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a change of generation; generation.c has the whole. */
#pragma once

#include "warden/warden.h"

struct turn {
	struct warden *w;
	struct client *client; /* NULL: gone */
	uint32_t chan;
	char seal[LAYER_ID]; /* empty: the uppers are dropped */
	char layers[CELL_LAYERS][LAYER_ID];
	int nlayers;
	bool force;
	bool alone; /* refused while calls run */
	char snapshot[64], name[64];
	/* How far it came. */
	bool looked; /* nobody but init is there, and `same` is right: nothing has run since */
	bool made;   /* the next generation is in `other` */
	bool same[CELL_MOUNTS]; /* neither the upper nor what lies below changes */
	bool moved[CELL_MOUNTS];
	bool volume_moved;		 /* in the pool: `upper` as a whole */
	char was[CELL_LAYERS][LAYER_ID]; /* layers of the last generation */
	int nwas;
	struct generation *other; /* the next generation; once init was told to enter the last */
	struct loop_timer retry;
	uint64_t start_ns, until_ns, took_us;
	unsigned generation; /* the last one */
	bool ordered;	     /* init has been told to enter */
	/* generation_copy.c */
	pid_t copy_pid; /* 0: nothing is being copied */
	int copy_pidfd;
	struct loop_io copy_io;
	uint64_t frozen_ns; /* since when calls stand still; 0: they run */
	bool flushing;	    /* they run, and what they wrote is being written back */
};

/* generation_files.c: which mounts stay as they are; true where all do. */
bool turn_find_same(const struct warden *w, struct turn *t);
/* Uppers to their new place and back. */
int turn_move_away(struct warden *w, struct turn *t);
int turn_move_back(struct warden *w, struct turn *t);
/* Look at the uppers in `next` before anybody can use them; make them the uppers. */
int turn_remember_fresh(struct warden *w);
int turn_rename_next(struct warden *w);
/* Remove what is left of the last generation, in a child. */
void turn_drop_last(struct warden *w, struct turn *t);
void turn_end_sweepers(struct warden *w);

/* generation_volume.c: the same in the pool */
int volume_move_away(struct warden *w, struct turn *t);
int volume_move_back(struct warden *w, struct turn *t);
int volume_rename_next(struct warden *w);
/* A layer `name` that is a copy of the uppers as they are now. */
int volume_copy(const struct warden *w, const char *name);
/* What lies in such a layer beside what was changed. */
int volume_tidy_copy(const struct warden *w, const char *name);

/* generation_copy.c: seal a copy while calls stand still. The turn ends later. */
int turn_copy(struct warden *w, struct err *e);
void turn_copy_end(struct warden *w);

/* generation.c: tell the client, and forget the turn. */
enum turn_result { TURN_UNCHANGED, TURN_SEALED, TURN_COPIED };
void turn_answer(struct turn *t, enum turn_result result, uint64_t freeze_us);
void turn_fail(struct warden *w, const struct err *why);
void generation_done(struct warden *w);
