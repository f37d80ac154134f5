/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cay-init: pid 1 of a sandbox. It speaks the init protocol (docs/protocol.md) on descriptor 3,
 * runs the warden's requests, and reaps all processes. It runs on the hostile side: nothing outside
 * trusts it without checking. When the stream ends, the warden is gone. Init then exits, and the
 * kernel kills every process of the sandbox.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "init/child.h"
#include "init/dial.h"
#include "init/mover.h"
#include "init/request.h"
#include "init/rlimits.h"
#include "init/stream.h"
#include "loop/conn.h"
#include "sys/filter/landlock.h"
#include "sys/filter/seccomp_filter.h"
#include "sys/ns/caps.h"
#include "sys/process/raw.h"

enum { STREAM = 3, KEEL = 5, SIGNALS = 64 };

struct job {
	uint32_t chan;
	pid_t pid;
	int fail_fd;	   /* the child reports here if it cannot execute */
	struct stream *io; /* carries its stdio; NULL: it has descriptors */
	int status;	   /* valid after its end */
	struct rusage ru;
	bool ahead; /* a spare, made before its command was known */
	struct job *next;
};

static struct loop loop;
static struct conn warden;
static struct loop_io signals;
static struct job *jobs;
static struct job *ending; /* jobs whose process has ended and whose output is still being sent */
static bool streaming;	   /* no descriptors pass: stream.h */
static bool paused;
static pid_t mover; /* 0: none */

/* Exit if the warden cannot be reached. */
static void must(int r)
{
	if (r < 0)
		_exit(1);
}

static void say_failed(uint32_t chan, enum run_stage stage, int err, const char *text)
{
	must(CONN_SAY(&warden, MSG_FAILED, chan, { TAG_STAGE, stage, NULL },
		      { TAG_ERRNO, (uint64_t)err, NULL }, { TAG_TEXT, 0, text }));
}

static void say_exited(const struct job *j, int status, const struct rusage *ru)
{
	uint64_t us = (uint64_t)(ru->ru_utime.tv_sec + ru->ru_stime.tv_sec) * 1000000u +
		      (uint64_t)(ru->ru_utime.tv_usec + ru->ru_stime.tv_usec);

	must(CONN_SAY(&warden, MSG_EXITED, j->chan, { TAG_STATUS, (uint64_t)status, NULL },
		      { TAG_CPU_US, us, NULL }, { TAG_MAXRSS_KB, (uint64_t)ru->ru_maxrss, NULL }));
}

static void job_free(struct job *j)
{
	stream_leave(j->io);
	fd_close(&j->fail_fd);
	free(j);
}

/* More of the job's output has been sent. */
static void on_output(void *ctx)
{
	for (struct job **at = &ending; *at; at = &(*at)->next) {
		struct job *j = *at;

		if (j != ctx || !stream_is_drained(j->io))
			continue;
		*at = j->next;
		say_exited(j, j->status, &j->ru);
		job_free(j);
		return;
	}
}

static void finish(struct job *j, int status, const struct rusage *ru)
{
	struct child_failure f;

	if (read(j->fail_fd, &f, sizeof f) == (ssize_t)sizeof f) {
		f.text[sizeof f.text - 1] = '\0';
		say_failed(j->chan, f.stage, f.sys, f.text);
	} else if (j->io && !stream_is_drained(j->io)) {
		j->status = status;
		j->ru = *ru;
		j->next = ending;
		ending = j;
		return;
	} else {
		say_exited(j, status, ru);
	}
	job_free(j);
}

static void say_prepared(int err)
{
	must(CONN_SAY(&warden, MSG_PREPARED, 0, { TAG_ERRNO, (uint64_t)err, NULL }));
}

static void on_reaped(pid_t pid, int status, const struct rusage *ru)
{
	if (pid == mover) {
		mover = 0;
		say_prepared(WIFEXITED(status) ? WEXITSTATUS(status) : EINTR);
		return;
	}
	for (struct job **at = &jobs; *at; at = &(*at)->next) {
		struct job *j = *at;

		if (j->pid != pid)
			continue;
		*at = j->next;
		finish(j, status, ru);
		return;
	}
	must(CONN_SAY(&warden, MSG_REAPED, 0, { TAG_PID, (uint64_t)pid, NULL },
		      { TAG_STATUS, (uint64_t)status, NULL }));
}

/*
 * Other processes inside must not be able to stop a spare for ever: continue it. It reports
 * failure, or its exec, on its pipe.
 */
static void on_stopped(pid_t pid)
{
	for (const struct job *j = jobs; j; j = j->next) {
		struct pollfd p = { .fd = j->fail_fd, .events = POLLIN };

		if (j->pid == pid && j->ahead && !paused && poll(&p, 1, 0) == 0)
			(void)kill(pid, SIGCONT);
	}
}

/* musl's macro overflows for an exit status of 128 and more. */
static bool is_stopped(int status)
{
	return (status & 0xff) == 0x7f;
}

