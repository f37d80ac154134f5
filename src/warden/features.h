/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a request needs of the driver (HAS_*). The warden refuses what is missing by its name,
 * before it makes anything.
 */
#pragma once

#include "warden/warden.h"

/* feature: one bit. Fails where the driver's mechanism has no such thing. */
int features_need(const struct warden *w, unsigned feature, struct err *e);
/* All that the parsed build request needs. */
int features_check_build(const struct warden *w, struct err *e);

/* What only a descriptor can carry to init. */
enum { HAS_BY_FDS = HAS_EXEC_EVENTS | HAS_GROUPS | HAS_SPARE };

/* Without what cannot be where no descriptors pass. */
static inline unsigned features_of(unsigned has)
{
	return has & HAS_FDS ? has : has & ~(unsigned)HAS_BY_FDS;
}

/* Whether the cell, if there is one, has it on this host. */
static inline bool warden_has(const struct warden *w, unsigned feature)
{
	return w->cell && features_of(w->cell->has) & feature;
}

/* 0 where there is none, or none to be seen. */
static inline pid_t warden_init_pid(const struct warden *w)
{
	return w->cell ? w->cell->pid : 0;
}

static inline int warden_root(const struct warden *w)
{
	return w->cell ? w->driver->root(w->cell) : FD_NONE;
}
