/* SPDX-License-Identifier: Apache-2.0 */
#include "image/host_var.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/str.h"
#include "image/host_copy.h"
#include "image/host_packages.h"
#include "image/layer.h"

enum {
	DPKG_FILE_MAX = 64 << 20,
	DPKG_TOTAL_MAX = 256 << 20,
	DPKG_ENTRIES_MAX = 200000,
};

static const struct {
	const char *path;
	mode_t mode;
} dirs[] = {
	{ "var", 0755 },
	{ "var/backups", 0755 },
	{ "var/cache", 0755 },
	{ "var/cache/apt", 0755 },
	{ "var/cache/apt/archives", 0755 },
	{ "var/cache/apt/archives/partial", 0700 },
	{ "var/cache/debconf", 0755 },
	{ "var/lib", 0755 },
	{ "var/lib/apt", 0755 },
	{ "var/lib/apt/lists", 0755 },
	{ "var/lib/apt/lists/partial", 0700 },
	{ "var/lib/dpkg", 0755 },
	{ "var/lib/dpkg/parts", 0755 },
	{ "var/lib/dpkg/updates", 0755 },
	{ "var/lib/misc", 0755 },
	{ "var/lib/pam", 0755 },
	{ "var/lib/python", 0755 },
	{ "var/lib/sudo", 0700 },
	{ "var/lib/sudo/lectured", 0700 },
	{ "var/lib/systemd", 0755 },
	{ "var/lib/ucf", 0755 },
	{ "var/local", 0755 },
	{ "var/log", 0755 },
	{ "var/log/apt", 0755 },
	{ "var/mail", 0755 },
	{ "var/opt", 0755 },
	{ "var/spool", 0755 },
	{ "var/tmp", 01777 },
};

/* Files of /var/lib/dpkg that record what is installed; the rest are locks and backups. */
static const char *const dpkg_kept[] = {
	"alternatives", "arch",		"available", "cmethopt", "diversions",
	"info",		"statoverride", "status",    "triggers",
};

static const char *dpkg_leave_out(const char *path)
{
	struct str s = str_of(path);
	const struct str top = STR("var/lib/dpkg/");

	if (!str_starts(s, top))
		return "not listed";
	s.p += top.n;
	s.n -= top.n;
	for (size_t i = 0; i < ARRAY_LEN(dpkg_kept); i++) {
		struct str kept = str_of(dpkg_kept[i]);

		if (str_starts(s, kept) && (s.n == kept.n || s.p[kept.n] == '/'))
			return NULL;
	}
	return "not listed";
}

int host_var_make(int layer, struct buf *report, struct err *e)
{
	struct host_copy dpkg = {
		.layer = layer,
		.leave_out = dpkg_leave_out,
		.file_max = DPKG_FILE_MAX,
		.total_max = DPKG_TOTAL_MAX,
		.entries_max = DPKG_ENTRIES_MAX,
		.report = report,
	};

	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		struct layer_attr attr = { .mode = dirs[i].mode };

		if (layer_dir(layer, dirs[i].path, &attr, e) < 0)
			return -1;
	}
	if (host_packages_make(layer, e) < 0)
		return -1;
	if (layer_link(layer, "var/run", "/run", e) < 0 ||
	    layer_link(layer, "var/lock", "/run/lock", e) < 0)
		return -1;
	return host_copy_tree(&dpkg, "var/lib/dpkg", e);
}
