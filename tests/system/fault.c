/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lets the n-th change of the disk fail, of a program and all that it starts, or of a process that
 * runs:
 *
 *   fault REPORT N ERRNO[*] PREFIX COMMAND...
 *   fault REPORT N ERRNO[*] PREFIX -p PID          until SIGTERM
 *   fault REPORT N ERRNO[*] PREFIX -p PID K        of the K-th that it starts from now on
 *
 * N is 0 to only count, or a name: the first change that has it in it. ERRNO 0: the process is
 * killed in the moment before. A change is a system call that a full or broken disk can refuse, on
 * something below PREFIX, of which there may be several with colons between; where it is *, every
 * system call counts. With * after ERRNO all that come after it fail too, as on a disk that stays
 * full. REPORT gets one line: how many there were, and which failed. amd64 only: registers are
 * written.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TASKS = 4096, TRAP = SIGTRAP | 0x80 };
enum where {
	AT_FD,
	AT_DIR,
	AT_PATH,
	AT_DIR3
}; /* what says where: a descriptor, a directory and name, a path */

static const struct {
	long nr;
	const char *name;
	enum where where;
} calls[] = {
	{ SYS_write, "write", AT_FD },	       { SYS_pwrite64, "pwrite", AT_FD },
	{ SYS_writev, "writev", AT_FD },       { SYS_pwritev, "pwritev", AT_FD },
	{ SYS_fsync, "fsync", AT_FD },	       { SYS_fdatasync, "fdatasync", AT_FD },
	{ SYS_syncfs, "syncfs", AT_FD },       { SYS_ftruncate, "ftruncate", AT_FD },
	{ SYS_fallocate, "fallocate", AT_FD }, { SYS_fsetxattr, "fsetxattr", AT_FD },
	{ SYS_fchmod, "fchmod", AT_FD },       { SYS_copy_file_range, "copy_file_range", AT_DIR3 },
	{ SYS_mkdirat, "mkdir", AT_DIR },      { SYS_mknodat, "mknod", AT_DIR },
	{ SYS_symlinkat, "symlink", AT_DIR3 }, { SYS_linkat, "link", AT_DIR3 },
	{ SYS_renameat, "rename", AT_DIR },    { SYS_renameat2, "rename", AT_DIR },
	{ SYS_unlinkat, "unlink", AT_DIR },    { SYS_openat, "create", AT_DIR },
	{ SYS_open, "create", AT_PATH },       { SYS_mkdir, "mkdir", AT_PATH },
	{ SYS_rename, "rename", AT_PATH },     { SYS_unlink, "unlink", AT_PATH },
	{ SYS_rmdir, "rmdir", AT_PATH },       { SYS_fchown, "fchown", AT_FD },
	{ SYS_fchownat, "chown", AT_DIR },     { SYS_fchmodat, "chmod", AT_DIR },
	{ SYS_utimensat, "utimens", AT_DIR },  { SYS_sendfile, "sendfile", AT_FD },
	{ SYS_ioctl, "ioctl", AT_FD },	       { SYS_lsetxattr, "setxattr", AT_PATH },
	{ SYS_setxattr, "setxattr", AT_PATH },
};

static struct {
	const char *prefix, *report, *name;
	int error;
	long wanted, seen;
	int more;	     /* all that follow too */
	pid_t parent, child; /* only the child counts; 0: all do, there is none yet */
	int children;	     /* that are still to come */
	char failed[PATH_MAX + 64];
} f;

static struct {
	pid_t pid;
	int inside, fail;
} tasks[TASKS];

static int task_of(pid_t pid)
{
	int i, room = -1;

	for (i = 0; i < TASKS; i++) {
		if (tasks[i].pid == pid)
			return i;
		if (room < 0 && !tasks[i].pid)
			room = i;
	}
	tasks[room].pid = pid;
	tasks[room].inside = tasks[room].fail = 0;
	return room;
}

static void finish(int code)
{
	FILE *o = fopen(f.report, "we");

	fprintf(o, "%ld %s\n", f.seen, f.failed[0] ? f.failed : "-");
	fclose(o);
	exit(code);
}

