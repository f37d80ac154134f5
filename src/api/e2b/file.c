/* SPDX-License-Identifier: Apache-2.0 */
#include "api/e2b/file.h"

#include <string.h>

#include "api/error.h"
#include "wire/url.h"

void file_complaint_add(struct file_complaint *c, struct str data)
{
	size_t room = sizeof c->text - 1 - c->n, n = data.n < room ? data.n : room;

	memcpy(c->text + c->n, data.p, n);
	c->n += n;
	c->text[c->n] = '\0';
}

bool file_query(struct envd *v, char path[ENVD_PATH])
{
	auto_done(buf_done) struct buf given = BUF_INIT(ENVD_PATH), user = BUF_INIT(ENVD_USER);
	struct str query = v->q->http->query;

	if (url_query_get(query, "username", &user) < 0 || url_query_get(query, "path", &given) < 0)
		return false;
	if (user.len && !str_copy(v->user, sizeof v->user, buf_str(&user)))
		return false;
	path[0] = '\0';
	return !given.len || envd_path(v, given.data, path);
}

void file_refuse(struct envd *v, const char *path, const struct file_complaint *c,
		 const struct err *why)
{
	static const struct {
		const char *says;
		int status;
		const char *message;
	} rows[] = {
		{ "No such file", 404, "does not exist" },
		{ "is a directory", 400, "is a directory" },
		{ "Is a directory", 400, "is a directory" },
		{ "Not a directory", 400, "leads through a file" },
		{ "No space left", 507, "does not fit on the disk" },
		{ "Disk quota", 507, "does not fit on the disk" },
		{ "Permission denied", 403, "may not be used by this user" },
	};
	struct http_request *r = v->q->http;

	if (why && why->kind == ERR_UNAVAILABLE) {
		envd_gone(v, why);
		return;
	}
	if (why && strstr(why->msg, "user")) {
		api_refuse(r, 401, "invalid username: '%s'", v->user);
		return;
	}
	for (size_t i = 0; !why && i < ARRAY_LEN(rows); i++)
		if (strstr(c->text, rows[i].says)) {
			api_refuse(r, rows[i].status, "path '%s' %s", path, rows[i].message);
			return;
		}
	api_refuse(r, 500, "'%s' failed: %s", path, why ? why->msg : c->text);
}
