/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sandbox/limit_options.h"

#include <inttypes.h>

#include "base/number.h"

enum { CALL_MEMORY_MIN = 4 << 20 }; /* a small program */

struct limits_spec limit_opts_spec(const struct limit_opts *l)
{
	return (struct limits_spec){
		.memory = l->memory,
		.disk = l->disk,
		.cpu_milli = l->cpu_milli,
		.pids = l->pids,
		.files = l->files,
		.call_timeout_ms = l->call_timeout_ms,
		.ttl_ms = l->ttl_ms,
		.idle_ms = l->idle_ms,
		.on_timeout = l->on_timeout,
		.best_effort = l->best_effort,
	};
}

int limit_opts_check_call(const struct limit_opts *l, struct err *e)
{
	char text[NUMBER_TEXT];

	if (!l->call_memory || l->call_memory >= CALL_MEMORY_MIN)
		return 0;
	return err_set(e, ERR_INVALID, "--call-memory %" PRIu64 " bytes: at least %s",
		       l->call_memory, number_size(CALL_MEMORY_MIN, text));
}