static void fd_path(pid_t pid, long fd, char *out)
{
	char link[64];
	ssize_t n;

	if ((int)fd == AT_FDCWD)
		snprintf(link, sizeof link, "/proc/%d/cwd", pid);
	else
		snprintf(link, sizeof link, "/proc/%d/fd/%d", pid, (int)fd);
	n = readlink(link, out, PATH_MAX - 1);
	out[n < 0 ? 0 : n] = 0;
}

static void text(pid_t pid, unsigned long at, char *out)
{
	struct iovec to = { out, 1 }, from = { (void *)at, 1 };

	for (int i = 0; i < PATH_MAX - 1;
	     i++, to.iov_base = out + i, from.iov_base = (void *)(at + i)) {
		if (process_vm_readv(pid, &to, 1, &from, 1, 0) != 1)
			out[i] = 0;
		if (!out[i])
			return;
	}
	out[PATH_MAX - 1] = 0;
}

/* Where call k is about to change something. */
static void place(pid_t pid, int k, const struct user_regs_struct *r, char *out)
{
	char dir[PATH_MAX], name[PATH_MAX];
	long fd = calls[k].where == AT_DIR3 ? (long)r->rdx : (long)r->rdi;
	unsigned long path = r->rsi;
	int used = 0;

	if (calls[k].where == AT_FD || r->orig_rax == SYS_copy_file_range) {
		fd_path(pid, fd, out);
		return;
	}
	if (r->orig_rax == SYS_symlinkat)
		fd = (long)r->rsi, path = r->rdx;
	if (r->orig_rax == SYS_linkat)
		path = r->r10;
	if (calls[k].where == AT_PATH)
		fd = AT_FDCWD, path = r->rdi;
	text(pid, path, name);
	if (sscanf(name, "/proc/self/fd/%ld%n", &fd, &used) == 1 && !name[used]) {
		fd_path(pid, fd, out);
		return;
	}
	fd_path(pid, fd, dir);
	if (name[0] == '/')
		snprintf(out, PATH_MAX, "%s", name);
	else
		snprintf(out, PATH_MAX, "%.2000s/%.2000s", dir, name);
}

/* The length of the prefix that a path has, or 0. */
static size_t below(const char *path)
{
	for (const char *p = f.prefix; p && *p; p = strchr(p, ':') ? strchr(p, ':') + 1 : NULL)
		if (strncmp(path, p, strcspn(p, ":")) == 0)
			return strcspn(p, ":");
	return 0;
}

static int counts(pid_t pid, const struct user_regs_struct *r, char *what)
{
	char path[PATH_MAX];
	size_t n;
	unsigned long flags = r->orig_rax == SYS_open ? r->rsi : r->rdx;

	if (strcmp(f.prefix, "*") == 0)
		return snprintf(what, PATH_MAX + 64, "call %lld", (long long)r->orig_rax);
	for (int k = 0; k < (int)(sizeof calls / sizeof *calls); k++) {
		if (calls[k].nr != (long)r->orig_rax)
			continue;
		if (strcmp(calls[k].name, "create") == 0 &&
		    !(flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY))))
			return 0;
		/* Of these only what clones and makes subvolumes. */
		if (r->orig_rax == SYS_ioctl && ((r->rsi >> 8) & 0xff) != 0x94)
			return 0;
		place(pid, k, r, path);
		n = below(path);
		if (n)
			snprintf(what, PATH_MAX + 64, "%s %s", calls[k].name, path + n);
		return n != 0;
	}
	return 0;
}

