/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>

#include "loop/conn_fixture.h"

enum { NOBODY_ELSE = 54321 }; /* a uid */

static bool jam_with(int sock, int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} ctl = { .bytes = { 0 } };
	struct iovec iov = { "j", 1 };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &ctl, .msg_controllen = sizeof ctl
	};

	ctl.align = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
				      .cmsg_type = SCM_RIGHTS,
				      .cmsg_len = CMSG_LEN(sizeof fd) };
	memcpy(CMSG_DATA(&ctl.align), &fd, sizeof fd);
	return sendmsg(sock, &m, MSG_NOSIGNAL) == 1;
}

static void frames_arrive_in_order_with_their_descriptors(void)
{
	set_up(true);
	send_one(&a.c, 1);
	send_fds(&a.c, LIMIT_FRAME_FDS, 3);
	send_one(&a.c, 3);
	send_fds(&a.c, 1, 0);
	send_fds(&a.c, 2, 0);
	send_one(&a.c, END);
	CHECK(loop_run(&l) == 0);
	CHECK(b.frames == 6 && memcmp(b.types, "\x01\x02\x03\x02\x02\xc8", 6) == 0);
	CHECK(b.fds == LIMIT_FRAME_FDS + 3);
	CHECK(a.closed == 0 && b.closed == 0);
	tear_down();
}

static void descriptors_wait_in_the_backlog_with_their_frames(void)
{
	set_up(true);
	for (int i = 0; i < 40; i++) {
		send_fds(&a.c, i % (LIMIT_FRAME_FDS + 1), (size_t)i * 2000);
		send_one(&a.c, 3);
	}
	CHECK(conn_backlog(&a.c) > LIMIT_CONN_HIGH);
	send_one(&a.c, END);
	CHECK(loop_run(&l) == 0);
	CHECK(b.frames == 81 && b.closed == 0);
	CHECK(b.fds == 4 * 36 + 0 + 1 + 2 + 3);
	tear_down();
}

static void unsent_descriptors_are_closed_with_the_connection(void)
{
	set_up(true);
	for (int i = 0; i < 40; i++)
		send_fds(&a.c, LIMIT_FRAME_FDS, 50000);
	CHECK(a.c.parcels != NULL);
	tear_down();
}

static void a_frame_of_the_limit_passes(void)
{
	set_up(true);
	send_fds(&a.c, LIMIT_FRAME_FDS, LIMIT_FRAME_BODY);
	send_one(&a.c, END);
	CHECK(loop_run(&l) == 0);
	CHECK(b.frames == 2 && b.fds == LIMIT_FRAME_FDS && b.bytes == LIMIT_FRAME_BODY + 4);
	tear_down();
}

static void an_oversize_frame_is_not_sent_and_its_descriptors_are_closed(void)
{
	static char body[LIMIT_FRAME_BODY + 1];
	int fd = fcntl(0, F_DUPFD_CLOEXEC, 3);
	size_t at = 0;

	set_up(true);
	CHECK(conn_send(&a.c, 1, 0, (struct str){ body, sizeof body }) == -EMSGSIZE);
	CHECK(conn_begin(&a.c, 1, 0, &at) == 0);
	CHECK(buf_add(&a.c.out, body, sizeof body) == 0);
	CHECK(conn_end(&a.c, at, &fd, 1) == -EMSGSIZE);
	CHECK(fcntl(fd, F_GETFD) < 0 && errno == EBADF);
	CHECK(conn_backlog(&a.c) == 0);
	send_one(&a.c, END);
	CHECK(loop_run(&l) == 0);
	CHECK(b.frames == 1 && b.closed == 0);
	fds_before--;
	tear_down();
}

static void too_many_descriptors_are_refused_and_closed(void)
{
	int fds[256];
	size_t at = 0;

	set_up(true);
	for (int i = 0; i < 256; i++)
		CHECK((fds[i] = fcntl(0, F_DUPFD_CLOEXEC, 3)) >= 0);
	CHECK(conn_begin(&a.c, 1, 0, &at) == 0);
	CHECK(conn_end(&a.c, at, fds, 256) == -EMSGSIZE);
	CHECK(conn_backlog(&a.c) == 0);
	tear_down();
}

static void a_cancelled_frame_leaves_no_trace(void)
{
	size_t at = 0;

	set_up(true);
	CHECK(conn_begin(&a.c, 1, 0, &at) == 0);
	CHECK(field_put_c(&a.c.out, 1, "half") == 0);
	conn_cancel(&a.c, at);
	send_one(&a.c, END);
	CHECK(loop_run(&l) == 0);
	CHECK(b.frames == 1 && b.types[0] == END && b.closed == 0);
	tear_down();
}

