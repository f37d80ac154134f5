/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "ops/doctor/doctor.h"

struct gaps {
	char text[360];
	size_t at;
};

static __attribute__((format(printf, 2, 3))) void gap(struct gaps *g, const char *fmt, ...)
{
	size_t room = sizeof g->text - g->at;
	va_list ap;
	int n;

	if (g->at && room > 2)
		g->at += (size_t)snprintf(g->text + g->at, room, ", ");
	room = sizeof g->text - g->at;
	va_start(ap, fmt);
	n = vsnprintf(g->text + g->at, room, fmt, ap);
	va_end(ap);
	g->at += n < 0 ? 0 : (size_t)n < room ? (size_t)n : room - 1;
}

bool doctor_has_ids(const struct doctor_facts *f)
{
	return f->rootful;
}

static void find_gaps(const struct doctor_facts *f, bool dev, struct gaps *g)
{
	unsigned lack = (1u << PROBE_CG_MEMORY | 1u << PROBE_CG_PIDS | 1u << PROBE_CG_CPU) &
			~doctor_controllers(f);
	char set[64];

	if (f->filter.notify != 0)
		gap(g, "no system-call notification");
	if (f->filter.landlock < DOCTOR_LANDLOCK)
		gap(g, "no Landlock");
	if (f->cgroup.make != 0)
		gap(g, "no control groups");
	if (lack)
		gap(g, "no limits on %s", check_set(lack, set));
	if (dev && !doctor_has_ids(f))
		gap(g, "one uid only, so no sudo, apt-get or useradd inside");
}

static const char *first_blocker(const struct checks *l)
{
	for (int i = 0; i < l->n; i++)
		if (l->items[i].blocks)
			return l->items[i].name;
	return "";
}

static void level_ns(const struct doctor_facts *f, const struct checks *l, bool dev,
		     struct level *ret)
{
	struct gaps g = { 0 };
	const char *shared =
		f->cpu.vulnerable[0]
			? "kernel and CPU, with open weaknesses, are shared with the host"
			: "the kernel is shared with the host";

	*ret = (struct level){ "ns", dev ? "dev" : "locked", f->rootful ? "rootful" : "rootless",
			       "none", "" };
	if (!doctor_runs(l)) {
		(void)snprintf(ret->sentence, sizeof ret->sentence,
			       "cannot run here: look at '%s' above.", first_blocker(l));
		return;
	}
	find_gaps(f, dev, &g);
	ret->level = g.at ? "reduced" : "full";
	(void)snprintf(ret->sentence, sizeof ret->sentence, "%s%s%s, %s; %s.",
		       g.at ? "runs, with gaps (" : "this host gives all that it asks for", g.text,
		       g.at ? ")" : "",
		       !dev	    ? "nobody inside has a capability or can gain one"
		       : f->rootful ? "root inside is nobody outside"
				    : "there is no root inside",
		       shared);
}

static void level_vm(const struct doctor_facts *f, struct level *ret)
{
	static const char *const kvm[] = {
		[DOCTOR_KVM_NONE] = "there is no KVM here that would run it",
		[DOCTOR_KVM_SLOW] = "KVM here would run it, but slowly (interpreted)",
		[DOCTOR_KVM_RUNS] = "KVM here would run it at full speed",
	};

	*ret = (struct level){ "vm", "any", f->rootful ? "rootful" : "rootless", "none", "" };
	(void)snprintf(ret->sentence, sizeof ret->sentence, "not built yet; %s.",
		       kvm[doctor_kvm(&f->kvm)]);
}

int doctor_levels(const struct doctor_facts *f, const struct checks *l,
		  struct level ret[LEVELS_MAX])
{
	level_ns(f, l, true, &ret[0]);
	level_ns(f, l, false, &ret[1]);
	level_vm(f, &ret[2]);
	return LEVELS_MAX;
}
