/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which driver features (HAS_*) a request needs. The warden refuses a request that needs a missing
 * feature, and names the feature, before it makes anything.
 */
#pragma once

#include "warden/warden.h"

/* feature: one bit. Fails if the driver's mechanism lacks it. */
int features_need(const struct warden *w, unsigned feature, struct err *e);
/* Check everything that the parsed build request needs. */
int features_check_build(const struct warden *w, struct err *e);

/* Features that need descriptors to pass to init. */
enum { HAS_BY_FDS = HAS_EXEC_EVENTS | HAS_GROUPS | HAS_SPARE };

/* Remove the features that need descriptors if no descriptors pass. */
static inline unsigned features_of(unsigned has)
{
	return has & HAS_FDS ? has : has & ~(unsigned)HAS_BY_FDS;
}

/* True if the cell exists and has the feature on this host. */
static inline bool warden_has(const struct warden *w, unsigned feature)
{
	return w->cell && features_of(w->cell->has) & feature;
}

/* 0: there is no init, or its pid is not visible. */
static inline pid_t warden_init_pid(const struct warden *w)
{
	return w->cell ? w->cell->pid : 0;
}

static inline int warden_root(const struct warden *w)
{
	return w->cell ? w->driver->root(w->cell) : FD_NONE;
}