static void on_call(pid_t pid, int i)
{
	struct user_regs_struct r;
	char what[PATH_MAX + 64];

	if (ptrace(PTRACE_GETREGS, pid, 0, &r) < 0)
		return;
	if (tasks[i].inside) {
		tasks[i].inside = 0;
		if (tasks[i].fail) {
			r.rax = (unsigned long long)-f.error;
			ptrace(PTRACE_SETREGS, pid, 0, &r);
		}
		tasks[i].fail = 0;
		return;
	}
	tasks[i].inside = 1;
	if ((f.parent && pid != f.child) || !counts(pid, &r, what))
		return;
	f.seen++;
	if (f.name && !f.wanted && strstr(what, f.name))
		f.wanted = f.seen;
	if (!f.wanted || f.seen < f.wanted || (f.seen > f.wanted && !f.more))
		return;
	if (f.seen == f.wanted)
		snprintf(f.failed, sizeof f.failed, "%s", what);
	if (!f.error) {
		kill(pid, SIGKILL);
		return;
	}
	tasks[i].fail = 1;
	r.orig_rax = (unsigned long long)-1;
	ptrace(PTRACE_SETREGS, pid, 0, &r);
}

static void go_on(pid_t pid, int sig)
{
	ptrace(PTRACE_SYSCALL, pid, 0, sig);
}

static void on_stop(pid_t pid, int st)
{
	int i = task_of(pid), sig = WSTOPSIG(st), event = st >> 16;
	unsigned long started = 0;

	if (pid == f.parent && event != PTRACE_EVENT_STOP && event &&
	    ptrace(PTRACE_GETEVENTMSG, pid, 0, &started) == 0 && --f.children == 0) {
		f.child = (pid_t)started;
		printf("started\n");
		fflush(stdout);
	}
	if (sig == TRAP) {
		on_call(pid, i);
		go_on(pid, 0);
	} else if (event == PTRACE_EVENT_STOP || event) {
		if (event == PTRACE_EVENT_EXEC)
			tasks[i].inside = 1; /* its end is still to come */
		go_on(pid, 0);
	} else {
		go_on(pid, sig);
	}
}

static volatile sig_atomic_t stop;

static void on_term(int sig)
{
	(void)sig;
	stop = 1;
}

static pid_t start(char **argv)
{
	int go[2];
	pid_t pid;
	char c;

	if (pipe2(go, O_CLOEXEC) < 0)
		exit(99);
	pid = fork();
	if (pid == 0) {
		if (read(go[0], &c, 1) != 1)
			_exit(99);
		execv(argv[0], argv);
		_exit(99);
	}
	if (ptrace(PTRACE_SEIZE, pid, 0,
		   PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
			   PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC) < 0 ||
	    ptrace(PTRACE_INTERRUPT, pid, 0, 0) < 0)
		exit(98);
	(void)!write(go[1], "", 1);
	close(go[0]);
	close(go[1]);
	return pid;
}

/* Only itself: what it starts are helpers that look at other things; or only one of these. */
static pid_t attach(pid_t pid, int child)
{
	long others = child ? PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE : 0;

	f.parent = child ? pid : 0;
	f.children = child;
	if (ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACESYSGOOD | others) < 0 ||
	    ptrace(PTRACE_INTERRUPT, pid, 0, 0) < 0)
		exit(98);
	printf("attached\n");
	fflush(stdout);
	return pid;
}

int main(int argc, char **argv)
{
	struct sigaction sa = { .sa_handler = on_term };
	pid_t first, pid;
	int st;

	if (argc < 6)
		return 99;
	f.report = argv[1];
	f.wanted = atol(argv[2]);
	f.name = f.wanted || strcmp(argv[2], "0") == 0 ? NULL : argv[2];
	f.error = atoi(argv[3]);
	f.more = strchr(argv[3], '*') != NULL;
	f.prefix = argv[4];
	sigaction(SIGTERM, &sa, NULL);
	first = strcmp(argv[5], "-p") == 0 ? attach(atoi(argv[6]), argc > 7 ? atoi(argv[7]) : 0)
					   : start(argv + 5);
	while ((pid = waitpid(-1, &st, __WALL)) > 0 || errno == EINTR) {
		if (stop)
			finish(0); /* who is traced goes on alone */
		if (pid < 0)
			continue;
		if (WIFSTOPPED(st)) {
			on_stop(pid, st);
			continue;
		}
		tasks[task_of(pid)].pid = 0;
		if (pid == first)
			finish(WIFEXITED(st) ? WEXITSTATUS(st) : 200 + WTERMSIG(st));
	}
	finish(97);
}
