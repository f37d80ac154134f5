/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sandbox/toolchains.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"

#define INSIDE "/home/user/"
#define USUAL  "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* bin: where its programs are, unless each version has its own bin; NULL: none. */
static const struct toolchain {
	const char *dir, *versions, *bin;
} rows[TOOLCHAIN_MOUNTS] = {
	{ ".cargo/bin", NULL, ".cargo/bin" },
	{ ".rustup", NULL, NULL },
	{ ".pyenv", ".pyenv/versions", NULL },
	{ ".nvm", ".nvm/versions/node", NULL },
	{ "go", NULL, "go/bin" },
};

static const char *keep(struct sandbox_spec *s, char *text)
{
	if (text)
		s->texts[s->ntexts++] = text;
	return text;
}

/* The entry of a directory with the highest version; false if there is none. */
static bool newest(const char *dir, char *out, size_t size)
{
	DIR *d = opendir(dir);
	struct dirent *de;

	out[0] = '\0';
	while (d && (de = readdir(d)))
		if (de->d_name[0] != '.' && strlen(de->d_name) < size &&
		    strverscmp(de->d_name, out) > 0)
			(void)snprintf(out, size, "%s", de->d_name);
	if (d)
		closedir(d);
	return out[0] != '\0';
}

/* Append the inner directory of the programs, and a colon. */
static void add_bin(const struct toolchain *t, const char *home, char *path, size_t size)
{
	char dir[LIMIT_PATH], version[NAME_MAX + 1] = "";
	size_t at = strlen(path);

	if (t->versions) {
		(void)snprintf(dir, sizeof dir, "%s/%s", home, t->versions);
		if (!newest(dir, version, sizeof version))
			return;
		(void)snprintf(path + at, size - at, INSIDE "%s/%s/bin:", t->versions, version);
	} else if (t->bin) {
		(void)snprintf(path + at, size - at, INSIDE "%s:", t->bin);
	}
}

static int add_mount(struct sandbox_spec *s, const struct toolchain *t, const char *home)
{
	struct mount_spec *m = &s->mounts[s->spec.ndirs + s->spec.nros];
	char path[LIMIT_PATH], *text = NULL;
	struct stat st;

	(void)snprintf(path, sizeof path, "%s/%s", home, t->dir);
	if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
		return 0;
	m->path = keep(s, strdup(path));
	if (asprintf(&text, INSIDE "%s", t->dir) < 0)
		text = NULL;
	m->dest = keep(s, text);
	s->spec.nros++;
	return m->path && m->dest ? 1 : -ENOMEM;
}

static int add_env(struct sandbox_spec *s, const char *text)
{
	const char *entry = keep(s, strdup(text));

	if (entry)
		s->env[s->spec.env.n++] = entry;
	return entry ? 0 : -ENOMEM;
}

/* The shown directories are read-only, so the programs need other directories to write to. */
static int add_places(struct sandbox_spec *s, const struct toolchain *t)
{
	int r;

	if (strcmp(t->dir, "go") != 0)
		return 0;
	r = add_env(s, "GOBIN=" INSIDE ".local/bin");
	return r < 0 ? r : add_env(s, "GOMODCACHE=" INSIDE ".cache/go-mod");
}

int toolchains_add(struct sandbox_spec *s, const char *home, bool has_path, struct err *e)
{
	char path[4 * LIMIT_PATH] = "PATH=" INSIDE ".local/bin:";
	size_t at;
	int found = 0;

	if (!home || home[0] != '/')
		return err_set(e, ERR_INVALID, "--toolchains: HOME is not set");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int r = add_mount(s, &rows[i], home);

		found += r > 0;
		if (r > 0) {
			add_bin(&rows[i], home, path, sizeof path);
			r = add_places(s, &rows[i]);
		}
		if (r < 0)
			return err_sys(e, -r, "--toolchains");
	}
	if (!found) {
		(void)err_set(e, ERR_INVALID, "--toolchains: '%s' has none", home);
		return err_hint(e, "it looks for .cargo, .rustup, .pyenv, .nvm and go there");
	}
	if (has_path)
		return 0;
	at = strlen(path);
	(void)snprintf(path + at, sizeof path - at, "%s", USUAL);
	return add_env(s, path) < 0 ? err_sys(e, ENOMEM, "--toolchains") : 0;
}
