/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/probe/probe_subid.h"

#include <stdio.h>
#include <unistd.h>

#include "base/limits.h"

static bool to_number(struct str s, uint64_t *ret)
{
	char text[24], *end;

	if (s.n == 0 || !str_copy(text, sizeof text, s))
		return false;
	*ret = strtoull(text, &end, 10);
	return *end == '\0';
}

uint64_t subid_count(struct str text, const char *name, uid_t uid)
{
	uint64_t sum = 0, start, count;
	struct str line;
	char number[24];

	(void)snprintf(number, sizeof number, "%u", uid);
	while (probe_line(&text, &line)) {
		struct str who = probe_until(&line, ':'), from = probe_until(&line, ':');

		if (!str_is(who, name) && !str_is(who, number))
			continue;
		if (to_number(from, &start) && to_number(line, &count) && count <= UINT32_MAX)
			sum += count;
	}
	return sum;
}

bool subid_user(struct str passwd, uid_t uid, char *out, size_t size)
{
	struct str line;
	uint64_t id;

	while (probe_line(&passwd, &line)) {
		struct str name = probe_until(&line, ':');

		(void)probe_until(&line, ':');
		if (to_number(probe_until(&line, ':'), &id) && id == uid)
			return str_copy(out, size, name);
	}
	return false;
}

static bool in_path(const char *program)
{
	const char *env = getenv("PATH");
	struct str rest = str_of(env ? env : "/usr/bin:/bin");

	while (rest.n) {
		char path[LIMIT_PATH];
		struct str dir = probe_until(&rest, ':');

		(void)snprintf(path, sizeof path, "%.*s/%s", STR_ARG(dir), program);
		if (dir.n && access(path, X_OK) == 0)
			return true;
	}
	return false;
}

static uint64_t count_in(const char *path, const char *user, uid_t uid)
{
	auto_done(buf_done) struct buf text = BUF_INIT(PROBE_TEXT_MAX);

	return probe_file(path, &text) ? subid_count(buf_str(&text), user, uid) : 0;
}

void probe_subid(struct probe_subid *ret)
{
	auto_done(buf_done) struct buf passwd = BUF_INIT(PROBE_TEXT_MAX);
	uid_t uid = geteuid();

	*ret = (struct probe_subid){ .newuidmap = in_path("newuidmap"),
				     .newgidmap = in_path("newgidmap") };
	if (!probe_file("/etc/passwd", &passwd) ||
	    !subid_user(buf_str(&passwd), uid, ret->user, sizeof ret->user))
		(void)snprintf(ret->user, sizeof ret->user, "%u", uid);
	ret->uids = count_in("/etc/subuid", ret->user, uid);
	ret->gids = count_in("/etc/subgid", ret->user, uid);
}