static void a_closed_peer_is_reported_once_without_error(void)
{
	set_up(true);
	conn_done(&a.c);
	CHECK(loop_run(&l) == 0);
	CHECK(b.closed == 1 && b.err == 0);
	tear_down();
}

static void last_frames_of_a_peer_that_left_are_delivered(void)
{
	set_up(true);
	for (int i = 0; i < 10; i++)
		send_one(&a.c, 1);
	conn_done(&a.c);
	CHECK(loop_run(&l) == 0);
	CHECK(b.frames == 10 && b.closed == 1);
	tear_down();
}

static void done_from_the_frame_callback_stops_delivery(void)
{
	set_up(true);
	b.done_in_frame = true;
	for (int i = 0; i < 10; i++)
		send_one(&a.c, 1);
	send_fds(&a.c, 2, 0);
	CHECK(loop_run(&l) == 0);
	CHECK(b.frames == 1 && b.closed == 0);
	CHECK(a.closed == 1);
	tear_down();
}

static void frames_split_anywhere_are_joined(void)
{
	auto_done(buf_done) struct buf out = BUF_INIT(1000);

	set_up(false);
	CHECK(frame_put(&out, 1, 0, STR("hello")) == 0);
	CHECK(frame_put(&out, 2, 0, STR("world")) == 0);
	for (size_t i = 0; i < out.len; i++) {
		raw(out.data + i, 1, 0);
		run_for_ms(1);
	}
	CHECK(a.frames == 2 && a.bytes == 10 && a.closed == 0);
	tear_down();
}

static void a_header_above_the_limit_ends_the_connection(void)
{
	set_up(false);
	raw("\x01\0\x10\0\x01\0\0\0\0\0\0\0", 12, 0);
	CHECK(loop_run(&l) == 0);
	CHECK(a.closed == 1 && a.err == -EMSGSIZE && a.frames == 0);
	tear_down();
}

static void a_malformed_header_ends_the_connection_after_the_good_frames(void)
{
	set_up(false);
	raw("\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\x01\0\x01\0\0\0\0\0", 24, 0);
	CHECK(loop_run(&l) == 0);
	CHECK(a.closed == 1 && a.err == -EBADMSG && a.frames == 1);
	tear_down();
}

static void missing_descriptors_end_the_connection(void)
{
	set_up(false);
	raw("\0\0\0\0\x01\x02\0\0\0\0\0\0", 12, 1);
	CHECK(loop_run(&l) == 0);
	CHECK(a.closed == 1 && a.err == -EBADMSG && a.frames == 0);
	tear_down();
}

static void more_descriptors_than_a_frame_may_have_end_the_connection(void)
{
	set_up(false);
	raw("\0\0\0\0\x01\x01\0\0\0\0\0\0", 12, LIMIT_FRAME_FDS + 1);
	CHECK(loop_run(&l) == 0);
	CHECK(a.closed == 1 && a.err == -EBADMSG && a.frames == 0);
	tear_down();
}

static void hoarded_descriptors_end_the_connection_at_the_limit(void)
{
	set_up(false);
	for (int i = 0; i < CONN_FDQ; i += LIMIT_FRAME_FDS)
		raw("\0\0\0\0\x01\0\0\0\0\0\0\0", 12, LIMIT_FRAME_FDS);
	run_for_ms(5);
	CHECK(a.closed == 0 && a.c.fdq_len == CONN_FDQ);
	raw("\0\0\0\0\x01\0\0\0\0\0\0\0", 12, 1);
	CHECK(loop_run(&l) == 0);
	CHECK(a.closed == 1 && a.err == -EBADMSG);
	tear_down();
}

static void a_descriptor_other_than_a_socket_is_refused_and_closed(void)
{
	struct conn c;

	set_up(true);
	CHECK(conn_init(&c, &l, open("/proc/self/exe", O_RDONLY | O_CLOEXEC), &ops) == -EPERM);
	conn_done(&c);
	tear_down();
}

/* The bytes that arrived at the bare end, as one frame. */
static struct frame taken(void)
{
	static char bytes[4096];
	ssize_t n = recv(peer, bytes, sizeof bytes, MSG_DONTWAIT);
	struct frame f = { 0 };

	CHECK(n > 0 && frame_parse((struct str){ bytes, (size_t)n }, &f) == n);
	return f;
}

