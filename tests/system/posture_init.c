/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands in for cay-init: takes on what init does, less or more the one thing that `fault` names,
 * and says something on the stream as if it were ready.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/keyctl.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ROOT_INSIDE 0xa00405fbull

/* The test writes the name of one over this mark: compiled once, it serves for all. */
char fault[] = "<<the name of the fault>>";

static int is(const char *name)
{
	return strcmp(fault, name) == 0;
}

/* Which list it is cannot be seen from outside, only that there is one. */
static long take_list(void)
{
	struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog prog = { .len = 1, .filter = &all };

	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog);
}

/* A key of that name in the session's keyring, which the host's session must not be. */
static long finds_key(void)
{
	return syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_SESSION_KEYRING, "user", "cay-posture",
		       0);
}

/* As init does. */
static void raise_files(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) < 0)
		return;
	r.rlim_cur = r.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &r);
}

int main(void)
{
	static const struct rlimit core = { 0, 0 };

	raise_files();
	if (is("keyring") && finds_key() >= 0)
		return 2;
	(void)close(5); /* the keel, which init needs for Landlock only */
	for (int c = 0; c < 64 && !is("bounding"); c++)
		if (!(ROOT_INSIDE >> c & 1))
			(void)prctl(PR_CAPBSET_DROP, c, 0, 0, 0);
	if (!is("ambient"))
		(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (!is("no_list") && take_list() < 0)
		return 1;
	if (is("two_lists") && take_list() < 0)
		return 1;
	if (is("descriptor") && open("/etc/passwd", O_RDONLY) < 0)
		return 1;
	if (is("no_new_privs") && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return 1;
	if (is("umask"))
		(void)umask(0);
	if (is("directory") && chdir("/tmp") < 0)
		return 1;
	if (is("core") && setrlimit(RLIMIT_CORE, &core) < 0)
		return 1;
	if (is("end"))
		return 1;
	/* No frame, which is found after the look. */
	if (write(3, "\377\377\377\377\377\377\377\377\377\377\377\377", 12) != 12)
		return 1;
	for (;;)
		(void)pause();
}
