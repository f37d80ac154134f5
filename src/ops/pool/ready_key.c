/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/pool/ready_key.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "store/storage.h"
#include "sys/cgroup/cgroup_find.h"
#include "sys/process/normal.h"
#include "wire/frame.h"
#include "wire/proto.h"

enum { PROC_FILE = 64 * 1024, MOUNTS_FILE = 16 << 20 };

/*
 * Fields that an owner chooses; MSG_C_CLAIM carries them. Of a policy, only that there is one
 * matters for what is built: TAG_NETWORK.
 */
static const uint16_t late[] = { TAG_USER,    TAG_CWD,	      TAG_ENV,
				 TAG_LABEL,   TAG_TIMEOUT_MS, TAG_TTL_MS,
				 TAG_IDLE_MS, TAG_ON_TIMEOUT, TAG_NET_POLICY };
/*
 * What is built. A recipe with any other field is never made in advance, because its meaning is
 * unknown.
 */
static const uint16_t built[] = { TAG_TRACE,  TAG_PROFILE,     TAG_NESTED, TAG_MOUNT,
				  TAG_MEMORY, TAG_CPU_MILLI,   TAG_PIDS,   TAG_FILES,
				  TAG_DISK,   TAG_BEST_EFFORT, TAG_NETWORK };

static bool is_of(uint16_t tag, const uint16_t *tags, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (tags[i] == tag)
			return true;
	return false;
}

int ready_split(struct str recipe, bool want_late, struct buf *ret)
{
	struct field f;
	int r;

	while ((r = field_next(&recipe, &f)) > 0) {
		bool is_late = is_of(f.tag, late, ARRAY_LEN(late));

		if (f.tag == TAG_NET_POLICY && !want_late)
			r = field_put_u64(ret, TAG_NETWORK, 1);
		else if (is_late == want_late)
			r = field_put(ret, f.tag, f.value);
		if (r < 0)
			return r;
	}
	return r;
}

/* With its length, so that different lists give different bytes. */
static void hash_add(struct sha256 *h, const void *p, size_t n)
{
	uint64_t size = n;

	sha256_add(h, &size, sizeof size);
	sha256_add(h, p, n);
}

static void add_number(struct sha256 *h, uint64_t n)
{
	hash_add(h, &n, sizeof n);
}

/* Hashes the identity of a file; whole: also its state. */
static void add_file(struct sha256 *h, const char *path, bool whole)
{
	struct stat st = { 0 };

	hash_add(h, path, strlen(path));
	if (stat(path, &st) < 0)
		st = (struct stat){ 0 };
	add_number(h, st.st_dev);
	add_number(h, st.st_ino);
	if (!whole)
		return;
	add_number(h, (uint64_t)st.st_size);
	add_number(h, (uint64_t)st.st_mtim.tv_sec);
	add_number(h, (uint64_t)st.st_mtim.tv_nsec);
}

static void add_programs(struct sha256 *h, const char *warden)
{
	const char *slash = strrchr(warden, '/');
	char init[LIMIT_PATH];

	hash_add(h, CAY_VERSION, sizeof CAY_VERSION);
	add_file(h, "/proc/self/exe", true);
	add_file(h, warden, true);
	(void)snprintf(init, sizeof init, "%.*s/cay-init", (int)(slash ? slash - warden : 0),
		       warden);
	add_file(h, init, true);
}

/*
 * For a template also the last change of the directories that a ready sandbox has prefetched names
 * from (warden/ready.c): it does not look them up again.
 */
static void add_template_dir(struct sha256 *h, const char *lower)
{
	static const char *const below[] = { "",
					     "bin",
					     "sbin",
					     "lib",
					     "lib64",
					     "local",
					     "etc",
					     "local/bin",
					     "local/sbin",
					     "usr",
					     "usr/bin",
					     "usr/lib",
					     "lib/x86_64-linux-gnu",
					     "usr/lib/x86_64-linux-gnu" };
	char path[LIMIT_PATH + 32];

	for (size_t i = 0; i < ARRAY_LEN(below); i++) {
		(void)snprintf(path, sizeof path, "%s/%s", lower, below[i]);
		add_file(h, path, true);
	}
}

struct mount_traits {
	bool ro, of_host;
};

static int mount_look(struct str body, struct mount_traits *ret)
{
	struct field f;
	uint64_t kind;
	int r;

	*ret = (struct mount_traits){ 0 };
	while ((r = field_next(&body, &f)) > 0) {
		ret->ro |= f.tag == M_KIND && field_u64(f, &kind) == 0 && kind == MOUNT_RO;
		ret->of_host |= f.tag == M_OWNER;
	}
	return r;
}