static bool nothing_came(void)
{
	char c;

	return recv(peer, &c, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN && conn_backlog(&a.c) == 0;
}

static void say_sends_numbers_and_texts_in_order(void)
{
	struct frame f;
	struct field field;
	uint64_t v = 0;

	set_up(false);
	CHECK(CONN_SAY(&a.c, 9, 77, { 5, UINT64_MAX, NULL }, { 6, 1, "text" }, { 5, 0, "" }) == 0);
	f = taken();
	CHECK(f.type == 9 && f.chan == 77 && f.nfds == 0);
	CHECK(field_next(&f.body, &field) == 1 && field.tag == 5);
	CHECK(field_u64(field, &v) == 0 && v == UINT64_MAX);
	CHECK(field_next(&f.body, &field) == 1 && field.tag == 6 && str_is(field.value, "text"));
	CHECK(field_next(&f.body, &field) == 1 && field.tag == 5 && field.value.n == 0);
	CHECK(field_next(&f.body, &field) == 0);
	tear_down();
}

static void say_refuses_an_oversize_frame(void)
{
	static char text[LIMIT_FRAME_BODY + 2];

	set_up(false);
	memset(text, 'x', sizeof text - 1);
	CHECK(CONN_SAY(&a.c, 9, 1, { 5, 1, NULL }, { 6, 0, text }) == -EMSGSIZE);
	text[LIMIT_FRAME_BODY] = '\0';
	CHECK(CONN_SAY(&a.c, 9, 1, { 5, 1, NULL }, { 6, 0, text }) == -EMSGSIZE);
	CHECK(nothing_came());
	CHECK(CONN_SAY(&a.c, 9, 1, { 5, 1, NULL }) == 0 && taken().type == 9);
	conn_done(&a.c);
	CHECK(CONN_SAY(&a.c, 9, 1, { 5, 1, NULL }) == -ENOTCONN);
	tear_down();
}

static void a_mention_waits_for_the_next_frame(void)
{
	set_up(true);
	CHECK(CONN_MENTION(&a.c, 7, 1, { 3, 1, NULL }) == 0);
	CHECK(CONN_MENTION(&a.c, 8, 1, { 3, 2, NULL }) == 0);
	CHECK(conn_backlog(&a.c) > 0 && a.c.patience.at_ns != 0);
	send_one(&a.c, END);
	CHECK(conn_backlog(&a.c) == 0 && a.c.patience.at_ns == 0);
	CHECK(loop_run(&l) == 0);
	CHECK(b.frames == 3 && memcmp(b.types, "\x07\x08\xc8", 3) == 0);
	tear_down();
}

static void a_mention_is_sent_after_its_delay(void)
{
	set_up(true);
	CHECK(CONN_MENTION(&a.c, END, 1, { 3, 1, NULL }) == 0);
	CHECK(conn_backlog(&a.c) > 0);
	CHECK(loop_run(&l) == 0);
	CHECK(b.frames == 1 && conn_backlog(&a.c) == 0);
	tear_down();
}

static void push_sends_waiting_mentions(void)
{
	size_t at;

	set_up(true);
	CHECK(conn_begin(&a.c, END, 1, &at) == 0 && conn_end_later(&a.c, at) == 0);
	CHECK(conn_backlog(&a.c) > 0 && a.c.patience.at_ns != 0);
	conn_push(&a.c);
	CHECK(conn_backlog(&a.c) == 0 && a.c.patience.at_ns == 0);
	CHECK(loop_run(&l) == 0);
	CHECK(b.frames == 1);
	tear_down();
}

static void drain_delivers_the_last_frames_of_the_peer(void)
{
	char frame[FRAME_HEADER + 3] = { 3, 0, 0, 0, 7 };

	set_up(false);
	CHECK(write(peer, frame, sizeof frame) == sizeof frame);
	CHECK(conn_drain(&a.c, 20) == -ETIMEDOUT && a.frames == 1 && !a.closed);
	CHECK(read(peer, frame + FRAME_HEADER, 1) == 0); /* the peer sees the end of the stream */
	CHECK(write(peer, frame, sizeof frame) == sizeof frame);
	fd_close(&peer);
	CHECK(conn_drain(&a.c, 1000) == 0 && a.frames == 2 && a.closed);
	tear_down();
}

static void an_oversize_mention_is_refused(void)
{
	static char text[LIMIT_FRAME_BODY + 1];

	set_up(true);
	memset(text, 'x', sizeof text - 1);
	CHECK(CONN_MENTION(&a.c, 7, 1, { 4, 0, text }) < 0);
	CHECK(conn_backlog(&a.c) == 0 && a.c.patience.at_ns == 0);
	tear_down();
}

static void send_read_sends_one_bounded_frame(void)
{
	struct frame f;
	int p[2];

	set_up(false);
	CHECK(pipe2(p, O_CLOEXEC | O_NONBLOCK) == 0 && write(p[1], "0123456789", 10) == 10);
	CHECK(conn_send_read(&a.c, 3, 4, p[0], 7) == 7);
	f = taken();
	CHECK(f.type == 3 && f.chan == 4 && str_is(f.body, "0123456"));
	CHECK(conn_send_read(&a.c, 3, 4, p[0], 7) == 3 && str_is(taken().body, "789"));
	CHECK(conn_send_read(&a.c, 3, 4, p[0], 7) == -EAGAIN && nothing_came());
	CHECK(close(p[1]) == 0);
	CHECK(conn_send_read(&a.c, 3, 4, p[0], 7) == 0 && nothing_came());
	CHECK(conn_send_read(&a.c, 3, 4, -1, 7) == -EBADF && nothing_came());
	CHECK(close(p[0]) == 0);
	tear_down();
}

static void send_read_without_data_leaves_the_backlog_unchanged(void)
{
	int p[2];
	size_t before;

	set_up(false);
	CHECK(pipe2(p, O_CLOEXEC | O_NONBLOCK) == 0);
	fill();
	before = conn_backlog(&a.c);
	CHECK(conn_send_read(&a.c, 3, 4, p[0], PIECE) == -EAGAIN);
	CHECK(conn_backlog(&a.c) == before && a.c.out.data[before] == '\0');
	while (conn_backlog(&a.c) < LIMIT_CONN_OUT - PIECE)
		CHECK(buf_add(&a.c.out, "x", 1) == 0);
	before = conn_backlog(&a.c);
	CHECK(write(p[1], "kept", 4) == 4);
	CHECK(conn_send_read(&a.c, 3, 4, p[0], PIECE) == -E2BIG && conn_backlog(&a.c) == before);
	CHECK(a.c.out.data[before] == '\0' && write(p[1], "more", 4) == 4);
	CHECK(close(p[0]) == 0 && close(p[1]) == 0);
	conn_done(&a.c);
	CHECK(conn_send_read(&a.c, 3, 4, 0, 7) == -ENOTCONN);
	tear_down();
}

/* Other processes of the same user have the maximum of descriptors in flight. */
static void descriptors_wait_while_the_user_has_too_many_in_flight(void)
{
	struct rlimit few = { 1, 1 };
	struct rlimit before;
	int jam[2], fd;
	size_t at = 0;
	char byte;

	set_up(true);
	fd = fcntl(0, F_DUPFD_CLOEXEC, 3);
	CHECK(fd >= 0);
	CHECK(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, jam) == 0);
	CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
	CHECK(geteuid() != 0 || setresuid(NOBODY_ELSE, NOBODY_ELSE, NOBODY_ELSE) == 0);
	few.rlim_max = before.rlim_max;
	CHECK(jam_with(jam[0], 0) && jam_with(jam[0], 0));
	CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
	CHECK(conn_begin(&a.c, 2, 0, &at) == 0 && conn_end(&a.c, at, &fd, 1) == 0);
	CHECK(conn_backlog(&a.c) > 0 && a.c.patience.at_ns != 0);
	CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
	CHECK(read(jam[1], &byte, 1) == 1 && read(jam[1], &byte, 1) == 1);
	send_one(&a.c, END);
	CHECK(loop_run(&l) == 0);
	CHECK(a.closed == 0 && b.closed == 0 && b.frames == 2 && b.fds == 1);
	CHECK(close(jam[0]) == 0 && close(jam[1]) == 0);
	tear_down();
}

