/* SPDX-License-Identifier: Apache-2.0 */
#include "api/e2b/events.h"

#include <ctype.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/b64.h"
#include "wire/json_write.h"

int event_start(struct buf *out, int pid)
{
	return buf_printf(out, "{\"event\":{\"start\":{\"pid\":%d}}}", pid);
}

int event_data(struct buf *out, const char *field, struct str data)
{
	int r = buf_printf(out, "{\"event\":{\"data\":{\"%s\":\"", field);

	if (r == 0)
		r = b64_encode(out, data);
	return r < 0 ? r : buf_add_c(out, "\"}}}");
}

/* As Go names signals: "killed", "terminated". */
static void signal_text(int sig, char *out, size_t size)
{
	const char *text = strsignal(sig);

	(void)snprintf(out, size, "signal: %s", text ? text : "unknown");
	for (char *c = out + sizeof "signal: " - 1; *c; c++)
		*c = (char)tolower((unsigned char)*c);
}

int event_end(struct buf *out, int status)
{
	bool exited = WIFEXITED(status);
	char text[64];
	struct json j;

	if (exited)
		(void)snprintf(text, sizeof text, "exit status %d", WEXITSTATUS(status));
	else
		signal_text(WTERMSIG(status), text, sizeof text);
	json_init(&j, out);
	json_obj(&j);
	json_put_obj(&j, "event");
	json_put_obj(&j, "end");
	json_put_i64(&j, "exitCode", exited ? WEXITSTATUS(status) : -1);
	json_put_bool(&j, "exited", exited);
	json_put_c(&j, "status", text);
	if (status != 0)
		json_put_c(&j, "error", text);
	json_end(&j);
	json_end(&j);
	json_end(&j);
	return json_done(&j);
}

uint64_t event_header_number(struct http_request *r, const char *name)
{
	const struct str *v = http_request_header(r, name);
	uint64_t n = 0;

	if (!v || !v->n || v->n > 9)
		return 0;
	for (size_t i = 0; i < v->n; i++) {
		if (v->p[i] < '0' || v->p[i] > '9')
			return 0;
		n = n * 10 + (uint64_t)(v->p[i] - '0');
	}
	return n;
}
