/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "ops/doctor/doctor.h"

#define GROUP "Namespaces"

/* The first failure in creating a user namespace with ids and a nested one; 0 if none. */
static int first_failure(const struct doctor_facts *f)
{
	const int steps[] = { f->ns.user, f->ns.map, f->rootful ? 0 : f->ns.nested,
			      f->rootful ? 0 : f->ns.other[PROBE_NS_MNT] };

	for (size_t i = 0; i < ARRAY_LEN(steps); i++)
		if (steps[i])
			return steps[i];
	return 0;
}

enum userns_block doctor_userns(const struct doctor_facts *f)
{
	const struct probe_guard *g = &f->guard;
	int failure = first_failure(f);

	if (failure == 0)
		return USERNS_OK;
	if (failure == -ENOSPC || failure == -EUSERS || g->max_user_ns == 0)
		return USERNS_LIMIT;
	if (f->ns.user == -EINVAL)
		return USERNS_KERNEL;
	if (!f->rootful && g->userns_clone == 0)
		return USERNS_SYSCTL;
	/* Docker's filter returns ENOSYS for clone3, so that programs fall back to clone. */
	if (g->seccomp == 2 && f->ns.user < 0)
		return USERNS_SECCOMP;
	if (!f->rootful && g->apparmor_restrict == 1)
		return USERNS_APPARMOR;
	if (g->seccomp == 2)
		return USERNS_SECCOMP;
	if (g->chroot)
		return USERNS_CHROOT;
	return f->rootful && f->ns.user == 0 ? USERNS_OUTER : USERNS_UNKNOWN;
}

static bool is_plain(const char *path)
{
	return path[0] == '/' &&
	       path[strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				 "0123456789/._-")] == '\0';
}

/* A profile for cay alone is narrower than lifting the restriction for all programs. */
static void fix_apparmor(const struct doctor_facts *f, struct check *c)
{
	if (strlen(f->cay) + strlen(f->warden.path) > 400 || !is_plain(f->cay) ||
	    !is_plain(f->warden.path)) {
		check_fix(c, "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0");
		return;
	}
	check_fix(c,
		  "printf 'abi <abi/4.0>,\\ninclude <tunables/global>\\nprofile cay /{%s,%s} "
		  "flags=(unconfined) {\\n  userns,\\n}\\n' | sudo tee /etc/apparmor.d/cay && "
		  "sudo apparmor_parser -r /etc/apparmor.d/cay",
		  f->cay + 1, f->warden.path + 1);
}

static void explain(const struct doctor_facts *f, enum userns_block why, struct check *c)
{
	static const struct {
		const char *finding, *fix;
	} rows[] = {
		[USERNS_LIMIT] = { "blocked: user.max_user_namespaces leaves none",
				   "sudo sysctl -w user.max_user_namespaces=15000" },
		[USERNS_KERNEL] = { "this kernel is built without them",
				    "use a kernel with CONFIG_USER_NS" },
		[USERNS_SYSCTL] = { "blocked: kernel.unprivileged_userns_clone is 0",
				    "sudo sysctl -w kernel.unprivileged_userns_clone=1" },
		[USERNS_SECCOMP] = { "blocked by the system-call filter of the container that this is in",
				     "start the container with: --security-opt seccomp=unconfined "
				     "--security-opt apparmor=unconfined --security-opt systempaths=unconfined" },
		[USERNS_APPARMOR] = { "blocked: kernel.apparmor_restrict_unprivileged_userns is 1 and no "
				      "AppArmor profile allows them to cay",
				      NULL },
		[USERNS_CHROOT] = { "the kernel refuses them in a chroot",
				    "run cay outside of the chroot" },
		[USERNS_OUTER] = { "we are root only in a user namespace that has no ids to give",
				   "run cay as root of the host, or as an ordinary user" },
	};

	if (why == USERNS_UNKNOWN) {
		(void)snprintf(c->finding, sizeof c->finding, "refused: %s",
			       strerror(-first_failure(f)));
		check_fix(c, f->guard.container
				     ? "start the container with: --privileged"
				     : "look for a security module's refusal: sudo dmesg | tail");
		return;
	}
	(void)snprintf(c->finding, sizeof c->finding, "%s", rows[why].finding);
	if (why == USERNS_APPARMOR)
		fix_apparmor(f, c);
	else
		check_fix(c, "%s", rows[why].fix);
}

