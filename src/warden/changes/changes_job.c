/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/changes/changes_job.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "sys/process/close_but.h"
#include "sys/process/raw.h"
#include "warden/changes/changes_state.h"

enum { WALKER_NICE = 5 };

/*
 * The memory file: this head, then a counter per root, the differences, their directories, the
 * gaps, the text. Both sides are the same program, so all of it is in native form.
 */
struct result {
	uint64_t text_len, unlisted;
	uint32_t ndiffs, ndirs, ncalls;
	bool new_index;
};

struct saved {
	uint64_t files, bytes; /* changes_base.h */
};

struct changes_job {
	struct changes *changes;
	pid_t pid; /* 0: reaped */
	int pidfd, result_fd, index_fd;
	uint64_t start_ns, start_real_ns;
	char *map;
	size_t map_len;
	struct changes_call *calls;
	struct changes_report report; /* points into the map, but for the gaps */
	struct changes_emitter *emitter;
	bool new_index;
};

static struct saved saved_of(const struct changes_root *root)
{
	const struct changes_base *b = root->base;

	return b ? (struct saved){ b->files, b->bytes } : (struct saved){ 0 };
}

static int write_result(const struct changes_job *j, const struct changes_merge *m)
{
	const struct changes *c = j->changes;
	const struct changes_report *p = m->report;
	struct result head = {
		.text_len = p->text.len,
		.unlisted = m->tree.unlisted,
		.ndiffs = p->ndiffs,
		.ndirs = p->ndirs,
		.ncalls = p->ncalls,
		.new_index = m->new.begun,
	};
	int r = io_write_all(j->result_fd, &head, sizeof head);

	for (int i = 0; i < c->nroots && r == 0; i++) {
		struct saved saved = saved_of(&c->roots[i]);

		r = io_write_all(j->result_fd, &saved, sizeof saved);
	}
	if (r == 0 && p->ndiffs)
		r = io_write_all(j->result_fd, p->diffs, p->ndiffs * sizeof *p->diffs);
	if (r == 0 && p->ndirs)
		r = io_write_all(j->result_fd, p->dirs, p->ndirs * sizeof *p->dirs);
	if (r == 0)
		r = io_write_all(j->result_fd, p->gaps, (p->ncalls + 1) * sizeof *p->gaps);
	return r < 0 || !p->text.len ? r : io_write_all(j->result_fd, p->text.data, p->text.len);
}

static int keep_fds(const struct changes_job *j)
{
	const struct changes *c = j->changes;
	size_t most = 4;
	auto_free int *keep = NULL;
	int n = 0;

	for (int i = 0; i < c->nroots; i++)
		most += 2 + (size_t)c->roots[i].nlayers;
	keep = malloc(most * sizeof *keep);
	if (!keep)
		return -ENOMEM;
	keep[n++] = j->result_fd;
	keep[n++] = j->index_fd;
	keep[n++] = c->dirfd;
	keep[n++] = c->index.fd;
	for (int i = 0; i < c->nroots; i++) {
		const struct changes_root *root = &c->roots[i];

		keep[n++] = root->upper_fd;
		keep[n++] = root->lower_fd;
		for (int k = 0; k < root->nlayers; k++)
			keep[n++] = root->layers[k];
	}
	return close_but(keep, n);
}

static int compare(struct changes_job *j, const struct changes_call *calls, int ncalls)
{
	struct changes_report report;
	struct changes_merge *m;
	int r = changes_report_init(&report, j->changes->roots, calls, (uint32_t)ncalls);

	if (r < 0)
		return r;
	report.known_ns = clock_coarse_ns();
	report.since_ns = j->changes->since_ns;
	m = changes_merge_new(j->changes, &report);
	m->new.fd = j->index_fd;
	r = changes_compare(m, j->changes);
	if (r == 0)
		r = changes_writer_finish(&m->new);
	return r < 0 ? r : write_result(j, m);
}

static void __attribute__((noreturn))
walker_run(struct changes_job *j, const struct changes_call *calls, int ncalls, pid_t warden)
{
	int r;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != warden)
		_exit(ESRCH);
	(void)setpriority(PRIO_PROCESS, 0, WALKER_NICE);
	r = keep_fds(j);
	if (r == 0)
		r = compare(j, calls, ncalls);
	_exit(r < 0 ? -r & 0xff : 0);
}

static int start(struct changes_job *j, const struct changes_call *calls, int ncalls)
{
	pid_t warden = getpid();

	j->result_fd = memfd_create("changes", MFD_CLOEXEC);
	if (j->result_fd < 0)
		return -errno;
	j->index_fd = changes_index_file(j->changes->dirfd);
	if (j->index_fd < 0)
		return j->index_fd;
	j->pid = fork();
	if (j->pid < 0) {
		j->pid = 0;
		return -errno;
	}
	if (j->pid == 0)
		walker_run(j, calls, ncalls, warden);
	j->pidfd = raw_pidfd_open(j->pid);
	return j->pidfd < 0 ? -errno : 0;
}

