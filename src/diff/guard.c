/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/limits.h"
#include "wire/git_index.h"
#include "wire/name_alias.h"

/* One component of a path, with the parts before and after it. */
struct part {
	const char *path;
	size_t at, n;
};

/* names are in lower case: a case-insensitive host treats `Config` as `config`. */
static bool part_is_any(const struct part *p, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (name_is_alias((struct str){ p->path + p->at, p->n }, names[i]))
			return true;
	return false;
}

static bool part_is_git(const struct part *p)
{
	return name_is_git((struct str){ p->path + p->at, p->n });
}

static bool part_is_last(const struct part *p)
{
	return !p->path[p->at + p->n];
}

/*
 * The host's file type at the first n bytes of path; 0 if nothing is there, or a parent is a link.
 */
static mode_t host_type(const struct guard *g, const char *path, size_t n)
{
	auto_free char *copy = strndup(path, n);
	auto_close int fd = copy && n && g->dir_fd >= 0
				    ? stack_open_at(g->dir_fd, copy, O_PATH | O_NOFOLLOW)
				    : FD_NONE;
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 ? st.st_mode & S_IFMT : 0;
}

enum side { ON_HOST = 1, IN_SANDBOX = 2 };

/*
 * Checks the difference as well as the sandbox's files: a process inside can hide a file during the
 * plan and put it back before the copy. Only entries of the difference are copied.
 */
static bool sandbox_has(const struct guard *g, const char *path)
{
	const struct diff_entry *en = diff_find(g->diff, path);
	struct stack_node node;

	return (en && en->new.mode) || stack_find(g->diff->new, path, &node) > 0;
}

/*
 * True if the difference adds the same name in other letter case. For the host's names, its file
 * system decides.
 */
static bool arrives(const struct guard *g, const struct part *p, const char *name)
{
	char lower[16];
	size_t n = 0;

	for (; name[n] && n + 1 < sizeof lower; n++)
		lower[n] = (char)(name[n] >= 'A' && name[n] <= 'Z' ? name[n] - 'A' + 'a' : name[n]);
	lower[n] = '\0';
	return diff_has_alias(g->diff, (struct str){ p->path, p->at }, lower);
}

/* True if the directory before the component contains this name on any of these sides. */
static bool dir_has(const struct guard *g, const struct part *p, const char *name, int sides)
{
	char path[2 * LIMIT_PATH];
	int n = snprintf(path, sizeof path, "%.*s%s", (int)p->at, p->path, name);

	if (n < 0 || (size_t)n >= sizeof path)
		return true;
	if ((sides & ON_HOST) && host_type(g, path, (size_t)n))
		return true;
	return (sides & IN_SANDBOX) && (sandbox_has(g, path) || arrives(g, p, name));
}

/* Like is_git_directory() in git's setup.c, which checks only that these names exist. */
static bool is_repository(const struct guard *g, const struct part *p, int sides)
{
	return dir_has(g, p, "HEAD", sides) &&
	       (dir_has(g, p, "commondir", sides) ||
		(dir_has(g, p, "objects", sides) && dir_has(g, p, "refs", sides)));
}

/* True for plain data in git's directory. rest: the path inside that directory. */
static bool is_history(const char *rest)
{
	static const char *const trees[] = { "objects", "refs", "logs" };
	static const char *const files[] = { "HEAD",	  "ORIG_HEAD",	 "FETCH_HEAD",
					     "index",	  "packed-refs", "MERGE_HEAD",
					     "MERGE_MSG", "MERGE_MODE",	 "COMMIT_EDITMSG" };

	/* objects/info names other object directories and holds caches that git trusts. */
	if (strncmp(rest, "objects/", 8) == 0 &&
	    name_is_alias((struct str){ rest + 8, strcspn(rest + 8, "/") }, "info"))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(trees); i++) {
		size_t n = strlen(trees[i]);

		if (strncmp(rest, trees[i], n) == 0 && (!rest[n] || rest[n] == '/'))
			return true;
	}
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		if (strcmp(rest, files[i]) == 0)
			return true;
	return false;
}

/* Checks an entry below a repository's own directory. */
static int check_inside(const struct guard *g, const struct diff_entry *en, const char *rest)
{
	if (S_ISLNK(en->new.mode) || S_ISLNK(host_type(g, en->path, strlen(en->path))))
		return APPLY_GIT_LINK;
	return g->take_config || is_history(rest) ? -1 : APPLY_GUARDED;
}

static int check_git(const struct guard *g, const struct diff_entry *en, const struct part *p)
{
	mode_t host = host_type(g, en->path, p->at + p->n);

	if (!part_is_last(p)) {
		if (host && !S_ISDIR(host))
			return APPLY_GIT_LINK;
		return check_inside(g, en, en->path + p->at + p->n + 1);
	}
	/*
	 * The directory itself may be added or removed. A file or link of that name points
	 * elsewhere.
	 */
	if (!en->new.mode || (S_ISDIR(en->new.mode) && (!host || S_ISDIR(host))))
		return -1;
	return S_ISREG(en->new.mode) && g->take_config ? -1 : APPLY_GIT_LINK;
}

