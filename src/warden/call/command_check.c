/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/call/command_check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "sys/ns/caps.h"
#include "sys/process/proc_text.h"

enum { OWN_FILTERS = 2 }; /* the list of allowed calls, and the extra filter for commands */

static int differs(struct err *e, const char *key, const char *want, struct str found)
{
	return err_set(e, ERR_FAILED,
		       "the first command is not what it must be: %.*s: expected %s, found %.*s",
		       (int)strcspn(key, ":"), key, want, found.n > 80 ? 80 : (int)found.n,
		       found.n ? found.p : "");
}

static int want_text(struct str status, const char *key, const char *want, struct err *e)
{
	struct str found = proc_value(status, key);

	return str_is(found, want) ? 0 : differs(e, key, want, found);
}

static int want_caps(struct str status, const char *key, uint64_t want, struct err *e)
{
	char text[24];

	(void)snprintf(text, sizeof text, "%016" PRIx64, want);
	return want_text(status, key, text, e);
}

static uint64_t number(struct str status, const char *key)
{
	char text[24];

	return str_copy(text, sizeof text, proc_value(status, key)) ? strtoull(text, NULL, 10) : 0;
}

/* Real, effective, saved and file system uid must be equal. */
static int check_uid(const struct command_want *w, struct str status, uint32_t *ret, struct err *e)
{
	struct str found = proc_value(status, "Uid:");
	char text[64], same[64];
	unsigned long uid;

	if (!str_copy(text, sizeof text, found))
		return differs(e, "Uid:", "four numbers", found);
	uid = strtoul(text, NULL, 10);
	(void)snprintf(same, sizeof same, "%lu\t%lu\t%lu\t%lu", uid, uid, uid, uid);
	if (strcmp(text, same) != 0 || uid < w->first || uid > w->last)
		return differs(e, "Uid:", "one of the sandbox's", found);
	if (w->profile == PROFILE_LOCKED && uid != w->user)
		return differs(e, "Uid:", "uid 1000 inside", found);
	*ret = (uint32_t)uid;
	return 0;
}

static int check_caps(const struct command_want *w, struct str status, uint32_t uid, struct err *e)
{
	uint64_t bound = w->profile == PROFILE_LOCKED ? 0 : caps_root_inside;
	uint64_t has = uid == w->root ? bound : 0;

	if (want_caps(status, "CapBnd:", bound, e) < 0 ||
	    want_caps(status, "CapPrm:", has, e) < 0 || want_caps(status, "CapEff:", has, e) < 0 ||
	    want_caps(status, "CapInh:", 0, e) < 0)
		return -1;
	return want_caps(status, "CapAmb:", 0, e);
}

static int check_walls(const struct command_want *w, struct str status, struct err *e)
{
	bool locked = w->profile == PROFILE_LOCKED || number(w->ours, "NoNewPrivs:");
	char filters[24];

	if (want_text(status, "Seccomp:", "2", e) < 0 ||
	    want_text(status, "NoNewPrivs:", locked ? "1" : "0", e) < 0)
		return -1;
	/* Linux 5.9 and later count filters. */
	if (!proc_value(w->ours, "Seccomp_filters:").n)
		return 0;
	(void)snprintf(filters, sizeof filters, "%" PRIu64,
		       number(w->ours, "Seccomp_filters:") + OWN_FILTERS);
	return want_text(status, "Seccomp_filters:", filters, e);
}

int command_check(const struct command_want *w, struct str status, struct err *e)
{
	uint32_t uid = 0;

	if (check_uid(w, status, &uid, e) < 0 || check_caps(w, status, uid, e) < 0)
		return -1;
	return check_walls(w, status, e);
}
