/* SPDX-License-Identifier: Apache-2.0 */
#include "init/child.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "init/files.h"
#include "init/list.h"
#include "init/rlimits.h"
#include "init/user.h"
#include "sys/filter/seccomp_command.h"
#include "sys/ns/caps.h"
#include "sys/process/fdpass.h"
#include "sys/process/raw.h"

enum { LOCKED_USER = 1000 };

bool child_nested;

static int fail_to, gate = FD_NONE, order = FD_NONE;
static enum run_stage stage;

static void __attribute__((noreturn, format(printf, 2, 3))) fail(int err, const char *fmt, ...)
{
	struct child_failure f = { .sys = err, .stage = stage };
	va_list ap;
	ssize_t n;

	va_start(ap, fmt);
	(void)vsnprintf(f.text, sizeof f.text, fmt, ap);
	va_end(ap);
	n = write(fail_to, &f, sizeof f);
	_exit(n == (ssize_t)sizeof f ? 127 : 125);
}

/* Init handles no signal and blocks only one: nothing else needs resetting. */
static void reset_signals(void)
{
	sigset_t none;

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/*
 * Descriptors 0, 1, 2 from the request; a terminal serves as all three. Above them only CLOEXEC
 * descriptors stay.
 */
static void take_stdio(const struct request *r)
{
	int out = r->fds[FD_STDOUT] >= 0 ? r->fds[FD_STDOUT] : r->fds[FD_STDIN];
	int err = r->fds[FD_STDERR] >= 0 ? r->fds[FD_STDERR] : out;

	if (setsid() < 0)
		fail(errno, "start a session");
	if (r->tty && ioctl(r->fds[FD_STDIN], TIOCSCTTY, 0) < 0)
		fail(errno, "take the terminal");
	if (dup2(r->fds[FD_STDIN], 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0)
		fail(errno, "set up standard descriptors");
}

/* A locked sandbox has one user, and no way to become another. */
static void find_user(const struct request *r, struct user *u)
{
	int err = user_recall(request_user(r), u);

	if (err == -ENOENT)
		fail(ENOENT, "user '%s' does not exist in the sandbox", r->user);
	if (err < 0)
		fail(EINVAL, "user '%s' is not a name, uid or uid:gid", r->user);
	if (r->profile == PROFILE_LOCKED && u->uid != LOCKED_USER)
		fail(EPERM,
		     "user '%s' (uid %u): in a sandbox with --profile locked all runs as uid %d",
		     u->name, u->uid, LOCKED_USER);
}

/* As the user, so that a directory closed to that user is refused. */
static void enter_cwd(const struct request *r, const struct user *u)
{
	char now[LIMIT_PATH];
	const char *cwd = r->cwd ? r->cwd : u->home;

	if (chdir(cwd) < 0) {
		if (r->cwd)
			fail(errno, "working directory '%s'", cwd);
		if (chdir("/") < 0)
			fail(errno, "working directory '/'");
	}
	/* The kernel shows a directory outside the root as "(unreachable)". */
	if (syscall(SYS_getcwd, now, sizeof now) < 0 || now[0] != '/')
		fail(EPERM, "working directory '%s' is outside the sandbox", cwd);
}

static enum seccomp_listen wanted_listener(const struct request *r)
{
	bool ahead = r->fds[FD_ORDER] >= 0;

	if (r->op != CALL_EXEC || (!ahead && r->fds[FD_REPORT] < 0))
		return SECCOMP_LISTEN_NONE;
	return r->trace == TRACE_FULL ? SECCOMP_LISTEN_EXECS : SECCOMP_LISTEN_FILES;
}

/*
 * From now on a listening warden sees execs, and calls reserved for init are refused. Needs the
 * privileges that we drop next.
 */
static void install_filter(const struct request *r)
{
	enum seccomp_listen listen = wanted_listener(r);
	bool locked = r->profile == PROFILE_LOCKED, tell = listen;
	int fd = seccomp_command_install(locked, listen, child_nested);
	struct stand_by_ready ready = { .pid = getpid() };
	char c = 'l';
	int err = 0;

	/* An outer sandbox has the listener: without ours, only renames of directories differ. */
	if (fd == -EBUSY && listen == SECCOMP_LISTEN_FILES) {
		listen = SECCOMP_LISTEN_NONE;
		fd = seccomp_command_install(locked, listen, child_nested);
	}
	if (fd == -EBUSY)
		fail(EBUSY, "an outer sandbox records the programs here already; take --trace "
			    "calls for this one");
	if (fd < 0)
		fail(-fd, "install the list of system calls");
	if (r->fds[FD_ORDER] >= 0)
		err = fdpass_send(r->fds[FD_ORDER], &ready, sizeof ready, &fd, listen ? 1 : 0);
	else if (tell)
		err = fdpass_send(r->fds[FD_REPORT], &c, 1, &fd, listen ? 1 : 0);
	if (err < 0)
		fail(-err, "hand over the listener");
	if (listen)
		(void)close(fd);
}

/*
 * From now on processes of the same user may inspect us, and we resolve paths that they may have
 * prepared. No resource of init may remain. Our memory is a copy of init's, so we stay undumpable
 * until exec.
 */
static void close_the_rest(const struct request *r)
{
	enum { FAIL_AT = 3, NEXT_AT, HIGH };
	bool gated = r->fds[FD_GATE] >= 0, ahead = r->fds[FD_ORDER] >= 0;
	int next = ahead ? r->fds[FD_ORDER] : r->fds[FD_GATE]; /* never both */
	/* Move both away first: each may occupy the other's place. */
	int high_fail = fcntl(fail_to, F_DUPFD_CLOEXEC, HIGH);
	int high_next = next >= 0 ? fcntl(next, F_DUPFD_CLOEXEC, HIGH) : FD_NONE;

	if (high_fail < 0 || (next >= 0 && high_next < 0) ||
	    dup3(high_fail, FAIL_AT, O_CLOEXEC) < 0 ||
	    (next >= 0 && dup3(high_next, NEXT_AT, O_CLOEXEC) < 0))
		fail(errno, "move a descriptor");
	fail_to = FAIL_AT;
	gate = gated ? NEXT_AT : FD_NONE;
	order = ahead ? NEXT_AT : FD_NONE;
	if (raw_close_range(next >= 0 ? NEXT_AT + 1 : FAIL_AT + 1, ~0u) < 0)
		fail(errno, "close descriptors");
}

/*
 * Wait for one complete message from the warden: the command to run. Its descriptors came earlier
 * and are in place.
 */
static void await_order(struct request *r)
{
	static char text[LIMIT_ORDER];
	int stdio[] = { 0, 1, 2 };
	struct request ordered;
	struct frame f;
	ssize_t n;
	int err;

	if (order < 0)
		return;
	n = read(order, text, sizeof text);
	if (n <= 0 || frame_parse((struct str){ text, (size_t)n }, &f) <= 0 || f.type != MSG_RUN)
		fail(ECANCELED, "no order came");
	f.nfds = ARRAY_LEN(stdio);
	err = request_parse(&ordered, &f, stdio, false);
	if (err < 0)
		fail(-err, "read the request");
	*r = ordered;
	(void)close(order);
	child_prepare(r);
}

/* Without a listener that stops our exec, let the warden verify us here. */
static void wait_at_gate(void)
{
	char c = 'g';

	if (gate < 0)
		return;
	if (write(gate, &c, 1) != 1 || read(gate, &c, 1) != 1)
		fail(EPERM, "pass the look from outside");
}

/* From now on setuid programs and file capabilities give nothing. */
static void give_up_gaining_rights(void)
{
	int err = caps_bound(0);

	if (err < 0)
		fail(-err, "empty the bounding set");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		fail(errno, "forbid new privileges");
}

static void drop_rights(const struct user *u)
{
	int err;

	/* Denied if the sandbox has only one id; then there are no other groups. */
	if (setgroups((size_t)u->ngroups, u->groups) < 0 && errno != EPERM)
		fail(errno, "set the groups of '%s'", u->name);
	if (setresgid(u->gid, u->gid, u->gid) < 0 || setresuid(u->uid, u->uid, u->uid) < 0) {
		if (errno == EINVAL)
			fail(EPERM,
			     "user '%s' (uid %u) does not exist here: a rootless sandbox "
			     "has only the uid %u; root, other users and sudo need a cay that "
			     "runs as root",
			     u->name, u->uid, getuid());
		fail(errno, "become user '%s'", u->name);
	}
	err = caps_set(u->uid == 0 ? caps_root_inside : 0);
	if (err < 0)
		fail(-err, "drop capabilities");
}

static void put_env(struct request *r, const char *key, const char *value)
{
	size_t n = strlen(key);
	char **grown;
	char *text;

	for (int i = 0; i < r->envc; i++)
		if (strncmp(r->envp[i], key, n) == 0 && r->envp[i][n] == '=')
			return;
	grown = realloc(r->envp, sizeof(char *) * (size_t)(r->envc + 2));
	if (!grown || asprintf(&text, "%s=%s", key, value) < 0)
		fail(ENOMEM, "build the environment");
	r->envp = grown;
	grown[r->envc++] = text;
	grown[r->envc] = NULL;
}

/* Keep the first of two equal names: programs disagree on which of them counts. */
static void drop_doubles(struct request *r)
{
	int kept = 0;

	for (int i = 0; i < r->envc; i++) {
		size_t n = strcspn(r->envp[i], "=") + 1;
		int j = 0;

		while (j < kept && strncmp(r->envp[j], r->envp[i], n) != 0)
			j++;
		if (j == kept)
			r->envp[kept++] = r->envp[i];
	}
	r->envc = kept;
	if (r->envp)
		r->envp[kept] = NULL;
}

/* As in Debian's ~/.profile: the user's own programs go first. Root has no such directory. */
static void put_path(struct request *r, const struct user *u)
{
	static const char usual[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
	char path[LIMIT_PATH + sizeof usual];

	(void)snprintf(path, sizeof path, "%s/.local/bin:%s", u->home, usual);
	put_env(r, "PATH", u->uid == 0 ? usual : path);
}

/* Go does not detect a memory limit by itself. Leave a tenth for memory that Go does not count. */
static void put_go_limit(struct request *r)
{
	char text[32];

	if (!r->memory)
		return;
	(void)snprintf(text, sizeof text, "%llu", (unsigned long long)(r->memory / 10 * 9));
	put_env(r, "GOMEMLIMIT", text);
}

static void fill_env(struct request *r, const struct user *u)
{
	drop_doubles(r);
	put_env(r, "HOME", u->home);
	put_env(r, "USER", u->name);
	put_env(r, "LOGNAME", u->name);
	put_env(r, "SHELL", u->shell);
	put_path(r, u);
	put_env(r, "LANG", "C.UTF-8");
	put_go_limit(r);
	/* An overlay cannot have its upper on the root, which is an overlay itself. */
	if (child_nested)
		put_env(r, "CAY_STATE", "/dev/shm/cay");
	/* LeakSanitizer needs ptrace, and without it ends every program built with it. */
	if (r->profile == PROFILE_LOCKED)
		put_env(r, "LSAN_OPTIONS", "detect_leaks=0");
}

static const char *env_path(const struct request *r)
{
	for (int i = 0; i < r->envc; i++)
		if (strncmp(r->envp[i], "PATH=", 5) == 0)
			return r->envp[i] + 5;
	return "";
}

/* Try each directory of PATH; keep the most informative error, as shells do. */
static int exec_in_path(struct request *r)
{
	const char *name = r->argv[0], *at = env_path(r);
	char file[LIMIT_PATH];
	int err = ENOENT;

	if (strchr(name, '/')) {
		(void)execve(name, r->argv, r->envp);
		return errno;
	}
	while (*at && *name) {
		int n = (int)strcspn(at, ":");

		/* Check first, because each exec waits for the warden, even one that fails. */
		if (snprintf(file, sizeof file, "%.*s/%s", n, n ? at : ".", name) <
			    (int)sizeof file &&
		    access(file, F_OK) == 0) {
			(void)execve(file, r->argv, r->envp);
			err = errno;
		}
		at += n + (at[n] == ':');
	}
	return err;
}

static void __attribute__((noreturn)) exec_command(struct request *r, struct user *u)
{
	char *login[] = { u->shell, "-l", NULL };
	int err;

	if (r->argc == 0) {
		r->argv = login;
		r->argc = 2;
	}
	wait_at_gate();
	stage = STAGE_EXEC;
	err = exec_in_path(r);
	fail(err, "'%s'", r->argv[0]);
}

static int file_operation(const struct request *r)
{
	switch (r->op) {
	case CALL_READ_FILE:
		return files_read(r->path, r->offset, r->length);
	case CALL_WRITE_FILE:
		return files_write(r->path, r->mode, r->argv);
	case CALL_READ_TREE:
		return files_read_tree(r->path);
	case CALL_WRITE_TREE:
		return files_write_tree(r->path);
	case CALL_LIST:
		return list_run(r->path, r->argc ? r->argv[0] : "0");
	case CALL_WATCH:
		return watch_run(r->path, r->argv);
	case CALL_EXEC:
	default:
		fail(ENOSYS, "operation %d", (int)r->op);
	}
}

/* First of all, so that all its resources from now on count for the call. */
static void enter_group(const struct request *r)
{
	if (r->fds[FD_ENTRY] >= 0 && write(r->fds[FD_ENTRY], "0", 1) != 1)
		fail(errno, "enter the call's control group");
}

static void limit_itself(const struct request *r)
{
	const char *what = "";
	int err = rlimits_apply(r, &what);

	if (err < 0)
		fail(-err, "limit %s", what);
}

void child_prepare(const struct request *r)
{
	user_remember(request_user(r));
}

void child_run(struct request *r, int fail_fd)
{
	struct user u;

	fail_to = fail_fd;
	enter_group(r);
	/*
	 * No longer needed. It is a directory of the host, and ".." from it leads to the host's
	 * files.
	 */
	fd_close(&r->fds[FD_CGROUP]);
	reset_signals();
	take_stdio(r);
	install_filter(r);
	limit_itself(r); /* now that it has nothing more to send */
	close_the_rest(r);
	await_order(r);
	find_user(r, &u);
	if (r->profile == PROFILE_LOCKED)
		give_up_gaining_rights();
	drop_rights(&u);
	enter_cwd(r, &u);
	(void)umask(022);
	if (r->op != CALL_EXEC) {
		(void)signal(SIGPIPE, SIG_IGN); /* report a reader that left as an error */
		_exit(file_operation(r));
	}
	fill_env(r, &u);
	exec_command(r, &u);
}
