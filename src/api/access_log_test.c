/* SPDX-License-Identifier: Apache-2.0 */
#include "api/access_log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "t.h"
#include "wire/frame.h"

static const struct access_record sample = { .request = "0a1b",
					     .method = "GET",
					     .route = "/sandboxes/{id}",
					     .key = "k1",
					     .address = "127.0.0.1",
					     .status = 200,
					     .us = 1500,
					     .bytes_out = 12 };

static void records_survive_the_way(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(4096);
	struct access_record r;

	CHECK(access_record_put(&b, &sample) == 0);
	CHECK(access_record_read(buf_str(&b), &r) == 0);
	CHECK(memcmp(&r, &sample, sizeof r) == 0);
	for (size_t n = 1; n < b.len; n++) /* cut anywhere: refused, or a shorter whole one */
		(void)access_record_read((struct str){ b.data, n }, &r);
}

static void hostile_records_are_refused(void)
{
	static const char *const bad[] = { "a\nb", "\x1b[2J", "\xff" };
	struct access_record r;
	char text[100];

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		auto_done(buf_done) struct buf b = BUF_INIT(4096);

		CHECK(field_put_c(&b, 3, bad[i]) == 0);
		CHECK(access_record_read(buf_str(&b), &r) == -EBADMSG);
	}
	for (size_t n = 79; n <= 80; n++) {
		auto_done(buf_done) struct buf b = BUF_INIT(4096);

		memset(text, 'x', n);
		CHECK(field_put(&b, 3, (struct str){ text, n }) == 0);
		CHECK((access_record_read(buf_str(&b), &r) == 0) == (n == 79));
	}
	for (uint16_t tag = 0; tag < 40; tag++) {
		auto_done(buf_done) struct buf b = BUF_INIT(4096);

		CHECK(field_put(&b, tag, STR("xyz")) == 0);
		CHECK((access_record_read(buf_str(&b), &r) == 0) == (tag >= 1 && tag <= 6));
	}
}

static size_t drain(int fd, char *out, size_t size)
{
	size_t len = 0;
	ssize_t n;

	while (len + 1 < size && (n = read(fd, out + len, size - 1 - len)) > 0)
		len += (size_t)n;
	out[len] = '\0';
	return len;
}

static void a_full_pipe_loses_lines_and_says_how_many(void)
{
	static char text[1 << 20];
	struct access_log l = { .path = "-" };
	int pair[2], written = 0, dropped = 0;
	const char *line;

	CHECK(pipe2(pair, O_CLOEXEC) == 0 && fcntl(pair[0], F_SETFL, O_NONBLOCK) == 0);
	l.fd = pair[1];
	for (int i = 0; i < 2000; i++)
		access_log_write(&l, &sample);
	CHECK(l.dropped > 0);
	(void)drain(pair[0], text, sizeof text);
	for (line = text; (line = strchr(line, '\n')); line++)
		written++;
	dropped = (int)l.dropped;
	CHECK(written + dropped == 2000);
	access_log_write(&l, &sample);
	CHECK(l.dropped == 0);
	(void)drain(pair[0], text, sizeof text);
	CHECK(strstr(text, "\"dropped\":") && strstr(text, "\"ms\":1.5"));
	access_log_close(&l);
	close(pair[0]);
}

T_MAIN(T(records_survive_the_way), T(hostile_records_are_refused),
       T(a_full_pipe_loses_lines_and_says_how_many))
