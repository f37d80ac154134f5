/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/multipart.h"

#include <errno.h>

#include "t.h"

#define TYPE "multipart/form-data; boundary=xyz"
#define DISP "Content-Disposition: form-data; name=\"file\"; filename=\"a b.txt\"\r\n"

/* Everything read, as "[name|filename|content]…"; "!" for an error, "." for the end. */
static const char *read_in_steps(const char *type, struct str in, size_t step)
{
	static char text[4096];
	auto_done(multipart_done) struct multipart m;
	size_t n = 0;
	int r = multipart_init(&m, str_of(type));

	text[0] = '\0';
	while (in.n && r >= 0) {
		struct str piece = { in.p, in.n < step ? in.n : step }, data;

		in.p += piece.n;
		in.n -= piece.n;
		while ((r = multipart_next(&m, &piece, &data)) > MULTIPART_MORE) {
			if (r == MULTIPART_PART)
				n += (size_t)snprintf(text + n, sizeof text - n, "[%.*s|%.*s|",
						      STR_ARG(m.name), STR_ARG(m.filename));
			if (r == MULTIPART_DATA)
				n += (size_t)snprintf(text + n, sizeof text - n, "%.*s",
						      STR_ARG(data));
			if (r == MULTIPART_PART_END)
				n += (size_t)snprintf(text + n, sizeof text - n, "]");
			if (r == MULTIPART_END)
				break;
		}
	}
	(void)snprintf(text + n, sizeof text - n, "%s",
		       r < 0		    ? "!"
		       : r == MULTIPART_END ? "."
					    : "");
	return text;
}

static void check_form(const char *in, const char *want)
{
	for (size_t step = 1; step < 100; step = step * 3)
		CHECK_STR(read_in_steps(TYPE, str_of(in), step), want);
	CHECK_STR(read_in_steps(TYPE, str_of(in), 4096), want);
}

static void files_are_read(void)
{
	check_form("--xyz\r\n" DISP "Content-Type: text/plain\r\n\r\nhello\r\n--xyz--\r\n",
		   "[file|a b.txt|hello].");
	check_form("--xyz\r\n" DISP "\r\n\r\n--xyz\r\n" DISP "\r\nB\r\n--xyz--",
		   "[file|a b.txt|][file|a b.txt|B].");
	check_form("--xyz\r\nContent-Disposition: form-data; name=x\r\n\r\n1\r\n--xyz--",
		   "[x||1].");
	check_form("--xyz\r\ncontent-disposition: form-data; name=\"file\"; "
		   "filename=\"a/\xc5\xbe\\%22.txt\"\r\n\r\n1\r\n--xyz--",
		   "[file|a/\xc5\xbe\\%22.txt|1].");
}

static void content_may_look_like_a_boundary(void)
{
	check_form("--xyz\r\n" DISP "\r\n\r\r\n\n--xyz\r\n--xy\r\n-\r\n--xyz--",
		   "[file|a b.txt|\r\r\n\n--xyz\r\n--xy\r\n-].");
	check_form("--xyz\r\n" DISP "\r\n\r\n\r\n--xyz--", "[file|a b.txt|\r\n].");
}

static void malformed_forms_are_refused(void)
{
	static const char *const bad[] = {
		"preamble\r\n--xyz\r\n" DISP "\r\n1\r\n--xyz--",
		"--xyz \r\n" DISP "\r\n1\r\n--xyz--",
		"--xyz\n" DISP "\r\n1\r\n--xyz--",
		"--xyz\r\n\r\n1\r\n--xyz--",
		"--xyz\r\nContent-Type: a\r\n\r\n1\r\n--xyz--",
		"--xyz\r\n" DISP DISP "\r\n1\r\n--xyz--",
		"--xyz\r\nContent-Disposition: attachment; name=\"a\"\r\n\r\n1\r\n--xyz--",
		"--xyz\r\nContent-Disposition: form-data; filename=\"a\"\r\n\r\n1\r\n--xyz--",
		"--xyz\r\nContent-Disposition: form-data; name=\"a\\\"b\"\r\n\r\n1\r\n--xyz--",
		"--xyz\r\nContent-Disposition: form-data; name=\"a\"; name=\"b\"\r\n\r\n1\r\n--xyz--",
		"--xyz\r\nContent-Disposition: form-data; name=\"a\r\n\r\n1\r\n--xyz--",
		"--xyz\r\nContent-Disposition: form-data; name=\"a\"; filename*=utf-8''x\r\n\r\n1",
		"--xyz\r\nContent-Disposition: form-data; name=\"a\"\nX: b\r\n\r\n1\r\n--xyz--",
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		const char *text = read_in_steps(TYPE, str_of(bad[i]), 4096);

		if (!strchr(text, '!'))
			printf("# row %zu: %s\n", i, text);
		CHECK(strchr(text, '!'));
	}
}

static void boundaries_are_checked(void)
{
	static const char *const bad[] = { "text/plain",
					   "multipart/form-data",
					   "multipart/form-data; boundary=",
					   "multipart/form-data; boundary=\"a",
					   "multipart/form-data; boundary=\"a \"",
					   "multipart/form-data; boundary=\"a\r\n\"",
					   "multipart/form-data; boundary=a; boundary=b",
					   "multipart/mixed; boundary=a" };
	char longest[128] = "multipart/form-data; boundary=";
	struct multipart m;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(multipart_init(&m, str_of(bad[i])) == -EBADMSG);
	CHECK(multipart_init(&m, STR("Multipart/Form-Data; charset=x; boundary=\"a b\"")) == 0);
	memset(longest + strlen(longest), 'a', MULTIPART_BOUNDARY);
	CHECK(multipart_init(&m, str_of(longest)) == 0);
	longest[strlen(longest)] = 'a';
	CHECK(multipart_init(&m, str_of(longest)) == -EBADMSG);
}

static void heads_and_parts_are_bounded(void)
{
	static const char part[] = "--xyz\r\n" DISP "\r\n\r\n";
	auto_done(buf_done) struct buf b = BUF_INIT(1 << 20);
	static char head[LIMIT_PART_HEAD + 100];
	auto_done(multipart_done) struct multipart m;
	struct str in, data;
	int r;

	CHECK(multipart_init(&m, STR(TYPE)) == 0);
	for (int i = 0; i <= LIMIT_PARTS; i++)
		CHECK(buf_add(&b, part, sizeof part - 1) == 0);
	in = buf_str(&b);
	while ((r = multipart_next(&m, &in, &data)) > MULTIPART_MORE)
		;
	CHECK(r == -E2BIG && m.parts == LIMIT_PARTS + 1);
	multipart_done(&m);
	CHECK(multipart_init(&m, STR(TYPE)) == 0);
	memset(head, 'a', sizeof head);
	memcpy(head, "--xyz\r\n", 7);
	in = (struct str){ head, sizeof head };
	CHECK(multipart_next(&m, &in, &data) == -E2BIG);
}

T_MAIN(T(files_are_read), T(content_may_look_like_a_boundary), T(malformed_forms_are_refused),
       T(boundaries_are_checked), T(heads_and_parts_are_bounded))
