/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/job_proto.h"

#include <errno.h>

#include "t.h"

static void a_request_comes_back_as_it_was(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(4096);
	const struct job_do want = { "create", "abc", 1234, STR("{\"x\":1}") };
	struct job_do got;

	CHECK(job_do_put(&b, &want) == 0);
	CHECK(job_do_read(buf_str(&b), &got) == 0);
	CHECK_STR(got.kind, "create");
	CHECK_STR(got.key, "abc");
	CHECK(got.timeout_ms == 1234 && str_is(got.in, "{\"x\":1}"));
}

static void every_part_of_an_error_comes_back(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(4096);
	struct job_done want = { .failed = true }, got;

	(void)err_set(&want.why, ERR_CONFLICT, "sandbox 'x' is busy");
	(void)err_code(&want.why, "sandbox.busy", "12");
	(void)err_field(&want.why, "name");
	(void)err_hint(&want.why, "wait");
	want.why.sys = 16;
	CHECK(job_done_put(&b, &want) == 0);
	CHECK(job_done_read(buf_str(&b), &got) == 0);
	CHECK(got.failed && got.why.kind == ERR_CONFLICT && got.why.sys == 16);
	CHECK_STR(got.why.msg, "sandbox 'x' is busy");
	CHECK_STR(got.why.code, "sandbox.busy");
	CHECK_STR(got.why.about, "12");
	CHECK_STR(got.why.field, "name");
	CHECK_STR(got.why.hint, "wait");
}

static void an_answer_is_a_result_or_an_error_and_not_both(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(4096);
	struct job_done got;

	CHECK(job_done_read(STR_NONE, &got) == -EBADMSG);
	CHECK(field_put_c(&b, JOB_TAG_ERROR, "none") == 0);
	CHECK(job_done_read(buf_str(&b), &got) == -EBADMSG);
	buf_clear(&b);
	CHECK(field_put_c(&b, JOB_TAG_OUT, "") == 0);
	CHECK(job_done_read(buf_str(&b), &got) == 0 && !got.failed && got.out.n == 0);
	CHECK(field_put_c(&b, JOB_TAG_ERROR, "failed") == 0);
	CHECK(job_done_read(buf_str(&b), &got) == -EBADMSG);
}

static void texts_that_do_not_fit_are_refused(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(4096);
	char key[JOB_KEY_SIZE + 1];
	struct job_do got;

	memset(key, 'k', sizeof key);
	key[JOB_KEY_SIZE] = '\0';
	CHECK(field_put_c(&b, JOB_TAG_KIND, "x") == 0);
	CHECK(field_put(&b, JOB_TAG_KEY, (struct str){ key, JOB_KEY_SIZE - 1 }) == 0);
	CHECK(job_do_read(buf_str(&b), &got) == 0);
	CHECK(field_put(&b, JOB_TAG_KEY, (struct str){ key, JOB_KEY_SIZE }) == 0);
	CHECK(job_do_read(buf_str(&b), &got) == -EBADMSG);
	CHECK(job_do_read(STR("\x01"), &got) == -EBADMSG);
	CHECK(job_do_read(STR_NONE, &got) == -EBADMSG);
}

static void a_link_comes_back_with_what_goes_with_it(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(4096);
	const struct job_link want = { "abc", 3, 7, STR("more") };
	struct job_link got;

	CHECK(job_link_put(&b, &want) == 0);
	CHECK(job_link_read(buf_str(&b), &got) == 0);
	CHECK_STR(got.id, "abc");
	CHECK(got.version == 3 && got.channel == 7 && str_is(got.more, "more"));
	CHECK(job_link_read(STR_NONE, &got) == -EBADMSG);
}

T_MAIN(T(a_request_comes_back_as_it_was), T(every_part_of_an_error_comes_back),
       T(an_answer_is_a_result_or_an_error_and_not_both), T(texts_that_do_not_fit_are_refused),
       T(a_link_comes_back_with_what_goes_with_it))
