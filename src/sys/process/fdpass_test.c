/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/process/fdpass.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "t.h"

enum { NOBODY_ELSE = 54322 }; /* a uid */

static int ours, theirs;
static int pipes[FDPASS_FDS][2];

static void begin(void)
{
	int sv[2];

	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) == 0);
	ours = sv[0];
	theirs = sv[1];
}

/*
 * Sends the write ends of pipes and keeps no copy: a read end then shows whether the peer holds
 * them.
 */
static void send_pipes(const char *msg, size_t size, int n)
{
	int fds[FDPASS_FDS] = { 0 };

	for (int i = 0; i < n; i++) {
		CHECK(pipe2(pipes[i], O_CLOEXEC | O_NONBLOCK) == 0);
		fds[i] = pipes[i][1];
	}
	CHECK(fdpass_send(theirs, msg, size, fds, n) == 0);
	for (int i = 0; i < n; i++)
		CHECK(close(fds[i]) == 0);
}

static int is_held(int i)
{
	char c;

	return read(pipes[i][0], &c, 1) < 0 && errno == EAGAIN;
}

static void a_message_and_its_descriptors_arrive_in_order(void)
{
	int fds[FDPASS_FDS], n = -1;
	char msg[5], c;

	begin();
	send_pipes("hello", 5, FDPASS_FDS);
	CHECK(fdpass_recv(ours, msg, 5, fds, FDPASS_FDS, &n) == 0);
	CHECK(memcmp(msg, "hello", 5) == 0 && n == FDPASS_FDS);
	for (int i = 0; i < n; i++) {
		CHECK(fcntl(fds[i], F_GETFD) == FD_CLOEXEC);
		char sent = (char)('a' + i);

		CHECK(write(fds[i], &sent, 1) == 1);
		CHECK(read(pipes[i][0], &c, 1) == 1 && c == sent);
	}
}

static void a_message_may_come_without_descriptors(void)
{
	int fd = 99, n = -1;
	char msg[5];

	begin();
	send_pipes("hello", 5, 0);
	CHECK(fdpass_recv(ours, msg, 5, &fd, 1, &n) == 0);
	CHECK(n == 0 && fd == 99);
}

static void descriptors_beyond_those_wanted_are_closed(void)
{
	int fds[3], n = -1;
	char msg;

	begin();
	send_pipes("x", 1, FDPASS_FDS);
	CHECK(fdpass_recv(ours, &msg, 1, fds, 3, &n) == 0 && n == 3);
	for (int i = 0; i < FDPASS_FDS; i++)
		CHECK(is_held(i) == (i < 3));
}

static void a_truncated_message_is_an_error(void)
{
	int fd, n = -1;
	char msg[8];

	begin();
	send_pipes("half", 4, 0);
	CHECK(close(theirs) == 0);
	CHECK(fdpass_recv(ours, msg, 8, &fd, 1, &n) == -EPIPE && n == 0);
	CHECK(fdpass_recv(ours, msg, 8, &fd, 1, &n) == -EPIPE && n == 0);
}

static void a_message_in_two_pieces_is_joined(void)
{
	int fd, n = -1;
	char msg[8];

	begin();
	send_pipes("half", 4, 0);
	if (fork() == 0) {
		(void)poll(NULL, 0, 20); /* until the reader has the first half */
		send_pipes("full", 4, 0);
		_exit(0);
	}
	CHECK(fdpass_recv(ours, msg, 8, &fd, 1, &n) == 0);
	CHECK(memcmp(msg, "halffull", 8) == 0);
}

static void a_closed_peer_is_an_error_and_not_a_signal(void)
{
	begin();
	CHECK(close(ours) == 0);
	CHECK(fdpass_send(theirs, "x", 1, NULL, 0) == -EPIPE);
}

static void more_descriptors_than_the_limit_are_refused(void)
{
	int fds[FDPASS_FDS + 1] = { 0 };
	struct pollfd p = { .events = POLLIN };

	begin();
	p.fd = ours;
	CHECK(fdpass_send(theirs, "x", 1, fds, FDPASS_FDS + 1) == -EMSGSIZE);
	CHECK(poll(&p, 1, 0) == 0);
}

static void the_kernel_reports_the_sender_of_a_byte(void)
{
	pid_t pid, sender = 0;

	begin();
	CHECK(write(theirs, "x", 1) == 1);
	CHECK(fdpass_recv_sender(ours, &sender) == -EBADMSG); /* nobody asked */
	CHECK(fdpass_ask_sender(ours) == 0);
	pid = fork();
	if (pid == 0)
		_exit(write(theirs, "x", 1) != 1);
	CHECK(fdpass_recv_sender(ours, &sender) == 0 && sender == pid);
	CHECK(close(theirs) == 0 && fdpass_recv_sender(ours, &sender) == -EPIPE);
}

static void a_message_with_descriptors_has_a_sender_too(void)
{
	pid_t pid, sender = 0;
	int fd = -1, n = 0;
	char msg[4];

	begin();
	CHECK(fdpass_ask_sender(ours) == 0);
	pid = fork();
	if (pid == 0) {
		send_pipes("four", 4, 1);
		_exit(0);
	}
	CHECK(fdpass_recv_from(ours, msg, 4, &fd, 1, &n, &sender) == 0);
	CHECK(n == 1 && fd >= 0 && sender == pid && memcmp(msg, "four", 4) == 0);
	CHECK(close(theirs) == 0);
	CHECK(fdpass_recv_from(ours, msg, 4, &fd, 1, &n, &sender) == -EPIPE && sender == 0);
}

/* While we wait, another process of this user receives the descriptors in flight. */
static void a_user_with_too_many_descriptors_in_flight_waits(void)
{
	struct rlimit few, before;
	int jam[2], status;
	char byte;
	pid_t pid;

	begin();
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, jam) == 0);
	CHECK(geteuid() != 0 || setresuid(NOBODY_ELSE, NOBODY_ELSE, NOBODY_ELSE) == 0);
	CHECK(fdpass_send(jam[0], "x", 1, (int[]){ 0, 1 }, 2) == 0);
	pid = fork();
	if (pid == 0) {
		(void)poll(NULL, 0, 100);
		_exit(read(jam[1], &byte, 1) != 1);
	}
	CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
	few = (struct rlimit){ 1, before.rlim_max };
	CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
	CHECK(fdpass_send(theirs, "x", 1, (int[]){ 0 }, 1) == 0);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(setrlimit(RLIMIT_NOFILE, &before) ==
	      0); /* the leak sanitizer needs some descriptors */
}

T_MAIN(T(a_message_and_its_descriptors_arrive_in_order), T(a_message_may_come_without_descriptors),
       T(descriptors_beyond_those_wanted_are_closed), T(a_truncated_message_is_an_error),
       T(a_message_in_two_pieces_is_joined), T(a_closed_peer_is_an_error_and_not_a_signal),
       T(more_descriptors_than_the_limit_are_refused), T(the_kernel_reports_the_sender_of_a_byte),
       T(a_message_with_descriptors_has_a_sender_too),
       T(a_user_with_too_many_descriptors_in_flight_waits))
