/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of links: a link across a socketpair to a scripted warden. hear() reads a frame that
 * the link has sent, say() answers, turn() lets the link read. tear_down() checks that no
 * descriptor leaks.
 */
#pragma once

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/io.h"
#include "link/wait.h"
#include "t.h"

static struct loop loop;
static struct waiter waiter;
static struct link *link_;
static int peer = FD_NONE;
static int fds_before;
static int closed_times, ready_times;
static struct err closed_why;
static bool free_when_closed;

static inline int count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	CHECK(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static inline void on_link_ready(struct link *l, const struct link_ready *r)
{
	CHECK(l == link_);
	ready_times++;
	CHECK(r->init_pid == 77);
}

static inline void on_link_closed(struct link *l, const struct err *why)
{
	CHECK(l == link_);
	closed_times++;
	closed_why = *why;
	if (free_when_closed) {
		link_free(l);
		link_ = NULL;
	}
}

static const struct link_ops fixture_ops = { .ready = on_link_ready, .closed = on_link_closed };

/* version: the known version of the warden; 0: the link sends hello. */
static inline void set_up(unsigned version)
{
	struct link_given given = { .version = version };
	struct err e = { 0 };
	int pair[2];

	fds_before = count_fds();
	CHECK(loop_init(&loop) == 0);
	waiter = (struct waiter){ .loop = &loop, .cancel_fd = FD_NONE };
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	peer = pair[1];
	given.fd = pair[0];
	CHECK(link_adopt(&loop, given, "abc", &fixture_ops, NULL, &link_, &e) == 0);
}

static inline void tear_down(void)
{
	link_free(link_);
	fd_close(&peer);
	loop_done(&loop);
	CHECK(count_fds() == fds_before);
}

/* Let the link read the frames that have arrived. */
static inline void turn(void)
{
	CHECK(wait_pause(&waiter, 3 * NS_PER_MS) == 0);
}

static inline void turn_until(const bool *done)
{
	waiter.deadline_ns = clock_mono_ns() + 5 * NS_PER_S;
	CHECK(wait_until(&waiter, done) == 0);
	waiter.deadline_ns = 0;
}

/* The next frame from the link; its body is valid until the next call. */
static inline struct frame hear_any(void)
{
	static char data[LIMIT_FRAME_BODY + FRAME_HEADER];
	struct pollfd p = { .fd = peer, .events = POLLIN };
	struct frame f = { 0 };
	size_t n = FRAME_HEADER;

	for (size_t at = 0; at < n;) {
		ssize_t got;

		CHECK(poll(&p, 1, 2000) == 1);
		got = read(peer, data + at, n - at);
		CHECK(got > 0);
		at += (size_t)got;
		if (at == FRAME_HEADER && n == FRAME_HEADER)
			n += (size_t)(uint8_t)data[0] | (size_t)(uint8_t)data[1] << 8 |
			     (size_t)(uint8_t)data[2] << 16;
	}
	CHECK(frame_parse((struct str){ data, n }, &f) == (int64_t)n);
	return f;
}

/* The next frame from the link, skipping hello; it must have this type. */
static inline struct frame hear(uint8_t type)
{
	struct frame f = hear_any();

	if (f.type == MSG_C_HELLO)
		f = hear_any();
	CHECK(f.type == type);
	return f;
}

static inline bool hears_nothing(void)
{
	struct pollfd p = { .fd = peer, .events = POLLIN };

	return poll(&p, 1, 0) == 0;
}

static inline void say_raw(uint8_t type, uint32_t chan, struct str body)
{
	auto_done(buf_done) struct buf b = BUF_INIT(2 * LIMIT_FRAME_BODY);

	CHECK(frame_put(&b, type, chan, body) == 0);
	CHECK(io_write_all(peer, b.data, b.len) == 0);
}

/* A frame with at most one number and one text. */
static inline void say(uint8_t type, uint32_t chan, uint16_t number_tag, uint64_t number,
		       uint16_t text_tag, const char *text)
{
	auto_done(buf_done) struct buf b = BUF_INIT(LIMIT_FRAME_BODY);

	if (number_tag)
		CHECK(field_put_u64(&b, number_tag, number) == 0);
	if (text_tag)
		CHECK(field_put_c(&b, text_tag, text) == 0);
	say_raw(type, chan, buf_str(&b));
}

static inline void say_plain(uint8_t type, uint32_t chan)
{
	say_raw(type, chan, STR_NONE);
}

static inline void say_hello(unsigned version)
{
	say(MSG_C_HELLO, 0, TAG_VERSION, version, 0, NULL);
}

static inline void say_error(uint32_t chan, const char *text)
{
	say(MSG_C_ERROR, chan, TAG_ERRNO, 2, TAG_TEXT, text);
}
