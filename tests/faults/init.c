/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cay-init with a fault, or as it would be in the hands of an attacker: the linker leads calls of
 * the named functions here (--wrap).
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include "init/child.h"
#include "sys/filter/seccomp_command.h"

int __real_seccomp_command_install(bool locked, enum seccomp_listen listen, bool nested);
int __wrap_seccomp_command_install(bool locked, enum seccomp_listen listen, bool nested);
int __real_setns(int fd, int kind);
int __wrap_setns(int fd, int kind);
void __real_child_prepare(const struct request *r);
void __wrap_child_prepare(const struct request *r);

#if defined(KEEPS_FILE) || defined(KEEPS_TREE)
static int kept = -1;
#endif

#ifdef WRONG_UMASK
static void __attribute__((constructor)) other_umask(void)
{
	(void)umask(0);
}
#endif

#ifdef LEAKS
static void __attribute__((constructor)) leak(void)
{
	if (open("/etc/passwd", O_RDONLY | O_CLOEXEC) < 0)
		_exit(1);
}
#endif

/* A command with a filter too few or, where it needs the one that listens, one too many. */
int __wrap_seccomp_command_install(bool locked, enum seccomp_listen listen, bool nested)
{
#ifdef WRONG_WALLS
	int fd;

	if (listen != SECCOMP_LISTEN_EXECS) /* init takes none instead */
		return listen == SECCOMP_LISTEN_FILES ? -EBUSY : 0;
	fd = __real_seccomp_command_install(locked, listen, nested);
	return __real_seccomp_command_install(locked, SECCOMP_LISTEN_NONE, nested) < 0 ? -1 : fd;
#else
	return __real_seccomp_command_install(locked, listen, nested);
#endif
}

/* On the way to the next generation: something of the last one stays open. */
int __wrap_setns(int fd, int kind)
{
#ifdef KEEPS_FILE
	kept = open("/var/tmp/kept", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
#endif
#ifdef KEEPS_TREE
	/* With its mount namespace, so that it is a tree that Landlock knows. */
	kept = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC) < 0)
		_exit(1);
#endif
	return __real_setns(fd, kind);
}

/* Before each command. */
void __wrap_child_prepare(const struct request *r)
{
#ifdef KEEPS_FILE
	if (kept >= 0 && write(kept, "late", 4) != 4)
		_exit(1);
#endif
#ifdef KEEPS_TREE
	int fd = kept < 0 ? -1 : openat(kept, "var/tmp/late", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	if (fd >= 0)
		(void)close(fd);
#endif
	__real_child_prepare(r);
}
