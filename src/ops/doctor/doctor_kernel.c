/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "ops/doctor/doctor.h"

#define GROUP "Kernel"

static bool at_least(const struct probe_kernel *k, int major, int minor)
{
	return k->major > major || (k->major == major && k->minor >= minor);
}

static void kernel(const struct probe_kernel *k, struct checks *l)
{
	struct check *c;

	if (!at_least(k, 5, 19)) {
		c = check_add(l, GROUP, "kernel", CHECK_MISSING,
			      "%s on %s; Linux 5.19 is the oldest that works", k->release,
			      k->machine);
		c->blocks = true;
		check_fix(
			c,
			"install a newer kernel (Debian 12 and Ubuntu 24.04 have one) and reboot");
	} else if (!at_least(k, 6, 1)) {
		c = check_add(l, GROUP, "kernel", CHECK_NOTE, "%s on %s; tested from Linux 6.1 on",
			      k->release, k->machine);
		check_fix(c, "install Linux 6.1 or newer and reboot");
	} else {
		check_add(l, GROUP, "kernel", CHECK_OK, "%s on %s", k->release, k->machine);
	}
	if (strcmp(k->machine, "x86_64") != 0 && strcmp(k->machine, "aarch64") != 0)
		check_add(l, GROUP, "machine", CHECK_NOTE,
			  "%s is not tested; x86_64 and aarch64 are", k->machine);
	if (!at_least(k, 6, 13))
		check_add(
			l, GROUP, "file times", CHECK_NOTE,
			"ctime ticks every 1 to 10 ms before Linux 6.13: changes of calls that run "
			"at once are told apart less often");
}

static void seccomp(const struct probe_filter *p, struct checks *l)
{
	struct check *c;

	if (p->notify == 0) {
		check_add(l, GROUP, "seccomp", CHECK_OK, "filters and notification work%s",
			  p->killable ? "" : ", though signals may interrupt what is watched");
		return;
	}
	c = check_add(l, GROUP, "seccomp", CHECK_MISSING,
		      "notification does not work (%s): no list of processes in traces",
		      p->notify == -EBUSY ? "somebody outside watches us in the same way"
		      : p->notify < 0	  ? strerror(-p->notify)
					  : "no answer");
	check_fix(c, p->notify == -EBUSY
			     ? "run cay outside of the sandbox or container that this is in"
			     : "use a kernel with CONFIG_SECCOMP_FILTER");
}

static void landlock(const struct probe_filter *p, struct checks *l)
{
	struct check *c;

	if (p->landlock > 0 && p->landlock < DOCTOR_LANDLOCK) {
		c = check_add(
			l, GROUP, "Landlock", CHECK_MISSING,
			"ABI %d, too old to be of use: the second wall around files is missing",
			p->landlock);
		check_fix(c, "use Linux 5.19 or newer");
		return;
	}
	if (p->landlock > 0) {
		check_add(l, GROUP, "Landlock", p->landlock >= 6 ? CHECK_OK : CHECK_NOTE,
			  "ABI %d%s", p->landlock,
			  p->landlock >= 6
				  ? ""
				  : ": signals and abstract sockets are not scoped before 6");
		return;
	}
	c = check_add(
		l, GROUP, "Landlock", CHECK_MISSING, "%s: the second wall around files is missing",
		p->landlock == -EOPNOTSUPP ? "built in but not enabled" : "not in this kernel");
	check_fix(
		c,
		p->landlock == -EOPNOTSUPP
			? "add landlock to the kernel's lsm= option (see /sys/kernel/security/lsm) and reboot"
			: "use a kernel with CONFIG_SECURITY_LANDLOCK");
}

static void pidfd(const struct probe_filter *p, struct checks *l)
{
	if (p->pidfd < 0)
		check_add(l, GROUP, "pidfd", CHECK_MISSING, "%s", strerror(-p->pidfd))->blocks =
			true;
	else if (p->pidfd_exit == 0)
		check_add(l, GROUP, "pidfd", CHECK_OK,
			  "tells exit codes of processes that are gone");
	else
		check_add(
			l, GROUP, "pidfd", CHECK_NOTE,
			"works; exit codes of background processes may be unknown before Linux 6.15");
}

void checks_kernel(const struct doctor_facts *f, struct checks *l)
{
	kernel(&f->kernel, l);
	seccomp(&f->filter, l);
	landlock(&f->filter, l);
	pidfd(&f->filter, l);
}