static void on_signal(struct loop_io *io, uint32_t events)
{
	struct signalfd_siginfo si;
	struct rusage ru;
	pid_t pid;
	int status;

	(void)events;
	while (read(io->fd, &si, sizeof si) > 0)
		;
	while ((pid = wait4(-1, &status, WNOHANG | WUNTRACED, &ru)) > 0)
		if (is_stopped(status))
			on_stopped(pid);
		else
			on_reaped(pid, status, &ru);
}

static pid_t clone_job(struct request *r, int fail_fd)
{
	struct raw_clone_args args = { .exit_signal = SIGCHLD };
	pid_t pid;

	if (r->fds[FD_CGROUP] >= 0) {
		args.flags |= RAW_CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)r->fds[FD_CGROUP];
	}
	oom_order_command();
	pid = raw_clone3(&args);
	if (pid == 0) {
		streams_close();
		child_run(r, fail_fd);
	}
	oom_order_init();
	return pid < 0 ? -errno : pid;
}

/* 0 or -errno. */
static int open_stream(struct job *j, struct request *r)
{
	j->io = stream_new(&loop, &warden, j->chan, on_output, j);
	return j->io ? stream_open(j->io, r) : -ENOMEM;
}

static void start_job(uint32_t chan, struct request *r)
{
	struct job *j = calloc(1, sizeof *j);
	int fail[2];

	if (!j || pipe2(fail, O_CLOEXEC | O_NONBLOCK) < 0) {
		free(j);
		say_failed(chan, STAGE_SETUP, errno, "start a process");
		return;
	}
	*j = (struct job){ .chan = chan, .fail_fd = fail[0], .ahead = r->fds[FD_ORDER] >= 0 };
	child_prepare(r);
	j->pid = streaming ? open_stream(j, r) : 0;
	if (j->pid == 0)
		j->pid = clone_job(r, fail[1]);
	(void)close(fail[1]);
	if (j->pid < 0) {
		say_failed(chan, STAGE_SETUP, -j->pid, "start a process");
		job_free(j);
		return;
	}
	j->next = jobs;
	jobs = j;
	if (!j->ahead) /* a spare reports that itself */
		must(CONN_MENTION(&warden, MSG_STARTED, chan, { TAG_PID, (uint64_t)j->pid, NULL }));
}

static void on_run(const struct frame *f, int *fds)
{
	struct request r;
	int err = request_parse(&r, f, fds, streaming);

	if (err < 0)
		say_failed(f->chan, STAGE_SETUP, -err, "read the request");
	else
		start_job(f->chan, &r);
	request_done(&r);
}

static void on_kill(const struct frame *f)
{
	struct str body = f->body;
	struct field field;
	uint64_t sig;

	if (field_next(&body, &field) != 1 || field.tag != TAG_SIGNAL || field_u64(field, &sig) < 0)
		return;
	if (f->chan == 0) {
		paused = sig == SIGSTOP;
		(void)kill(-1, (int)sig); /* every process but us */
	}
	for (struct job *j = jobs; j; j = j->next)
		/* It may not lead its own process group yet. */
		if (j->chan == f->chan && kill(-j->pid, (int)sig) < 0)
			(void)kill(j->pid, (int)sig);
}

static void on_prepare(const struct frame *f)
{
	static struct move_order order;
	struct raw_clone_args args = { .exit_signal = SIGCHLD };

	if (mover || move_order_parse(&order, f->body) < 0) {
		say_prepared(EINVAL);
		return;
	}
	oom_order_command();
	mover = raw_clone3(&args);
	if (mover == 0)
		mover_run(&order);
	oom_order_init();
	if (mover < 0) {
		mover = 0;
		say_prepared(EAGAIN);
	}
}

/* Every process of the sandbox descends from us: without children we are alone. */
static int enter_generation(const int *fds, int nfds)
{
	siginfo_t si;

	if (nfds != 2)
		return -EBADMSG;
	if (waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) == 0)
		return -EBUSY;
	if (setns(fds[0], CLONE_NEWNS) < 0 || fchdir(fds[1]) < 0 || chroot(".") < 0)
		return -errno;
	return 0;
}

static void on_enter(const struct frame *f, const int *fds)
{
	int r = enter_generation(fds, f->nfds);

	must(CONN_SAY(&warden, MSG_ENTERED, 0, { TAG_ERRNO, (uint64_t)-r, NULL }));
	/* Between two generations nothing can run: exit. */
	if (r < 0 && r != -EBUSY)
		_exit(1);
}

/*
 * Not before the first order. Until then no other process is inside, and the warden verifies us; a
 * rootless warden cannot inspect an undumpable process.
 */
static void become_undumpable(void)
{
	static bool done;

	if (!done && prctl(PR_SET_DUMPABLE, 0) < 0)
		_exit(1);
	done = true;
}