static void user(const struct doctor_facts *f, struct checks *l)
{
	enum userns_block why = doctor_userns(f);
	struct check *c;

	if (why == USERNS_OK) {
		check_add(l, GROUP, "user", CHECK_OK, "work, %s",
			  f->rootful ? "with a range of ids for each sandbox" : "nested too");
		return;
	}
	c = check_add(l, GROUP, "user", CHECK_MISSING, " ");
	c->blocks = true;
	explain(f, why, c);
}

static void fix_others(const struct doctor_facts *f, struct check *c)
{
	if (f->rootful && !f->guard.has_sys_admin)
		check_fix(
			c,
			"give root its capabilities back (in a container: --cap-add SYS_ADMIN), or run cay as "
			"an ordinary user");
	else if (f->guard.seccomp == 2)
		check_fix(c, "start the container with: --security-opt seccomp=unconfined");
	else
		check_fix(c, "raise the limits: sudo sysctl -a | grep 'user.max_.*_namespaces'");
}

static void others(const struct doctor_facts *f, struct checks *l)
{
	char failed[160] = "";
	size_t at = 0;
	int why = 0;
	struct check *c;

	for (int i = 0; i < PROBE_NS_KINDS; i++) {
		if (f->ns.other[i] >= 0)
			continue;
		why = f->ns.other[i];
		at += (size_t)snprintf(failed + at, sizeof failed - at, "%s%s", at ? ", " : "",
				       probe_ns_name(i));
	}
	if (f->ns.other[0] == PROBE_UNTRIED)
		return;
	if (!why) {
		check_add(l, GROUP, "others", CHECK_OK, "mount, pid, net, ipc, uts, cgroup work");
		return;
	}
	c = check_add(l, GROUP, "others", CHECK_MISSING, "refused: %s (%s)", failed,
		      strerror(-why));
	c->blocks = true;
	fix_others(f, c);
}

/* The kernel allows a full /proc mount only to processes that already see a full /proc. */
static void proc(const struct doctor_facts *f, struct checks *l)
{
	struct check *c;

	if (f->ns.proc == PROBE_UNTRIED)
		return;
	if (f->ns.proc == 0) {
		check_add(l, GROUP, "proc", CHECK_OK, "can be mounted in them");
		return;
	}
	c = check_add(l, GROUP, "proc", CHECK_MISSING,
		      "cannot be mounted in them (%s): parts of our own /proc are masked",
		      strerror(-f->ns.proc));
	c->blocks = true;
	check_fix(c, "start the container with: --security-opt systempaths=unconfined (Docker) or "
		     "--security-opt unmask=ALL (Podman)");
}

/* cay finds subuid ranges but does not use them, and the report says so. */
static void subids(const struct doctor_facts *f, struct checks *l)
{
	const struct probe_subid *s = &f->subid;

	if (f->rootful)
		return;
	check_fix(check_add(l, GROUP, "uids", CHECK_NOTE,
			    "one uid in a sandbox, yours, so no root, sudo or apt-get inside%s",
			    s->uids ? "; subuids are not used" : ""),
		  "run cay as root");
}

/* With --nested, programs inside create user namespaces like ordinary users of the host. */
static void nesting(const struct doctor_facts *f, struct checks *l)
{
	if (doctor_userns(f) != USERNS_OK)
		return;
	if (f->guard.userns_clone == 0)
		check_fix(check_add(l, GROUP, "--nested", CHECK_NOTE,
				    "not possible: kernel.unprivileged_userns_clone is 0"),
			  "sudo sysctl -w kernel.unprivileged_userns_clone=1");
	else if (f->guard.apparmor_restrict == 1)
		check_fix(check_add(l, GROUP, "--nested", CHECK_NOTE,
				    "not possible: AppArmor refuses user namespaces to programs "
				    "in sandboxes"),
			  "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0");
	else
		check_add(l, GROUP, "--nested", CHECK_OK,
			  "possible: sandboxes can be built in sandboxes; see SECURITY.md");
}

void checks_ns(const struct doctor_facts *f, struct checks *l)
{
	user(f, l);
	others(f, l);
	proc(f, l);
	subids(f, l);
	nesting(f, l);
}
