/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "ops/doctor/doctor.h"
#include "store/catalog.h"

#define GROUP "Cay"

enum { PROCESSES_EACH = 4, FEW_FILES = 4096, FEW_WATCHES = 65536 };
#define MEMORY_EACH (2ull << 20) /* warden, init and the kernel's share of an idle sandbox */

static void program(const char *name, const struct doctor_program *p, struct checks *l)
{
	struct check *c;

	if (p->path[0] && strcmp(p->version, CAY_VERSION) == 0) {
		check_add(l, GROUP, name, CHECK_OK, "%s, %s", p->version, p->path);
		return;
	}
	if (p->path[0])
		c = check_add(l, GROUP, name, CHECK_MISSING, "%s is %s%s, cay is %s", p->path,
			      p->version[0] ? "" : "of another version", p->version, CAY_VERSION);
	else
		c = check_add(l, GROUP, name, CHECK_MISSING, "not found beside cay");
	c->blocks = true;
	check_fix(c, "install all of cay from one build: sudo make install");
}

static uint64_t lower(uint64_t have, uint64_t other, const char **why, const char *other_why)
{
	if (other >= have)
		return have;
	*why = other_why;
	return other;
}

/* Counts idle sandboxes; their commands need more. */
static void capacity(const struct doctor_facts *f, struct checks *l)
{
	const struct probe_limits *m = &f->limits;
	const char *why = "memory";
	uint64_t n = m->memory_bytes / MEMORY_EACH;

	if (f->rootful)
		n = lower(n, UID_SLOTS, &why, "ranges of uids");
	else
		n = lower(n, m->processes / PROCESSES_EACH, &why, "the limit on your processes");
	if (m->pid_max > 0)
		n = lower(n, (uint64_t)m->pid_max / PROCESSES_EACH, &why, "kernel.pid_max");
	if (m->net_namespaces >= 0)
		n = lower(n, (uint64_t)m->net_namespaces, &why, "user.max_net_namespaces");
	check_add(l, GROUP, "capacity", n < 16 ? CHECK_NOTE : CHECK_OK,
		  "about %llu idle sandboxes at once, bounded by %s", (unsigned long long)n, why);
}

static void limits(const struct probe_limits *m, struct checks *l)
{
	struct check *c;

	if (m->files < FEW_FILES) {
		c = check_add(l, GROUP, "open files", CHECK_NOTE, "at most %llu",
			      (unsigned long long)m->files);
		check_fix(
			c,
			"printf '* hard nofile 65536\\n' | sudo tee /etc/security/limits.d/cay.conf, then log in "
			"again");
	} else {
		check_add(l, GROUP, "open files", CHECK_OK, "enough");
	}
	if (m->inotify_watches >= 0 && m->inotify_watches < FEW_WATCHES) {
		c = check_add(l, GROUP, "inotify", CHECK_NOTE,
			      "%ld watches per user: development servers inside may need more",
			      m->inotify_watches);
		check_fix(c, "sudo sysctl -w fs.inotify.max_user_watches=524288");
	} else {
		check_add(l, GROUP, "inotify", CHECK_OK, "%ld watches and %ld instances per user",
			  m->inotify_watches, m->inotify_instances);
	}
}

void checks_cay(const struct doctor_facts *f, struct checks *l)
{
	program("cay-warden", &f->warden, l);
	program("cay-init", &f->init, l);
	limits(&f->limits, l);
	capacity(f, l);
}
