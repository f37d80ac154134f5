/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "ops/doctor/doctor.h"

#define GROUP "Control groups"

enum { NEEDED = 1 << PROBE_CG_MEMORY | 1 << PROBE_CG_PIDS | 1 << PROBE_CG_CPU };

unsigned doctor_controllers(const struct doctor_facts *f)
{
	const struct probe_cgroup *g = &f->cgroup;
	/* With a single uid, an rlimit works as well. */
	unsigned by_rlimit = doctor_has_ids(f) ? 0 : 1u << PROBE_CG_PIDS;

	return (g->make == 0 ? g->given | g->offered | g->v1 : g->v1) | by_rlimit;
}

static void mode(const struct probe_cgroup *g, struct checks *l)
{
	struct check *c;

	switch (g->mode) {
	case PROBE_CGROUP_V2:
		check_add(l, GROUP, "hierarchy", CHECK_OK, "v2; ours is %s", g->own);
		return;
	case PROBE_CGROUP_HYBRID:
		check_add(l, GROUP, "hierarchy", CHECK_OK, "v1 and v2 together; ours in v2 is %s",
			  g->own);
		return;
	case PROBE_CGROUP_V1:
		c = check_add(l, GROUP, "hierarchy", CHECK_NOTE,
			      "v1 only: processes of a call cannot be ended as one");
		break;
	case PROBE_CGROUP_NONE:
	default:
		c = check_add(l, GROUP, "hierarchy", CHECK_MISSING, "none is mounted");
		break;
	}
	check_fix(c, g->mode == PROBE_CGROUP_V1 ? "boot with systemd.unified_cgroup_hierarchy=1"
						: "sudo mount -t cgroup2 none /sys/fs/cgroup");
}

static void fix_make(const struct doctor_facts *f, struct check *c)
{
	if (f->cgroup.make == -EROFS)
		check_fix(
			c,
			"mount it writable: sudo mount -o remount,rw /sys/fs/cgroup (in a container: "
			"--privileged, or --cgroupns=private with a writable mount)");
	else if (!f->rootful && f->cgroup.mode == PROBE_CGROUP_V2)
		check_fix(
			c,
			"run it in a group of your own: systemd-run --user --scope -p Delegate=yes cay ...");
	else if (!f->rootful)
		check_fix(c,
			  "G=%s/cay-%s && sudo mkdir -p $G && sudo chown %s $G $G/cgroup.procs && "
			  "echo $$ | sudo tee $G/cgroup.procs",
			  f->cgroup.mount, f->subid.user, f->subid.user);
	else
		check_fix(c, "run cay where root may write to /sys/fs/cgroup");
}

/* cgroup v1 has its own freezer, which cay does not use: hosts without any v2 are few and old. */
static void no_freezer(struct checks *l)
{
	check_add(
		l, GROUP, "freeze", CHECK_NOTE,
		"only v2 groups have it: cay pause stops processes by signals, which they can notice, "
		"and a snapshot is refused while commands run");
}

static void groups(const struct doctor_facts *f, struct checks *l)
{
	const struct probe_cgroup *g = &f->cgroup;
	struct check *c;

	if (g->mode == PROBE_CGROUP_NONE || g->mode == PROBE_CGROUP_V1) {
		no_freezer(l);
		return;
	}
	if (g->make < 0) {
		c = check_add(
			l, GROUP, "groups", CHECK_MISSING,
			"cannot be made below ours (%s): no limits, and what a call leaves running is not ended as one",
			strerror(-g->make));
		fix_make(f, c);
		return;
	}
	check_add(l, GROUP, "groups", CHECK_OK, "can be made below ours");
	if (g->kill && g->freeze && g->clone_into == 0)
		check_add(l, GROUP, "kill, freeze", CHECK_OK,
			  "there, and processes can be born in a group");
	else
		check_add(l, GROUP, "kill, freeze", CHECK_NOTE, "%s%s%s",
			  g->kill ? "" : "no cgroup.kill; ", g->freeze ? "" : "no cgroup.freeze; ",
			  g->clone_into < 0 ? strerror(-g->clone_into)
					    : "processes can be born in a group");
	if (!g->freeze)
		no_freezer(l);
}

static void controllers(const struct doctor_facts *f, struct checks *l)
{
	unsigned can = doctor_controllers(f), missing = NEEDED & ~can;
	unsigned waiting = can & ~(f->cgroup.given | f->cgroup.v1);
	char have[64], lack[64], wait[64];
	struct check *c;

	if (f->cgroup.mode == PROBE_CGROUP_NONE)
		return;
	if (!missing) {
		check_add(l, GROUP, "limits", CHECK_OK, "%s%s%s%s%s", check_set(can, have),
			  waiting ? " (" : "", check_set(waiting, wait),
			  waiting ? " given to us, not yet to groups below)" : "",
			  can == f->cgroup.v1 ? ", by v1" : "");
		return;
	}
	c = check_add(l, GROUP, "limits", CHECK_MISSING, "no limits on %s%s%s",
		      check_set(missing, lack), can ? "; there are those on " : "",
		      check_set(can, have));
	if (!f->rootful && f->cgroup.mode != PROBE_CGROUP_V2)
		check_fix(c, "run cay as root, or boot with systemd.unified_cgroup_hierarchy=1");
	else if (f->cgroup.make < 0)
		check_fix(c, "make groups possible first, see above");
	else if (f->rootful)
		check_fix(c, "sudo systemd-run --scope -p Delegate=yes cay ...");
	else
		check_fix(
			c,
			"sudo mkdir -p /etc/systemd/system/user@.service.d && printf "
			"'[Service]\\nDelegate=cpu cpuset io memory pids\\n' | sudo tee "
			"/etc/systemd/system/user@.service.d/cay.conf && sudo systemctl daemon-reload, "
			"then log in again");
}

void checks_cgroup(const struct doctor_facts *f, struct checks *l)
{
	mode(&f->cgroup, l);
	groups(f, l);
	controllers(f, l);
}