T_MAIN(T(frames_arrive_in_order_with_their_descriptors),
       T(descriptors_wait_in_the_backlog_with_their_frames),
       T(unsent_descriptors_are_closed_with_the_connection), T(a_frame_of_the_limit_passes),
       T(an_oversize_frame_is_not_sent_and_its_descriptors_are_closed),
       T(too_many_descriptors_are_refused_and_closed), T(a_cancelled_frame_leaves_no_trace),
       T(a_closed_peer_is_reported_once_without_error),
       T(last_frames_of_a_peer_that_left_are_delivered),
       T(done_from_the_frame_callback_stops_delivery), T(frames_split_anywhere_are_joined),
       T(a_header_above_the_limit_ends_the_connection),
       T(a_malformed_header_ends_the_connection_after_the_good_frames),
       T(missing_descriptors_end_the_connection),
       T(more_descriptors_than_a_frame_may_have_end_the_connection),
       T(hoarded_descriptors_end_the_connection_at_the_limit),
       T(a_descriptor_other_than_a_socket_is_refused_and_closed),
       T(say_sends_numbers_and_texts_in_order), T(say_refuses_an_oversize_frame),
       T(a_mention_waits_for_the_next_frame), T(a_mention_is_sent_after_its_delay),
       T(push_sends_waiting_mentions), T(drain_delivers_the_last_frames_of_the_peer),
       T(an_oversize_mention_is_refused), T(send_read_sends_one_bounded_frame),
       T(send_read_without_data_leaves_the_backlog_unchanged),
       T(descriptors_wait_while_the_user_has_too_many_in_flight))