int changes_job_start(struct changes *c, const struct changes_call *calls, int ncalls,
		      struct changes_job **ret, struct err *e)
{
	auto_done(changes_job_free) struct changes_job *j = calloc(1, sizeof *j);
	int r = -ENOMEM;

	if (j) {
		j->changes = c;
		j->pidfd = j->result_fd = j->index_fd = FD_NONE;
		j->start_ns = clock_mono_ns();
		j->start_real_ns = clock_real_ns();
		r = start(j, calls, ncalls);
	}
	if (r < 0)
		return err_sys(e, -r, "start to look for changed files");
	*ret = TAKE_PTR(j);
	return 0;
}

/* Wait for the child's end. 0, or -errno if it did not succeed. */
static int reap(struct changes_job *j)
{
	int status = 0;
	pid_t r;

	do
		r = waitpid(j->pid, &status, 0);
	while (r < 0 && errno == EINTR);
	j->pid = 0;
	fd_close(&j->pidfd);
	if (r < 0)
		return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EINTR;
}

void changes_job_free(struct changes_job *j)
{
	if (!j)
		return;
	if (j->pid) {
		(void)kill(j->pid, SIGKILL); /* our own child, not reaped: the number is its own */
		(void)reap(j);
	}
	changes_emitter_free(j->emitter);
	if (j->map)
		(void)munmap(j->map, j->map_len);
	free(j->report.gaps);
	free(j->calls);
	fd_close(&j->result_fd);
	fd_close(&j->index_fd);
	free(j);
}

int changes_job_pidfd(const struct changes_job *j)
{
	return j->pidfd;
}

static int map_result(struct changes_job *j)
{
	struct stat st;
	void *p;

	if (fstat(j->result_fd, &st) < 0)
		return -errno;
	if (st.st_size < (off_t)sizeof(struct result))
		return -EIO;
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, j->result_fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	j->map = p;
	j->map_len = (size_t)st.st_size;
	return 0;
}

/* The next n bytes of the map, or NULL if it is shorter. */
static void *take_part(const struct changes_job *j, size_t *at, size_t n)
{
	char *p = j->map + *at;

	if (n > j->map_len - *at)
		return NULL;
	*at += n;
	return p;
}

static int read_result(struct changes_job *j, const struct result *head)
{
	struct changes_report *p = &j->report;
	const struct changes *c = j->changes;
	size_t at = sizeof *head;
	const struct saved *saved = take_part(j, &at, (size_t)c->nroots * sizeof *saved);
	const uint64_t *gaps;

	p->diffs = take_part(j, &at, (size_t)head->ndiffs * sizeof *p->diffs);
	p->dirs = take_part(j, &at, (size_t)head->ndirs * sizeof *p->dirs);
	gaps = take_part(j, &at, ((size_t)head->ncalls + 1) * sizeof *gaps);
	p->text.data = take_part(j, &at, head->text_len);
	if (!saved || !p->diffs || !p->dirs || !gaps || !p->text.data || at != j->map_len ||
	    head->ncalls > p->ncalls)
		return -EIO;
	p->ndiffs = head->ndiffs;
	p->ndirs = head->ndirs;
	p->text.len = head->text_len;
	for (uint32_t i = 0; i < head->ncalls; i++)
		p->gaps[i] = gaps[i];
	p->gaps[p->ncalls] = gaps[head->ncalls];
	for (int i = 0; i < c->nroots; i++)
		if (c->roots[i].base) {
			c->roots[i].base->files = (uint32_t)saved[i].files;
			c->roots[i].base->bytes = saved[i].bytes;
		}
	return 0;
}

static int take_result(struct changes_job *j, const struct changes_call *calls, int ncalls)
{
	const struct result *head;
	int r = map_result(j);

	if (r < 0)
		return r;
	head = (const void *)j->map;
	j->calls = malloc(((size_t)ncalls + 1) * sizeof *calls);
	if (!j->calls)
		return -ENOMEM;
	if (ncalls)
		memcpy(j->calls, calls, (size_t)ncalls * sizeof *calls);
	r = changes_report_init(&j->report, j->changes->roots, j->calls, (uint32_t)ncalls);
	j->report.since_ns = j->changes->since_ns;
	if (r == 0)
		r = read_result(j, head);
	j->new_index = head->new_index;
	return r < 0 ? r : changes_emitter_new(&j->report, head->unlisted, &j->emitter);
}

int changes_job_collect(struct changes_job *j, const struct changes_call *calls, int ncalls)
{
	int r = reap(j);

	changes_walked(j->changes, j->start_ns);
	return r < 0 ? r : take_result(j, calls, ncalls);
}

int changes_job_emit(struct changes_job *j, const struct changes_sink *to, uint32_t most,
		     struct err *e)
{
	struct changes *c = j->changes;
	int r = changes_emitter_some(j->emitter, to, most, e);

	if (r == 0)
		c->since_ns = j->start_real_ns;
	if (r == 0 && j->new_index)
		changes_index_replace(&c->index, c->dirfd, TAKE_FD(j->index_fd));
	return r;
}
