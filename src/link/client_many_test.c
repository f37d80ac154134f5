/* SPDX-License-Identifier: Apache-2.0 */
/* Ask wardens that misbehave. */
#include "link/client_many.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/clock.h"
#include "link/wait.h"
#include "store/store_test.h"
#include "wire/frame.h"

static struct state s;

enum manner { SILENT, REFUSES, ANSWERS };

static void answer(int fd, enum manner how)
{
	auto_done(buf_done) struct buf b = BUF_INIT(1024);
	size_t at = 0;
	char in[512];

	CHECK(read(fd, in, sizeof in) > 0);
	CHECK(frame_begin(&b, how == REFUSES ? MSG_C_ERROR : MSG_C_STATE, 1, &at) == 0);
	CHECK(field_put_c(&b, how == REFUSES ? TAG_TEXT : TAG_STATE, "running") == 0);
	CHECK(field_put_u64(&b, TAG_CALL, 7) == 0 && frame_end(&b, at, 0) == 0);
	/* In two pieces. */
	CHECK(write(fd, b.data, 5) == 5);
	CHECK(write(fd, b.data + 5, b.len - 5) == (ssize_t)b.len - 5);
}

/* A process that holds the lock of a sandbox and listens as its warden would. */
static pid_t begin_warden(const char *id, enum manner how)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	pid_t test = getpid(), pid;
	int ready[2], lock, fd;
	char dir[64], c;

	(void)snprintf(dir, sizeof dir, "sandboxes/%s", id);
	CHECK(mkdirat(s.fd, dir, 0700) == 0 && pipe2(ready, O_CLOEXEC) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == test);
		OK(state_lock(&s, id, &lock, &t_e));
		(void)snprintf(addr.sun_path, sizeof addr.sun_path, "/proc/self/fd/%d/%s/sock",
			       s.fd, dir);
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		CHECK(bind(fd, (void *)&addr, sizeof addr) == 0 && listen(fd, 256) == 0);
		CHECK(write(ready[1], "x", 1) == 1);
		for (int client; (client = accept4(fd, NULL, NULL, SOCK_CLOEXEC)) >= 0;)
			if (how != SILENT)
				answer(client, how);
		_exit(0);
	}
	CHECK(read(ready[0], &c, 1) == 1);
	return pid;
}

static void a_warden_that_refuses_to_end_is_killed(void)
{
	struct loop loop;
	struct waiter w = { .loop = &loop, .cancel_fd = FD_NONE };
	int status = 0;
	pid_t pid;

	t_state(&s);
	pid = begin_warden("aaaaaaaaaaaa", REFUSES);
	CHECK(loop_init(&loop) == 0);
	OK(link_end_sandbox(&w, &s, "aaaaaaaaaaaa", &t_e));
	loop_done(&loop);
	CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) &&
	      WTERMSIG(status) == SIGKILL);
	CHECK(!state_is_alive(&s, "aaaaaaaaaaaa"));
}

static void those_that_answer_are_known_though_others_do_not(void)
{
	struct client_question qs[] = { { .id = "aaaaaaaaaaaa" },
					{ .id = "bbbbbbbbbbbb" },
					{ .id = NULL },
					{ .id = "cccccccccccc" },
					{ .id = "dddddddddddd" } };
	uint64_t start;
	pid_t pids[3];

	t_state(&s);
	pids[0] = begin_warden("aaaaaaaaaaaa", ANSWERS);
	pids[1] = begin_warden("bbbbbbbbbbbb", SILENT);
	pids[2] = begin_warden("cccccccccccc", REFUSES);
	start = clock_mono_ns();
	client_info_many(&s, qs, 5, 100);
	CHECK(clock_mono_ns() - start >= 100 * NS_PER_MS);
	CHECK(qs[0].known && qs[0].state.calls_total == 7);
	CHECK_STR(qs[0].state.state, "running");
	CHECK(!qs[1].known && !qs[2].known && !qs[3].known && !qs[4].known);
	for (int i = 0; i < 3; i++)
		CHECK(kill(pids[i], SIGKILL) == 0);
}

static void many_are_asked_in_rounds(void)
{
	enum { MANY = 300 };
	static struct client_question qs[MANY];

	t_state(&s);
	(void)begin_warden("aaaaaaaaaaaa", ANSWERS);
	for (int i = 0; i < MANY; i++)
		qs[i].id = "aaaaaaaaaaaa";
	client_info_many(&s, qs, MANY, 2000);
	for (int i = 0; i < MANY; i++)
		CHECK(qs[i].known);
}

T_MAIN(T(a_warden_that_refuses_to_end_is_killed),
       T(those_that_answer_are_known_though_others_do_not), T(many_are_asked_in_rounds))
