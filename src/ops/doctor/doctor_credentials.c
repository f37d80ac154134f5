/* SPDX-License-Identifier: Apache-2.0 */
/* Finds host files visible in sandboxes of the template `host` that may be credentials. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "image/host_mask.h"
#include "image/host_mounts.h"
#include "ops/doctor/doctor.h"

enum { ENTRIES = 50000, REPORT_MAX = 64 * 1024, NAMED = 4 };

static const char *const dirs[] = { "/opt", "/usr" };

/* Each line of the report is a reason, a tab and a path. */
static void take_names(struct doctor_facts *f, char *report)
{
	char *save = NULL;
	size_t at = strlen(f->credential_names);
	int n = 0;

	for (char *l = strtok_r(report, "\n", &save); l && n < NAMED;
	     l = strtok_r(NULL, "\n", &save), n++) {
		const char *path = strchr(l, '\t');

		if (!path || at + strlen(path) + 2 >= sizeof f->credential_names)
			return;
		at += (size_t)snprintf(f->credential_names + at, sizeof f->credential_names - at,
				       "%s%s", at ? ", " : "", path + 1);
	}
}

void doctor_credentials(struct doctor_facts *f)
{
	auto_done(host_mounts_done) struct host_mounts mounts = { 0 };
	struct err e = { 0 };

	if (host_mounts_read(&mounts, &e) == 0)
		for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
			f->mounts_below |= host_mounts_below(&mounts, dirs[i]);
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		auto_done(buf_done) struct buf report = BUF_INIT(REPORT_MAX);
		int n = host_mask_look(dirs[i], ENTRIES, &report, &e);

		if (n <= 0 || buf_add(&report, "", 1) < 0)
			continue;
		f->credentials += n;
		take_names(f, report.data);
	}
}

void checks_credentials(const struct doctor_facts *f, struct checks *l)
{
	if (f->credentials > 0)
		check_fix(
			check_add(
				l, "Host", "credentials", CHECK_NOTE,
				"sandboxes of the template host see %d file%s that may be one: %s",
				f->credentials, f->credentials == 1 ? "" : "s",
				f->credential_names),
			"chmod o-r those that are secret: what others may not read is hidden");
	else
		check_add(l, "Host", "credentials", CHECK_OK,
			  "no file that sandboxes see in /opt or /usr/local has such a name");
	if (f->mounts_below && !f->rootful)
		check_fix(
			check_add(l, "Host", "hidden files", CHECK_NOTE,
				  "a file system is mounted below /usr or /opt: that directory is "
				  "shown as it is, with files that look like credentials"),
			"cay create --template dir:PATH, or umount it");
}
