/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/client/who.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/io.h"

void who_set(struct who *w, int pid, uint32_t uid)
{
	auto_done(buf_done) struct buf name = BUF_INIT(sizeof w->program - 1);
	char path[32];

	*w = (struct who){ .pid = pid > 0 ? pid : 0, .uid = uid };
	if (!w->pid)
		return;
	(void)snprintf(path, sizeof path, "/proc/%d/comm", w->pid);
	if (io_read_file(AT_FDCWD, path, &name) == 0 && name.len > 1)
		(void)str_copy(w->program, sizeof w->program,
			       (struct str){ name.data, name.len - 1 });
}

void who_trace(struct trace *t, const struct who *w)
{
	if (!w->pid)
		return;
	if (w->program[0])
		trace_text(t, "by", str_of(w->program));
	trace_num(t, "by_pid", w->pid);
	trace_num(t, "by_uid", w->uid);
}
