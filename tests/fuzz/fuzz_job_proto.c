/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames between a job queue and its workers: the front that sends jobs may be taken over. What was
 * understood is whole, and means the same when it is written and read again.
 */
#include <string.h>

#include "fuzz.h"
#include "wire/job_proto.h"

static void check_do(struct str body)
{
	auto_done(buf_done) struct buf b = BUF_INIT(2 * LIMIT_FRAME_BODY);
	struct job_do d, again;

	if (job_do_read(body, &d) < 0)
		return;
	FUZZ_CHECK(d.kind[0] && strlen(d.kind) < sizeof d.kind && strlen(d.key) < sizeof d.key);
	FUZZ_CHECK(job_do_put(&b, &d) == 0 && job_do_read(buf_str(&b), &again) == 0);
	FUZZ_CHECK(strcmp(d.kind, again.kind) == 0 && strcmp(d.key, again.key) == 0 &&
		   d.timeout_ms == again.timeout_ms && str_eq(d.in, again.in));
}

static void check_done(struct str body)
{
	auto_done(buf_done) struct buf b = BUF_INIT(2 * LIMIT_FRAME_BODY);
	struct job_done d, again;

	if (job_done_read(body, &d) < 0)
		return;
	FUZZ_CHECK(d.failed == (d.why.kind != ERR_NONE) && d.why.kind < ERR_KIND_COUNT);
	FUZZ_CHECK(job_done_put(&b, &d) == 0 && job_done_read(buf_str(&b), &again) == 0);
	FUZZ_CHECK(d.failed == again.failed && d.why.kind == again.why.kind &&
		   strcmp(d.why.msg, again.why.msg) == 0 && str_eq(d.out, again.out));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t n = size < LIMIT_FRAME_BODY ? size : LIMIT_FRAME_BODY;
	auto_free char *copy = exact_copy(data, n);
	struct str body = { copy, n };
	struct job_progress p;
	struct job_link l;

	check_do(body);
	check_done(body);
	if (job_progress_read(body, &p) == 0)
		FUZZ_CHECK(strlen(p.stage) < sizeof p.stage);
	if (job_link_read(body, &l) == 0)
		FUZZ_CHECK(l.id[0] && l.version <= UINT32_MAX && l.channel <= UINT32_MAX);
	return 0;
}
