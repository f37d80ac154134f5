/* SPDX-License-Identifier: Apache-2.0 */
/* Forms: the same events and the same content, however the bytes arrive. */
#include "base/cleanup.h"
#include "fuzz.h"
#include "wire/multipart.h"

enum { MOST = 1 << 20 };

static void note(struct buf *out, struct multipart *m, int event, struct str data)
{
	FUZZ_CHECK(event != MULTIPART_DATA || data.n > 0);
	if (event == MULTIPART_DATA)
		FUZZ_CHECK(buf_add_str(out, data) == 0);
	else if (event == MULTIPART_PART)
		FUZZ_CHECK(buf_printf(out, "<%.*s|%.*s|%.*s>", STR_ARG(m->name),
				      STR_ARG(m->filename), STR_ARG(m->type)) == 0);
	else
		FUZZ_CHECK(buf_printf(out, "{%d}", event) == 0);
}

static int follow(struct str in, size_t step, struct buf *out)
{
	auto_done(multipart_done) struct multipart m;
	int r = MULTIPART_MORE;

	FUZZ_CHECK(multipart_init(&m, STR("multipart/form-data; boundary=b")) == 0);
	while (in.n && r >= 0) {
		struct str piece = { in.p, in.n < step ? in.n : step }, data;

		in.p += piece.n;
		in.n -= piece.n;
		do {
			r = multipart_next(&m, &piece, &data);
			if (r > MULTIPART_MORE && r != MULTIPART_END)
				note(out, &m, r, data);
		} while (r > MULTIPART_MORE && r != MULTIPART_END);
		FUZZ_CHECK(r < 0 || piece.n == 0 || r == MULTIPART_END);
		if (r == MULTIPART_END)
			break;
	}
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free char *copy = exact_copy(data, size);
	auto_done(buf_done) struct buf whole = BUF_INIT(MOST), bytes = BUF_INIT(MOST);
	struct str in = { copy, size };
	struct multipart m;

	if (size > 16384)
		return 0;
	FUZZ_CHECK(follow(in, size ? size : 1, &whole) == follow(in, 1, &bytes));
	FUZZ_CHECK(str_eq(buf_str(&whole), buf_str(&bytes)));
	if (multipart_init(&m, in) == 0)
		FUZZ_CHECK(m.mark_n > 4 && m.mark_n <= sizeof m.mark);
	multipart_done(&m);
	return 0;
}
