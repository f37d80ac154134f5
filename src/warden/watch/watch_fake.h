/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of the watch: a trace that stores its events, and a call made from a forked child. */
#pragma once

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

#include "sys/filter/seccomp_command.h"
#include "t.h"
#include "warden/watch/watch.h"

enum { FAKE_EVENTS = 2048 };

struct fake_event {
	char kind[16];
	uint32_t call;
	uint64_t parent;
	int64_t pid, ppid, code, signal, cut, count;
	bool unknown, uncertain;
	char path[4096], asked[4096];
	char *argv; /* joined, each followed by '|' */
	size_t argv_len;
	unsigned argc;
	char lost[16];
};

static struct fake_event *fake_events;
static int fake_len;

#define LAST (fake_events[fake_len])

uint64_t trace_begin(struct trace *t, const char *kind, uint32_t call, uint64_t parent)
{
	(void)t;
	if (!fake_events)
		fake_events = calloc(FAKE_EVENTS, sizeof *fake_events);
	CHECK(fake_events && fake_len < FAKE_EVENTS);
	LAST = (struct fake_event){ .call = call, .parent = parent, .code = -1, .signal = -1 };
	(void)snprintf(LAST.kind, sizeof LAST.kind, "%s", kind);
	return 1000 + (uint64_t)fake_len;
}

void trace_text(struct trace *t, const char *key, struct str value)
{
	(void)t;
	if (strcmp(key, "path") == 0)
		CHECK(str_copy(LAST.path, sizeof LAST.path, value));
	else if (strcmp(key, "asked") == 0)
		CHECK(str_copy(LAST.asked, sizeof LAST.asked, value));
	else if (strcmp(key, "lost") == 0)
		CHECK(str_copy(LAST.lost, sizeof LAST.lost, value));
	else
		t_fail(__FILE__, __LINE__, key);
}

void trace_num(struct trace *t, const char *key, int64_t value)
{
	const struct {
		const char *key;
		int64_t *at;
	} nums[] = {
		{ "pid", &LAST.pid },	    { "ppid", &LAST.ppid },    { "code", &LAST.code },
		{ "signal", &LAST.signal }, { "argv_cut", &LAST.cut }, { "count", &LAST.count }
	};

	(void)t;
	for (size_t i = 0; i < ARRAY_LEN(nums); i++)
		if (strcmp(key, nums[i].key) == 0) {
			*nums[i].at = value;
			return;
		}
	t_fail(__FILE__, __LINE__, key);
}

void trace_bool(struct trace *t, const char *key, bool value)
{
	(void)t;
	if (strcmp(key, "unknown") == 0)
		LAST.unknown = value;
	else if (strcmp(key, "certain") == 0)
		LAST.uncertain = !value;
	else
		t_fail(__FILE__, __LINE__, key);
}

void trace_array(struct trace *t, const char *key)
{
	(void)t;
	CHECK_STR(key, "argv");
}

void trace_item(struct trace *t, struct str value)
{
	(void)t;
	LAST.argv = realloc(LAST.argv, LAST.argv_len + value.n + 2);
	memcpy(LAST.argv + LAST.argv_len, value.p, value.n);
	memcpy(LAST.argv + LAST.argv_len + value.n, "|", 2);
	LAST.argv_len += value.n + 1;
	LAST.argc++;
}

void trace_item_num(struct trace *t, int64_t value)
{
	(void)t;
	(void)value;
}

void trace_array_end(struct trace *t)
{
	(void)t;
}

int trace_end(struct trace *t)
{
	(void)t;
	fake_len++;
	return 0;
}

int trace_flush(struct trace *t)
{
	(void)t;
	return 0;
}

int trace_create(struct trace *t, int dirfd, const char *name, const char *sandbox, struct err *e)
{
	(void)t;
	(void)dirfd;
	(void)name;
	(void)sandbox;
	(void)e;
	return 0;
}

void trace_done(struct trace *t)
{
	(void)t;
}

/* ---- a call ---- */

struct fake_call {
	struct loop loop;
	struct trace trace;
	struct watch *watch;
	struct watch_call *call;
	pid_t pid;
	int idle;
};

static void fake_idle(void *ctx)
{
	struct fake_call *f = ctx;

	f->idle++;
	loop_stop(&f->loop);
}

static inline void fake_send_fd(int sock, int fd)
{
	char ctl[CMSG_SPACE(sizeof fd)] = { 0 }, byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = ctl, .msg_controllen = sizeof ctl
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(c), &fd, sizeof fd);
	CHECK(sendmsg(sock, &m, 0) == 1);
}

static inline int fake_recv_fd(int sock)
{
	char ctl[CMSG_SPACE(sizeof(int))] = { 0 }, byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = ctl, .msg_controllen = sizeof ctl
	};
	int fd;

	if (recvmsg(sock, &m, MSG_CMSG_CLOEXEC) != 1 || !CMSG_FIRSTHDR(&m))
		return FD_NONE;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
	return fd;
}

/* In the child: install the filter, as init does for a command, and send the listener. */
static inline void fake_enter(int sock)
{
	int fd;

	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	fd = seccomp_command_install(false, SECCOMP_LISTEN_EXECS, false);
	CHECK(fd >= 0);
	fake_send_fd(sock, fd);
	close(fd);
	close(sock);
}

/*
 * Before Linux 6.11 a listener hangs up when its last process is reaped, not when it ends. Init
 * reaps at once; tests that call this reap only after the loop has ended.
 */
static inline void fake_needs_hangup_at_exit(void)
{
	struct utsname u;
	int major, minor;

	CHECK(uname(&u) == 0 && sscanf(u.release, "%d.%d", &major, &minor) == 2);
	if (major < 6 || (major == 6 && minor < 11))
		t_skip("a kernel older than 6.11 tells the end of a call when it is reaped");
}

