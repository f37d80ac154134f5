/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a trace: read, filtered, shown and verified. What is shown must hold no control
 * but the newline that ends it.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/io.h"
#include "base/limits.h"
#include "trace/filter.h"
#include "trace/text.h"
#include "trace/verify.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_line(struct str line, struct trace_filter *f)
{
	auto_done(trace_event_done) struct trace_event ev = { 0 };
	auto_done(buf_done) struct buf out = BUF_INIT(8 * LIMIT_EVENT);
	struct trace_text text = { 0 };
	struct err e;

	if (trace_event_parse(line, &ev, &e) < 0)
		return;
	if (trace_filter_skips(f, line) && trace_filter_check(f, &ev) == 1)
		abort();
	if (trace_text_event(&text, &ev, &out) < 0)
		abort();
	for (size_t i = 0; i + 1 < out.len; i++) {
		uint8_t c = (uint8_t)out.data[i];

		/* The date stands on a line of its own. */
		if ((c < 0x20 && !(c == '\n' && i == 10)) || c == 0x7f)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_close int fd = memfd_create("trace", MFD_CLOEXEC);
	auto_done(trace_lines_done) struct trace_lines lines;
	auto_done(trace_filter_done) struct trace_filter filter;
	struct trace_summary sum;
	struct str line;
	struct err e;

	if (fd < 0 || io_write_all(fd, data, size) < 0 || lseek(fd, 0, SEEK_SET) < 0 ||
	    trace_filter_init(&filter, "file", "tool-1", &e) < 0)
		abort();
	trace_lines_init(&lines, fd);
	while (trace_lines_next(&lines, &line) == 1)
		check_line(line, &filter);
	if (lseek(fd, 0, SEEK_SET) == 0)
		(void)trace_verify(fd, NULL, NULL, &sum, &e);
	return 0;
}
