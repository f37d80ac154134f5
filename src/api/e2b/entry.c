/* SPDX-License-Identifier: Apache-2.0 */
#include "api/e2b/entry.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

/* An entry of unknown type is left out by clients. */
static const char *type_of(const struct file_entry *f)
{
	if (f->target == 'd')
		return "FILE_TYPE_DIRECTORY";
	return f->target == 'f' ? "FILE_TYPE_FILE" : "FILE_TYPE_UNSPECIFIED";
}

void entry_put_metadata(struct json *j, struct str lines)
{
	char key[256];

	if (!lines.n)
		return;
	json_put_obj(j, "metadata");
	while (lines.n) {
		const char *end = memchr(lines.p, '\n', lines.n);
		struct str line = { lines.p, end ? (size_t)(end - lines.p) : lines.n };
		const char *eq = memchr(line.p, '=', line.n);

		if (eq && str_copy(key, sizeof key, (struct str){ line.p, (size_t)(eq - line.p) }))
			json_put_str(j, key,
				     (struct str){ eq + 1, line.n - (size_t)(eq + 1 - line.p) });
		lines = end ? (struct str){ end + 1, lines.n - line.n - 1 } : STR_NONE;
	}
	json_end(j);
}

void entry_put(struct json *j, const struct file_entry *f)
{
	const char *slash = memrchr(f->path.p, '/', f->path.n);
	char time[CLOCK_TEXT_SIZE], size[24], permissions[16] = "";

	clock_text(f->mtime_ns, time);
	(void)snprintf(size, sizeof size, "%llu", (unsigned long long)f->size);
	(void)str_copy(permissions, sizeof permissions, f->permissions);
	if (permissions[0] == 'l')
		permissions[0] = 'L';
	json_obj(j);
	json_put_str(j, "name",
		     (struct str){ slash + 1, f->path.n - (size_t)(slash + 1 - f->path.p) });
	json_put_c(j, "type", type_of(f));
	json_put_str(j, "path", f->path);
	json_put_c(j, "size", size);
	json_put_u64(j, "mode", f->mode);
	json_put_c(j, "permissions", permissions);
	json_put_str(j, "owner", f->owner);
	json_put_str(j, "group", f->group);
	json_put_c(j, "modifiedTime", time);
	if (f->type == 'l')
		json_put_str(j, "symlinkTarget", f->link);
	entry_put_metadata(j, f->metadata);
	json_end(j);
}
