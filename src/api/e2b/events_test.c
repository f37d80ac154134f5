/* SPDX-License-Identifier: Apache-2.0 */
#include "api/e2b/events.h"

#include <signal.h>

#include "api/e2b/sign.h"
#include "t.h"

static void check_end(int status, const char *want)
{
	auto_done(buf_done) struct buf b = BUF_INIT(1024);

	CHECK(event_end(&b, status) == 0);
	CHECK_STR(b.data, want);
}

static void ends_are_told_as_go_would_tell_them(void)
{
	check_end(0, "{\"event\":{\"end\":{\"exitCode\":0,\"exited\":true,"
		     "\"status\":\"exit status 0\"}}}");
	check_end(3 << 8, "{\"event\":{\"end\":{\"exitCode\":3,\"exited\":true,"
			  "\"status\":\"exit status 3\",\"error\":\"exit status 3\"}}}");
	check_end(SIGKILL, "{\"event\":{\"end\":{\"exitCode\":-1,\"exited\":false,"
			   "\"status\":\"signal: killed\",\"error\":\"signal: killed\"}}}");
}

static void output_is_base64(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(1024);

	CHECK(event_data(&b, "stdout", STR("hi\n")) == 0);
	CHECK_STR(b.data, "{\"event\":{\"data\":{\"stdout\":\"aGkK\"}}}");
}

/* As the clients compute it. */
static void a_signature_is_that_of_the_clients(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(1024);

	CHECK(sign_put(&b, "hello.txt", "user", "read", "0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0", "") ==
	      0);
	CHECK_STR(b.data, "v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E");
}

T_MAIN(T(ends_are_told_as_go_would_tell_them), T(output_is_base64),
       T(a_signature_is_that_of_the_clients))
