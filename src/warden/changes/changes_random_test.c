/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random operations in an overlay, and a walk now and then. The model is the view of a program
 * inside: the state before, updated by the events of the walk, must equal the state after. Each
 * event must be necessary for that.
 */
#include <dirent.h>

#include "warden/changes/changes_fixture.h"

enum { STEPS = 1000, STEPS_PER_WALK = 8, ENTRIES = 4096, NAMES = 4, TEXT = 96, BEGINNINGS = 50 };

struct entry {
	char path[TEXT];
	struct stat st;
	char first; /* first byte of a file: the only one that is written */
	bool in_upper;
	bool renamed;  /* in the updated state: renamed by its own event */
	bool reported; /* in the state after: an event reports it */
};

struct state {
	int n;
	struct entry v[ENTRIES];
};

struct event {
	char kind[16], from[TEXT], path[TEXT], type[16], what[16];
};

static struct state before, moved, after;
static struct event events[FX_EVENTS];

static void look_at(struct entry *x)
{
	auto_close int fd = FD_NONE;
	char upper[2 * TEXT];
	struct stat st;

	CHECK(lstat(x->path + 1, &x->st) == 0);
	(void)snprintf(upper, sizeof upper, "../upper%s", x->path);
	x->in_upper = lstat(upper, &st) == 0;
	x->first = '\0';
	x->renamed = x->reported = false;
	if (!S_ISREG(x->st.st_mode))
		return;
	fd = open(x->path + 1, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	CHECK(fd >= 0 && read(fd, &x->first, 1) >= 0);
}

static void look(struct state *s, const char *dir)
{
	DIR *d = opendir(dir[0] ? dir + 1 : ".");
	struct dirent *de;

	CHECK(d);
	while ((de = readdir(d))) {
		struct entry *x = &s->v[s->n];

		if (strcmp(de->d_name, ".") == 0 || strcmp(de->d_name, "..") == 0)
			continue;
		CHECK(s->n < ENTRIES);
		CHECK(snprintf(x->path, TEXT, "%s/%s", dir, de->d_name) < TEXT);
		look_at(x);
		s->n++;
		if (S_ISDIR(x->st.st_mode))
			look(s, x->path);
	}
	closedir(d);
}

static struct entry *get(struct state *s, const char *path)
{
	for (int i = 0; i < s->n; i++)
		if (strcmp(s->v[i].path, path) == 0)
			return &s->v[i];
	return NULL;
}

static void set(struct state *s, const char *path, const struct entry *as, bool renamed)
{
	struct entry *x = get(s, path);

	CHECK(x || s->n < ENTRIES);
	if (!x)
		x = &s->v[s->n++];
	*x = *as;
	x->renamed = renamed;
	CHECK(snprintf(x->path, TEXT, "%s", path) < TEXT);
}

static void any_path(char out[TEXT])
{
	int depth = 1 + rand() % 3, at = 0;

	for (int i = 0; i < depth; i++) {
		static const char *const names[NAMES] = { "dir", "a", "sub", "three" };

		at += snprintf(out + at, TEXT - (size_t)at, "%s%s", i ? "/" : "",
			       names[rand() % NAMES]);
	}
}

/* Each write has a different length, so that two writes within one tick of an old kernel differ. */
static void write_some(const char *path, int step, int flags)
{
	auto_close int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | flags, 0644);

	if (fd >= 0)
		CHECK(ftruncate(fd, step + 10) == 0);
}

/* After a walk since the last change, the ctime advances even on a kernel that counts ticks. */
static void rewrite(const char *path)
{
	struct stat st;
	char text[2] = { (char)('a' + rand() % 26) };

	if (lstat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0)
		fx_rewrite(path, text);
}

static void move_any(const char *from, const char *to)
{
	size_t n = strlen(from);

	if (rename(from, to) == 0 || errno != EXDEV)
		return;
	if (strncmp(from, to, n) == 0 && (to[n] == '/' || to[n] == '\0'))
		return;
	if (rmdir(to) == 0 || errno == ENOENT)
		fx_move_dir(from, to);
}