static bool is_below(const char *path, const char *top)
{
	size_t n = strcmp(top, "/") == 0 ? 0 : strlen(top);

	return strncmp(path, top, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

/*
 * The mounts at a path and below it: a ready sandbox does not see later changes of them. 1; 0: the
 * kernel writes this path differently.
 */
static int add_mounts_below(struct sha256 *h, const char *path)
{
	auto_done(buf_done) struct buf b = BUF_INIT(MOUNTS_FILE);
	char *save = NULL;
	int r;

	if (strpbrk(path, " \t\n\\#"))
		return 0;
	r = io_read_file(AT_FDCWD, "/proc/self/mountinfo", &b);
	if (r < 0 || buf_add(&b, "", 1) < 0)
		return r < 0 ? r : -ENOMEM;
	for (char *line = strtok_r(b.data, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char at[LIMIT_PATH];

		if (sscanf(line, "%*d %*d %*s %*s %4095s", at) == 1 &&
		    (is_below(at, path) || is_below(path, at)))
			hash_add(h, line, strlen(line));
	}
	return 1;
}

/* 1; 0: its contents may change unnoticed. */
static int add_mount(struct sha256 *h, struct str body)
{
	struct mount_traits t;
	char path[LIMIT_PATH];
	struct field f;
	int r = mount_look(body, &t);

	if (r < 0)
		return r;
	r = 1;
	while (r > 0 && field_next(&body, &f) > 0) {
		if (f.tag != M_LOWER || !str_copy(path, sizeof path, f.value))
			continue;
		if (t.of_host)
			add_file(h, path, false);
		else
			add_template_dir(h, path);
		if (t.ro && t.of_host)
			r = add_mounts_below(h, path);
	}
	return r;
}

static int add_fields(struct sha256 *h, struct str recipe, uint16_t tag)
{
	struct field f;
	int r;

	while ((r = field_next(&recipe, &f)) > 0) {
		if (f.tag != tag)
			continue;
		add_number(h, tag);
		hash_add(h, f.value.p, f.value.n);
		r = tag == TAG_MOUNT ? add_mount(h, f.value) : 1;
		if (r <= 0)
			return r;
	}
	return r < 0 ? r : 1;
}

/* Field order does not matter, except among fields of one kind. */
static int add_recipe(struct sha256 *h, struct str recipe)
{
	auto_done(buf_done) struct buf made = BUF_INIT(LIMIT_FRAME_BODY);
	int r = ready_split(recipe, false, &made);
	struct str all = buf_str(&made);
	struct field f;

	while (r >= 0 && (r = field_next(&all, &f)) > 0)
		if (!is_of(f.tag, built, ARRAY_LEN(built)))
			return 0;
	r = r < 0 ? r : 1;
	for (size_t i = 0; i < ARRAY_LEN(built) && r > 0; i++)
		r = add_fields(h, buf_str(&made), built[i]);
	return r;
}

/*
 * The lines of /proc/self/status that a warden inherits and cannot change. Root leaves its groups
 * (sys/process/normal.h).
 */
static void add_status(struct sha256 *h, char *text)
{
	static const char *const lines[] = {
		"Uid:",		 "NoNewPrivs:",	  "Seccomp:", "Seccomp_filters:",
		"Cpus_allowed:", "Mems_allowed:", "Gid:",     "Groups:"
	};
	size_t n = geteuid() == 0 ? ARRAY_LEN(lines) - 2 : ARRAY_LEN(lines);
	char *save = NULL;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		for (size_t i = 0; i < n; i++)
			if (strncmp(line, lines[i], strlen(lines[i])) == 0)
				hash_add(h, line, strlen(line));
}

static int add_proc(struct sha256 *h, const char *path,
		    void (*add_text)(struct sha256 *h, char *text))
{
	auto_done(buf_done) struct buf b = BUF_INIT(PROC_FILE);
	int r = io_read_file(AT_FDCWD, path, &b);

	if (r < 0 || buf_add(&b, "", 1) < 0)
		return r < 0 ? r : -ENOMEM;
	if (add_text)
		add_text(h, b.data);
	else
		hash_add(h, b.data, b.len);
	return 0;
}

/* A sandbox has its own namespaces of the other kinds. */
static void add_namespaces(struct sha256 *h)
{
	static const char *const names[] = { "user", "mnt", "pid", "net", "time" };
	char path[40];

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		(void)snprintf(path, sizeof path, "/proc/self/ns/%s", names[i]);
		add_file(h, path, false);
	}
}

/*
 * The group decides what a sandbox can be: a user may be unable to make groups in it, and with
 * best effort it decides which limits hold. Otherwise it does not matter whose group it is.
 */
static void add_group(struct sha256 *h, bool best_effort)
{
	char path[LIMIT_PATH] = "";
	bool usable = true;

	if (geteuid() != 0 || best_effort)
		usable = cgroup_find("", NULL, path, sizeof path) == 0 &&
			 faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0;
	add_number(h, usable);
	if (best_effort)
		hash_add(h, path, strlen(path));
}

static int add_normal(struct sha256 *h)
{
	struct normal n;
	int r = normal_plan(&n);

	hash_add(h, &n, sizeof n);
	return r;
}

static bool has_field(struct str recipe, uint16_t tag)
{
	struct field f;

	while (field_next(&recipe, &f) > 0)
		if (f.tag == tag)
			return true;
	return false;
}

/* What a warden inherits from this process, and what runs in its sandbox inherits too. */
static int add_circumstances(struct sha256 *h, const struct cay_config *c, struct str recipe)
{
	const char *const settings[] = { c->keep_ended, c->keep_days, c->trace_max };
	int r = add_proc(h, "/proc/self/status", add_status);

	if (r == 0)
		r = add_normal(h);
	/* Unreadable if there is no such security module. */
	(void)add_proc(h, "/proc/self/attr/current", NULL);
	add_namespaces(h);
	add_group(h, has_field(recipe, TAG_BEST_EFFORT));
	for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
		const char *v = settings[i];

		hash_add(h, v ? v : "", v ? strlen(v) : 0);
	}
	return r;
}

int ready_key(const struct state *s, const char *warden, const struct cay_config *config,
	      struct str recipe, const char *top, char ret[READY_KEY])
{
	uint8_t hash[SHA256_SIZE];
	char hex[SHA256_HEX];
	struct sha256 h;
	int r;

	sha256_init(&h);
	add_programs(&h, warden);
	add_number(&h, storage_exists(s));
	hash_add(&h, top, strlen(top));
	r = add_recipe(&h, recipe);
	if (r <= 0)
		return r;
	r = add_circumstances(&h, config, recipe);
	if (r < 0)
		return r;
	sha256_end(&h, hash);
	sha256_hex(hash, hex);
	(void)snprintf(ret, READY_KEY, "%.*s", READY_KEY - 1, hex);
	return 1;
}