static void dial_stream(uint32_t chan, int fd)
{
	struct stream *s = stream_new(&loop, &warden, chan, NULL, NULL);
	int r = s ? stream_dial(s, fd) : -ENOMEM;

	if (r < 0)
		stream_free(s);
	if (!s)
		(void)close(fd);
	must(CONN_SAY(&warden, MSG_DIALED, chan, { TAG_ERRNO, (uint64_t)-r, NULL }));
}

static void on_dialed(uint32_t chan, int fd)
{
	size_t at;

	if (fd < 0) {
		must(CONN_SAY(&warden, MSG_DIALED, chan, { TAG_ERRNO, (uint64_t)-fd, NULL }));
		return;
	}
	if (streaming) {
		dial_stream(chan, fd);
		return;
	}
	must(conn_begin(&warden, MSG_DIALED, chan, &at));
	must(conn_end(&warden, at, &fd, 1));
}

static void on_dial(const struct frame *f)
{
	struct str body = f->body;
	struct field field;
	uint64_t port;

	if (field_next(&body, &field) == 1 && field.tag == TAG_PORT && field_u64(field, &port) == 0)
		dial_inside(&loop, (uint16_t)port, f->chan, on_dialed);
}

static void on_frame(struct conn *c, const struct frame *f, int *fds)
{
	int r = streaming ? stream_frame(f) : 1;

	(void)c;
	if (r < 0)
		_exit(1);
	become_undumpable();
	if (r == 0) {
		for (int i = 0; i < f->nfds; i++)
			fd_close(&fds[i]);
		return;
	}
	switch (f->type) {
	case MSG_RUN:
	case MSG_STAND_BY:
		on_run(f, fds);
		return;
	case MSG_SIGNAL:
		on_kill(f);
		break;
	case MSG_ENTER:
		on_enter(f, fds);
		break;
	case MSG_DIAL:
		on_dial(f);
		break;
	case MSG_PREPARE:
		on_prepare(f);
		break;
	case MSG_STOP:
		_exit(0);
	default: /* an optional message from a newer warden */
		break;
	}
	for (int i = 0; i < f->nfds; i++)
		fd_close(&fds[i]);
}

static void on_closed(struct conn *c, int err)
{
	(void)c;
	_exit(err < 0);
}

static void on_drained(struct conn *c)
{
	(void)c;
	streams_resume();
}

static int watch_children(void)
{
	sigset_t set;
	int fd;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	return loop_add(&loop, &signals, fd, EPOLLIN, on_signal);
}

/*
 * Commands inherit ignored signals, and the warden ignores those of a terminal. The C library
 * refuses the numbers that it uses itself, which posix_spawn(3) leaves ignored: use the system
 * call.
 */
static void default_signals(void)
{
	struct {
		unsigned long handler, flags, restorer, mask;
	} usual = { 0 };

	for (int sig = 1; sig <= SIGNALS; sig++)
		(void)syscall(SYS_rt_sigaction, sig, &usual, NULL, sizeof usual.mask);
}

/* Install the list of system calls, which confines the whole sandbox. */
static int take_list(void)
{
	struct seccomp_program p;
	int r = seccomp_program_build(&p, child_nested);

	return r < 0 ? r : seccomp_program_install(&p);
}

static int enter_landlock(void)
{
	auto_close int queues = open("/dev/mqueue", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return landlock_enter(&(struct landlock){
		.root_fd = KEEL, .queues_fd = queues, .only_scopes = child_nested });
}

int main(int argc, char **argv)
{
	static const struct conn_ops ops = { .frame = on_frame,
					     .closed = on_closed,
					     .drained = on_drained };
	static const char version[] = "cay-init " CAY_VERSION "\n";

	if (argc > 1 && strcmp(argv[1], "--version") == 0)
		return io_write_all(STDOUT_FILENO, version, sizeof version - 1) < 0;
	streaming = argc > 1 && strcmp(argv[1], "--stream") == 0;
	child_nested = argc > 1 && strcmp(argv[1], "--nested") == 0;
	oom_order_begin();
	rlimits_begin();
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return 1;
	/* Once, for all commands: init keeps its own privileges until an exec. */
	if (caps_bound(caps_root_inside) < 0 || enter_landlock() < 0 || take_list() < 0)
		return 1;
	(void)close(KEEL);
	(void)prctl(PR_SET_NAME, "cay-init"); /* else the name is a memfd's, or a number */
	default_signals();
	if (fcntl(STREAM, F_SETFD, FD_CLOEXEC) < 0 || loop_init(&loop) < 0 || watch_children() < 0)
		return 1;
	if (conn_init(&warden, &loop, STREAM, &ops) < 0)
		return 1;
	must(CONN_SAY(&warden, MSG_HELLO, 0, { TAG_VERSION, PROTO_INIT_VERSION, NULL }));
	return loop_run(&loop) < 0;
}