static void operate(int step)
{
	char a[TEXT], b[TEXT];
	int fd;

	any_path(a);
	any_path(b);
	switch (rand() % 12) {
	case 0:
	case 1:
		write_some(a, step, O_CREAT);
		break;
	case 2:
		write_some(a, step, 0);
		break;
	case 3:
		(void)unlink(a);
		break;
	case 4:
		(void)rmdir(a);
		break;
	case 5:
		(void)mkdir(a, 0755);
		break;
	case 6:
	case 7:
		move_any(a, b);
		break;
	case 8:
		if (chmod(a, 0700 + (mode_t)(rand() % 64)) < 0)
			break;
		break;
	case 9:
	case 10:
		rewrite(a);
		break;
	default:
		fd = open(a, O_RDWR | O_CLOEXEC);
		fd_close(&fd);
		if (symlink(b, a) < 0 && link(a, b) < 0)
			break;
	}
}

static struct event parse(const char *line)
{
	struct event v = { 0 };
	char text[4 * TEXT], *save, *word;

	(void)snprintf(text, sizeof text, "%s", line);
	word = strtok_r(text, " ", &save);
	(void)snprintf(v.kind, sizeof v.kind, "%s", word);
	word = strtok_r(NULL, " ", &save);
	if (strcmp(v.kind, "rename") == 0) {
		(void)snprintf(v.from, sizeof v.from, "%s", word);
		CHECK_STR(strtok_r(NULL, " ", &save), "->");
		word = strtok_r(NULL, " ", &save);
	}
	(void)snprintf(v.path, sizeof v.path, "%s", word);
	(void)snprintf(v.type, sizeof v.type, "%s", strtok_r(NULL, " ", &save));
	word = strtok_r(NULL, " ", &save);
	(void)snprintf(v.what, sizeof v.what, "%s", word ? word : "");
	return v;
}

/* The event that decides where the name went: on itself, or on the nearest directory above. */
static const struct event *fate(const char *path, size_t *ret_len)
{
	for (size_t n = strlen(path); n > 0; n--) {
		if (path[n] != '\0' && path[n] != '/')
			continue;
		for (int i = 0; i < fx.nevents; i++) {
			const struct event *v = &events[i];
			const char *old = strcmp(v->kind, "rename") == 0   ? v->from
					  : strcmp(v->kind, "delete") == 0 ? v->path
									   : "";

			*ret_len = n;
			if (strlen(old) == n && memcmp(old, path, n) == 0)
				return v;
		}
	}
	return NULL;
}

static const char *type_name(mode_t mode)
{
	return S_ISDIR(mode) ? "dir" : S_ISREG(mode) ? "file" : "symlink";
}

/* First the entries that stay, then the entries that move onto them. */
static void move_on(void)
{
	moved.n = 0;
	for (int pass = 0; pass < 2; pass++) {
		for (int i = 0; i < before.n; i++) {
			const char *path = before.v[i].path;
			char to[2 * TEXT];
			size_t n;
			const struct event *v = fate(path, &n);

			if ((v != NULL) != (pass == 1) || (v && strcmp(v->kind, "delete") == 0))
				continue;
			(void)snprintf(to, sizeof to, "%s%s", v ? v->path : "",
				       v ? path + n : path);
			set(&moved, to, &before.v[i], v && path[n] == '\0');
			if (v && path[n] == '\0')
				CHECK_STR(v->type, type_name(before.v[i].st.st_mode));
		}
	}
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	if (a->st_mode != b->st_mode)
		return false;
	return S_ISDIR(a->st_mode) ||
	       (a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
		a->st_mtim.tv_nsec == b->st_mtim.tv_nsec);
}

static bool is_same_ctime(const struct entry *a, const struct entry *b)
{
	return a->st.st_ctim.tv_sec == b->st.st_ctim.tv_sec &&
	       a->st.st_ctim.tv_nsec == b->st.st_ctim.tv_nsec;
}

