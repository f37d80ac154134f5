/* SPDX-License-Identifier: Apache-2.0 */
/* Namespaces, made as the driver makes them for this caller. */
#pragma once

#include "sys/probe/probe.h"

enum probe_ns_kind {
	PROBE_NS_MNT,
	PROBE_NS_PID,
	PROBE_NS_NET,
	PROBE_NS_IPC,
	PROBE_NS_UTS,
	PROBE_NS_CGROUP,
	PROBE_NS_KINDS
};

struct probe_ns {
	int user;		   /* clone3 with a user namespace */
	int map;		   /* its id maps: a range if root, else one id */
	int nested;		   /* another user namespace below it */
	int other[PROBE_NS_KINDS]; /* rootless: inside a user namespace */
	int proc;		   /* a /proc of the new pid namespace */
};

const char *probe_ns_name(enum probe_ns_kind kind);
void probe_ns(struct probe_ns *ret, bool rootful);
