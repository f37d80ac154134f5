/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cay doctor works in three steps. doctor_gather() probes the host and records facts.
 * doctor_checks() and doctor_levels() judge the facts without I/O, so that tests cover every kind
 * of host. cli/host/doctor.c prints.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/limits.h"
#include "store/storage.h"
#include "sys/probe/probe_cgroup.h"
#include "sys/probe/probe_cpu.h"
#include "sys/probe/probe_filter.h"
#include "sys/probe/probe_kernel.h"
#include "sys/probe/probe_knobs.h"
#include "sys/probe/probe_kvm.h"
#include "sys/probe/probe_ns.h"
#include "sys/probe/probe_storage.h"
#include "sys/probe/probe_subid.h"

struct doctor_program {
	char path[LIMIT_PATH]; /* empty: not found */
	char version[32];      /* empty: unknown */
};

struct doctor_facts {
	bool rootful;
	struct probe_kernel kernel;
	struct probe_guard guard;
	struct probe_ns ns;
	struct probe_subid subid;
	struct probe_cgroup cgroup;
	struct probe_filter filter;
	struct probe_kvm kvm;
	struct probe_cpu cpu;
	struct probe_knobs knobs;
	struct probe_limits limits;
	/* The state directory. Probes use the nearest existing parent. */
	char state_dir[LIMIT_PATH];
	bool state_exists;
	struct err state_err; /* kind ERR_NONE: it exists or can be created */
	struct probe_storage storage;
	bool has_storage;
	struct storage_info own_storage;
	struct err storage_err; /* kind ERR_NONE: there is no storage, or it works */
	char cay[LIMIT_PATH];
	struct doctor_program warden, init;
	/* Host files visible in sandboxes whose names suggest a credential. */
	int credentials;
	char credential_names[300]; /* the first ones, joined by ", " */
	bool mounts_below;	    /* mounts below /usr or /opt, where no files are hidden */
};

/* ABI 1 forbids all renames between directories, so cay does not use it. */
enum { DOCTOR_LANDLOCK = 2 };

enum check_state { CHECK_OK, CHECK_NOTE, CHECK_MISSING };

struct check {
	const char *group, *name;
	enum check_state state;
	bool blocks; /* sandboxes cannot run without it */
	char finding[400];
	char fix[900]; /* a command or advice; may be empty */
};

enum { CHECKS_MAX = 64, LEVELS_MAX = 3 };

struct checks {
	struct check items[CHECKS_MAX];
	int n;
};

struct level {
	const char *driver, *profile, *mode;
	const char *level; /* full, reduced, none */
	char sentence[600];
};

/* The reason why the caller cannot use user namespaces. */
enum userns_block {
	USERNS_OK,
	USERNS_LIMIT,	 /* user.max_user_namespaces */
	USERNS_KERNEL,	 /* kernel built without user namespaces */
	USERNS_SYSCTL,	 /* kernel.unprivileged_userns_clone */
	USERNS_SECCOMP,	 /* seccomp filter of an outer container */
	USERNS_APPARMOR, /* kernel.apparmor_restrict_unprivileged_userns */
	USERNS_CHROOT,
	USERNS_OUTER, /* root in a user namespace that has no ids to map */
	USERNS_UNKNOWN,
};

void doctor_gather(struct doctor_facts *f);
/* Find our programs; part of doctor_gather(). */
void doctor_programs(struct doctor_facts *f);
/* Find credentials that the template `host` shows; part of doctor_gather(). */
void doctor_credentials(struct doctor_facts *f);

enum userns_block doctor_userns(const struct doctor_facts *f);
void doctor_checks(const struct doctor_facts *f, struct checks *ret);
/* True if sandboxes can run on this host. */
bool doctor_runs(const struct checks *l);
/* Returns the number of levels. */
int doctor_levels(const struct doctor_facts *f, const struct checks *l,
		  struct level ret[LEVELS_MAX]);
/* The controllers whose limits work here. */
unsigned doctor_controllers(const struct doctor_facts *f);
/* True if a sandbox has more than one uid. */
bool doctor_has_ids(const struct doctor_facts *f);
enum doctor_kvm { DOCTOR_KVM_NONE, DOCTOR_KVM_SLOW, DOCTOR_KVM_RUNS };
enum doctor_kvm doctor_kvm(const struct probe_kvm *k);

/* One group of checks each, in report order. */
void checks_kernel(const struct doctor_facts *f, struct checks *l);
void checks_ns(const struct doctor_facts *f, struct checks *l);
void checks_cgroup(const struct doctor_facts *f, struct checks *l);
void checks_storage(const struct doctor_facts *f, struct checks *l);
void checks_vm(const struct doctor_facts *f, struct checks *l);
void checks_host(const struct doctor_facts *f, struct checks *l);
void checks_credentials(const struct doctor_facts *f, struct checks *l);
void checks_cay(const struct doctor_facts *f, struct checks *l);

struct check *check_add(struct checks *l, const char *group, const char *name,
			enum check_state state, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
void check_fix(struct check *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* "memory, pids" */
const char *check_set(unsigned controllers, char out[64]);

extern const char *const check_state_names[]; /* by enum check_state */
struct json;
/* The report, as cay doctor --json prints it. */
void json_doctor(struct json *j, const struct checks *l, const struct level *levels, int n);
