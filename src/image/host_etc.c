/* SPDX-License-Identifier: Apache-2.0 */
#include "image/host_etc.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "image/host_accounts.h"
#include "image/host_copy.h"
#include "image/host_filter.h"
#include "image/layer.h"

/* !fqdn: sudo must not query a resolver for the sandbox's name at each use. */
static const char sudoers[] =
	"Defaults !fqdn, env_reset\n"
	"Defaults secure_path=\"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\"\n"
	"root ALL=(ALL:ALL) ALL\n"
	"user ALL=(ALL:ALL) NOPASSWD: ALL\n"
	"#includedir /etc/sudoers.d\n";

static const char hosts[] = "127.0.0.1 localhost\n"
			    "::1 localhost ip6-localhost ip6-loopback\n";

static const struct own_file {
	const char *path;
	mode_t mode;
	const char *text;
} own_files[] = {
	{ "etc/sudoers", 0440, sudoers },      { "etc/hosts", 0644, hosts },
	{ "etc/hostname", 0644, "sandbox\n" }, { "etc/resolv.conf", 0644, "# no network\n" },
	{ "etc/environment", 0644, "" }, /* pam_env complains if it is missing */
	{ "etc/machine-id", 0444, "" },	 /* each sandbox gets its own */
};

/*
 * Some of our files replace files of packages, and nobody can answer questions at the terminal. So
 * dpkg must not ask which file to keep. Reinstalling a package restores files that were left out.
 */
static int write_dpkg_config(int layer, struct err *e)
{
	struct layer_attr attr = { .mode = 0644 };
	struct stat st;

	if (fstatat(layer, "etc/dpkg/dpkg.cfg.d", &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !S_ISDIR(st.st_mode))
		return 0;
	return layer_file(layer, "etc/dpkg/dpkg.cfg.d/cay-sandbox",
			  STR("force-confdef\nforce-confold\nforce-confmiss\n"), &attr, e);
}

static int write_own_files(int layer, struct err *e)
{
	struct layer_attr sudoers_d = { .mode = 0750 };

	for (size_t i = 0; i < ARRAY_LEN(own_files); i++) {
		const struct own_file *f = &own_files[i];
		struct layer_attr attr = { .mode = f->mode };

		if (layer_file(layer, f->path, str_of(f->text), &attr, e) < 0)
			return -1;
	}
	if (layer_dir(layer, "etc/sudoers.d", &sudoers_d, e) < 0)
		return -1;
	if (write_dpkg_config(layer, e) < 0)
		return -1;
	return layer_link(layer, "etc/mtab", "../proc/self/mounts", e);
}

/* From a file above the ceiling use the whole lines below it: a cut line would be wrong. */
static int read_lines(const char *path, struct buf *b, struct err *e)
{
	auto_close int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	int r;

	if (fd < 0 && (errno == ENOENT || errno == EACCES || errno == ELOOP))
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, errno, "cannot read '%s'", path);
	if (!S_ISREG(st.st_mode) || !(st.st_mode & S_IROTH))
		return 0;
	r = io_read_all(fd, b);
	if (r < 0 && r != -E2BIG)
		return err_sys(e, -r, "cannot read '%s'", path);
	while (r == -E2BIG && b->len > 0 && b->data[b->len - 1] != '\n')
		b->len--;
	return 0;
}

static int write_accounts(int layer, struct err *e)
{
	auto_done(host_accounts_done) struct host_accounts a = { 0 };
	auto_done(buf_done) struct buf passwd = BUF_INIT(HOST_ACCOUNTS_MAX);
	auto_done(buf_done) struct buf group = BUF_INIT(HOST_ACCOUNTS_MAX);
	const char *shell = access("/bin/bash", X_OK) == 0 ? "/bin/bash" : "/bin/sh";
	struct layer_attr open_attr = { .mode = 0644 }, hashes = { .mode = 0640 };

	if (read_lines("/etc/passwd", &passwd, e) < 0 || read_lines("/etc/group", &group, e) < 0 ||
	    host_accounts_make(buf_str(&passwd), buf_str(&group), shell, &a, e) < 0)
		return -1;
	hashes.gid = a.shadow_gid;
	if (layer_file(layer, "etc/passwd", buf_str(&a.passwd), &open_attr, e) < 0 ||
	    layer_file(layer, "etc/group", buf_str(&a.group), &open_attr, e) < 0 ||
	    layer_file(layer, "etc/shadow", buf_str(&a.shadow), &hashes, e) < 0)
		return -1;
	return layer_file(layer, "etc/gshadow", buf_str(&a.gshadow), &hashes, e);
}

int host_etc_make(int layer, struct buf *report, struct err *e)
{
	struct host_copy copy = {
		.layer = layer,
		.leave_out = host_filter_path,
		.secret = host_filter_content,
		.file_max = HOST_ETC_FILE_MAX,
		.total_max = HOST_ETC_TOTAL_MAX,
		.entries_max = HOST_ETC_ENTRIES_MAX,
		.report = report,
	};

	if (host_copy_tree(&copy, "etc", e) < 0)
		return -1;
	if (write_accounts(layer, e) < 0)
		return -1;
	return write_own_files(layer, e);
}
