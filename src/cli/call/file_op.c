/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/call/file_op.h"

#include <errno.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "cli/call/session.h"

int client_file_op(const struct state *s, const char *id, enum call_op op, const char *path,
		   uint64_t mode, const char *user, struct client_io io, struct buf *ret_stderr,
		   int *ret_exit, struct err *e)
{
	auto_done(buf_done) struct buf ask_body = BUF_INIT(LIMIT_FRAME_BODY);
	struct session se = { .in_fd = io.in_fd,
			      .in_whole = io.in_whole,
			      .in_ctx = io.ctx,
			      .out_fd = io.out_fd,
			      .err_fd = FD_NONE,
			      .err_text = ret_stderr,
			      .request = &ask_body };
	struct session_result res;
	auto_close int fd = FD_NONE;
	int r;

	if (field_put_u64(&ask_body, TAG_OP, op) < 0 ||
	    field_put_c(&ask_body, TAG_PATH, path) < 0 ||
	    field_put_u64(&ask_body, TAG_MODE, mode) < 0 ||
	    (user && field_put_c(&ask_body, TAG_USER, user) < 0))
		return err_sys(e, ENOMEM, "ask for a file");
	if (client_connect(s, id, &fd, e) < 0)
		return -1;
	se.warden_fd = fd;
	r = session_run(&se, &res, e);
	buf_done(&res.denied);
	if (r < 0)
		return -1;
	*ret_exit = res.code;
	return 0;
}