/* True if no event is needed. A copy-up and a rename change the ctime too. */
static bool is_as_it_was(const struct entry *was, const struct entry *now)
{
	if (!is_same(&was->st, &now->st))
		return false;
	if (S_ISDIR(now->st.st_mode) || was->renamed)
		return true;
	return was->first == now->first && (!was->in_upper || is_same_ctime(was, now));
}

static void check_change(const struct event *v, const struct entry *was, const struct entry *now)
{
	bool same = was && is_same(&was->st, &now->st);

	if (strcmp(v->what, "mode") == 0)
		CHECK(was && was->st.st_mode != now->st.st_mode);
	else if (strcmp(v->what, "touched") == 0)
		CHECK(same && was->in_upper && !was->renamed && !is_same_ctime(was, now));
	else
		CHECK(!same || was->first != now->first || was->st.st_ino != now->st.st_ino);
}

/* Creates and changes: update the entry to its present state. */
static void settle(const struct event *v)
{
	struct entry *now = get(&after, v->path), *was = get(&moved, v->path);
	bool create = strcmp(v->kind, "create") == 0;

	if (!create && strcmp(v->kind, "change") != 0)
		return;
	CHECK(now);
	CHECK(!now->reported);
	CHECK_STR(v->type, type_name(now->st.st_mode));
	if (create)
		CHECK(!was || S_ISREG(was->st.st_mode) || S_ISLNK(was->st.st_mode));
	else
		check_change(v, was, now);
	set(&moved, v->path, now, false);
	now->reported = true;
}

static void check_walk(void)
{
	fx_walk();
	CHECK(fx.nevents < FX_EVENTS);
	for (int i = 0; i < fx.nevents; i++)
		events[i] = parse(fx.events[i]);
	after.n = 0;
	look(&after, "");
	move_on();
	for (int i = 0; i < fx.nevents; i++)
		settle(&events[i]);
	for (int i = 0; i < after.n; i++) {
		const struct entry *x = get(&moved, after.v[i].path);

		if (!x || !is_as_it_was(x, &after.v[i]))
			t_fail(after.v[i].path, x ? 1 : 0, "no event says what it is now");
	}
	for (int i = 0; i < moved.n; i++)
		if (!get(&after, moved.v[i].path))
			t_fail(moved.v[i].path, 0, "no event says that it is gone");
	before = after;
}

static void run(unsigned seed, int steps)
{
	printf("# seed %u\n", seed);
	fflush(stdout);
	srand(seed);
	fx_overlay(true);
	before.n = 0;
	look(&before, "");
	for (int i = 0; i < steps; i++) {
		operate(i);
		if (rand() % STEPS_PER_WALK == 0)
			check_walk();
	}
	check_walk();
	fx_done();
}

static void events_lead_from_each_state_to_the_next(void)
{
	const char *given = getenv("CHANGES_SEED");

	run(given ? (unsigned)strtoul(given, NULL, 10) : (unsigned)time(NULL), STEPS);
}

static void events_lead_from_each_state_to_the_next_as_always(void)
{
	run(1, STEPS);
}

/* Short runs: directories of the lower move early, before their entries are in the upper. */
static void beginnings_do_too(void)
{
	for (unsigned seed = 1; seed <= BEGINNINGS; seed++) {
		pid_t pid = fork();
		int status;

		if (pid == 0) {
			run(seed + (unsigned)time(NULL), STEPS / 25);
			_exit(0);
		}
		CHECK(waitpid(pid, &status, 0) == pid);
		if (WIFEXITED(status) && WEXITSTATUS(status) == T_SKIPPED)
			t_skip("the run above cannot be made here");
		CHECK(status == 0);
	}
}

T_MAIN(T(events_lead_from_each_state_to_the_next),
       T(events_lead_from_each_state_to_the_next_as_always), T(beginnings_do_too))