/* Start a call that runs fn; its exec waits until fake_run(). */
static inline void fake_begin(struct fake_call *f, int root_fd, void (*fn)(void *), void *arg)
{
	int socks[2], listener;

	fake_needs_hangup_at_exit();
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, socks) == 0);
	*f = (struct fake_call){ .pid = fork() };
	CHECK(f->pid >= 0);
	if (f->pid == 0) {
		close(socks[0]);
		fake_enter(socks[1]);
		fn(arg);
		_exit(99);
	}
	close(socks[1]);
	listener = fake_recv_fd(socks[0]);
	CHECK(listener >= 0);
	close(socks[0]);
	CHECK(loop_init(&f->loop) == 0);
	CHECK(watch_new(&f->loop, &f->trace, root_fd, &f->watch) == 0);
	CHECK(watch_call_new(f->watch, 7, 500, listener, fake_idle, f, &f->call) == 0);
}

static inline void fake_end(struct fake_call *f)
{
	watch_call_free(f->call);
	watch_free(f->watch);
	loop_done(&f->loop);
	for (int i = 0; i < fake_len; i++)
		free(fake_events[i].argv);
	free(fake_events);
	fake_events = NULL;
}

static inline int open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	CHECK(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* Run fn as a call to its end. Then fake_events has the events. */
static inline struct fake_call run_in(const char *root, void (*fn)(void *), void *arg)
{
	int root_fd = open(root, O_PATH | O_CLOEXEC), before = open_fds(), st;
	static struct fake_call f; /* idle() keeps a pointer to it */

	CHECK(root_fd >= 0);
	fake_begin(&f, root_fd, fn, arg);
	CHECK(loop_run(&f.loop) == 0);
	CHECK(waitpid(f.pid, &st, 0) == f.pid);
	CHECK(f.idle == 1);
	watch_call_free(f.call);
	CHECK(watch_call_of(f.watch, f.pid) == 0);
	watch_free(f.watch);
	loop_done(&f.loop);
	CHECK(open_fds() == before);
	return f;
}

static inline struct fake_call run(void (*fn)(void *), void *arg)
{
	return run_in("/", fn, arg);
}

/*
 * A program without libraries, for other roots and for many execs. It writes the letter and the
 * first byte of its first argument to descriptor FAKE_TALLY, if that is open, and ends.
 */
enum { FAKE_TALLY = 9, FAKE_BASE = 0x400000 };
static inline void fake_program(const char *path, char letter)
{
#ifdef __x86_64__
	enum { CODE = 43, LETTER_AT = 11, MACHINE = EM_X86_64 };
	/* write(9, letter, 1); write(9, argv[1], 1); exit(0) */
	static const unsigned char code[CODE] = { 0xb8, 1,    0,    0,	  0,	0xbf, 9,    0,
						  0,	0,    0xbe, 0,	  0,	0,    0,    0xba,
						  1,	0,    0,    0,	  0x0f, 0x05, 0xb8, 1,
						  0,	0,    0,    0x48, 0x8b, 0x74, 0x24, 0x10,
						  0x0f, 0x05, 0xb8, 0x3c, 0,	0,    0,    0x31,
						  0xff, 0x0f, 0x05 };
#else
	enum { CODE = 48, MACHINE = EM_AARCH64 };
	static const uint32_t code[CODE / 4] = { 0xd2800808, 0xd2800120, 0x10000141, 0xd2800022,
						 0xd4000001, 0xd2800120, 0xf9400be1, 0xd4000001,
						 0xd2800ba8, 0xd2800000, 0xd4000001, 0xd503201f };
#endif
	struct {
		Elf64_Ehdr e;
		Elf64_Phdr p;
		unsigned char code[CODE];
		char letter;
	} f = {
		.e = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		       .e_type = ET_EXEC,
		       .e_machine = MACHINE,
		       .e_version = EV_CURRENT,
		       .e_entry = FAKE_BASE + offsetof(__typeof__(f), code),
		       .e_phoff = sizeof f.e,
		       .e_ehsize = sizeof f.e,
		       .e_phentsize = sizeof f.p,
		       .e_phnum = 1 },
		.p = { .p_type = PT_LOAD,
		       .p_flags = PF_R | PF_X,
		       .p_vaddr = FAKE_BASE,
		       .p_filesz = sizeof f,
		       .p_memsz = sizeof f,
		       .p_align = 0x1000 },
		.letter = letter,
	};
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);

	memcpy(f.code, code, sizeof code);
#ifdef __x86_64__
	memcpy(f.code + LETTER_AT, &(uint32_t){ FAKE_BASE + offsetof(__typeof__(f), letter) }, 4);
#endif
	CHECK(fd >= 0 && write(fd, &f, sizeof f) == (ssize_t)sizeof f);
	close(fd);
}

static inline void exec_argv(void *argv)
{
	/* A syscall, because execv() does not accept NULL as argv. */
	(void)syscall(SYS_execve, "/bin/true", argv, environ);
}

static inline void exec_sh(void *script)
{
	execl("/bin/sh", "sh", "-c", (char *)script, NULL);
}

static inline const struct fake_event *nth(const char *kind, int n)
{
	for (int i = 0; i < fake_len; i++)
		if (strcmp(fake_events[i].kind, kind) == 0 && n-- == 0)
			return &fake_events[i];
	return NULL;
}

static inline int count(const char *kind)
{
	int n = 0;

	while (nth(kind, n))
		n++;
	return n;
}

static inline uint64_t seq_of(const struct fake_event *e)
{
	return 1000 + (uint64_t)(e - fake_events);
}