/*
 * Checks a name that git looks for in its own directory. If the directory is not a repository on
 * the host yet, even history is left out: parts that arrived earlier as plain files, such as
 * config, would take effect with it. Both sides count, because paths can be applied one by one.
 */
static int check_bare(const struct guard *g, const struct diff_entry *en, const struct part *p)
{
	static const char *const names[] = {
		"head",	   "config",	"config.worktree", "hooks",	   "info",
		"objects", "refs",	"commondir",	   "gitdir",	   "modules",
		"logs",	   "worktrees", "packed-refs",	   "rebase-merge", "rebase-apply",
		"index",   "sequencer", "shallow",	   "reftable",
	};

	if (!part_is_any(p, names, ARRAY_LEN(names)) || !is_repository(g, p, ON_HOST | IN_SANDBOX))
		return -1;
	if (is_repository(g, p, ON_HOST))
		return check_inside(g, en, en->path + p->at);
	if (S_ISLNK(en->new.mode))
		return APPLY_GIT_LINK;
	return g->take_config || !en->new.mode ? -1 : APPLY_GIT_BARE;
}

/* in_git: the previous component is .git and has been checked. */
static int check_part(const struct guard *g, const struct diff_entry *en, const struct part *p,
		      bool in_git)
{
	static const char *const tools[] = {
		".hg", ".jj", ".svn", ".bzr", ".sl", "_darcs", ".pijul"
	};
	const struct str name = { p->path + p->at, p->n };

	if (name_is_alias(name, APPLY_DIR))
		return APPLY_OWN;
	if (part_is_git(p))
		return check_git(g, en, p);
	for (size_t i = 0; i < ARRAY_LEN(tools); i++)
		if (name_is_alias(name, tools[i]))
			return g->take_config ? -1 : APPLY_OTHER_TOOL;
	return in_git ? -1 : check_bare(g, en, p);
}

int guard_check(const struct guard *g, const struct diff_entry *en)
{
	bool in_git = false;

	for (size_t at = 0; en->path[at];) {
		const struct part p = { en->path, at, strcspn(en->path + at, "/") };
		int why = check_part(g, en, &p, in_git);

		if (why >= 0)
			return why;
		in_git = part_is_git(&p);
		at += p.n + (en->path[at + p.n] == '/');
	}
	return -1;
}

bool guard_in_patch(const struct guard *g, const struct diff_entry *en)
{
	for (size_t at = 0; en->path[at];) {
		const struct part p = { en->path, at, strcspn(en->path + at, "/") };

		if (part_is_git(&p))
			return false;
		at += p.n + (en->path[at + p.n] == '/');
	}
	return guard_check(g, en) < 0;
}

bool guard_is_index(const struct guard *g, const char *path)
{
	const char *slash = strrchr(path, '/');
	const struct part p = { path, slash ? (size_t)(slash - path) + 1 : 0, 5 };
	const char *above = slash ? memrchr(path, '/', (size_t)(slash - path)) : NULL;
	size_t dir = above ? (size_t)(above - path) + 1 : 0;
	bool in_git = slash && name_is_git((struct str){ path + dir, p.at - 1 - dir });

	return strcmp(path + p.at, "index") == 0 &&
	       (in_git || is_repository(g, &p, ON_HOST | IN_SANDBOX));
}

/*
 * The same file can be an index for SHA-1, with ids of 20 bytes, and a different one for SHA-256:
 * git does not verify the checksum. Only the repository's own configuration tells which applies.
 */
bool guard_index_has_sha1(const struct guard *g, const char *path)
{
	auto_done(buf_done) struct buf b = BUF_INIT(LIMIT_GIT_CONFIG);
	const char *slash = strrchr(path, '/');
	auto_free char *config = NULL;
	auto_close int fd = FD_NONE;

	if (g->dir_fd < 0)
		return true;
	if (asprintf(&config, "%.*sconfig", slash ? (int)(slash - path) + 1 : 0, path) < 0)
		return false;
	fd = stack_open_at(g->dir_fd, config, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return fd == -ENOENT;
	return io_read_all(fd, &b) == 0 && (!b.len || !memmem(b.data, b.len, "sha256", 6));
}

bool guard_index_ok(int fd)
{
	auto_done(buf_done) struct buf b = BUF_INIT(LIMIT_GIT_INDEX);

	return lseek(fd, 0, SEEK_SET) == 0 && io_read_all(fd, &b) == 0 &&
	       !git_index_fault(buf_str(&b));
}
