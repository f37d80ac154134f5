/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "ops/cay.h"
#include "ops/doctor/doctor.h"

enum { VERSION_MS = 300 };

/* Reads the version that the program prints, without its name: "cay-warden 0.1.0". */
static void read_version(int fd, char *out, size_t size)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char said[96];
	ssize_t n = poll(&p, 1, VERSION_MS) == 1 ? read(fd, said, sizeof said - 1) : 0;
	char *blank;

	said[n > 0 ? n : 0] = '\0';
	said[strcspn(said, "\n")] = '\0';
	blank = strrchr(said, ' ');
	if (blank)
		(void)str_copy(out, size, str_of(blank + 1));
}

static void ask_version(struct doctor_program *p)
{
	char *argv[] = { p->path, (char *)"--version", NULL }, *envp[] = { NULL };
	posix_spawn_file_actions_t fa;
	int io[2];
	pid_t pid;

	if (pipe2(io, O_CLOEXEC) < 0)
		return;
	if (posix_spawn_file_actions_init(&fa) == 0) {
		(void)posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDWR, 0);
		(void)posix_spawn_file_actions_adddup2(&fa, io[1], 1);
		(void)posix_spawn_file_actions_adddup2(&fa, 0, 2);
		if (posix_spawn(&pid, p->path, &fa, NULL, argv, envp) == 0) {
			fd_close(&io[1]);
			read_version(io[0], p->version, sizeof p->version);
			(void)kill(pid, SIGKILL);
			while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
				;
		}
		(void)posix_spawn_file_actions_destroy(&fa);
	}
	fd_close(&io[0]);
	fd_close(&io[1]);
}

void doctor_programs(struct doctor_facts *f)
{
	struct programs p = { 0 };
	struct err e = { 0 };
	char *slash;

	if (programs_find(&p, &e) < 0) {
		(void)str_copy(f->cay, sizeof f->cay, str_of(p.cay));
		return;
	}
	(void)str_copy(f->cay, sizeof f->cay, str_of(p.cay));
	(void)str_copy(f->warden.path, sizeof f->warden.path, str_of(p.warden));
	ask_version(&f->warden);
	/* init must be beside the warden, which looks there. */
	(void)str_copy(f->init.path, sizeof f->init.path, str_of(f->warden.path));
	slash = strrchr(f->init.path, '/');
	if (slash)
		(void)snprintf(slash + 1, sizeof f->init.path - (size_t)(slash + 1 - f->init.path),
			       "cay-init");
	if (access(f->init.path, X_OK) < 0)
		f->init.path[0] = '\0';
	else
		ask_version(&f->init);
}

/*
 * Probes the nearest existing parent, which is on the same file system. Does not create the state
 * directory.
 */
static void try_storage(struct doctor_facts *f)
{
	struct state s;
	struct stat st;
	char at[LIMIT_PATH];

	if (state_locate(&s, &f->state_err) < 0)
		return;
	(void)str_copy(f->state_dir, sizeof f->state_dir, str_of(s.dir));
	(void)str_copy(at, sizeof at, str_of(s.dir));
	f->state_exists = stat(at, &st) == 0;
	if (f->state_exists && st.st_uid != geteuid())
		(void)err_set(&f->state_err, ERR_NOT_ALLOWED, "belongs to uid %u, not to uid %u",
			      st.st_uid, geteuid());
	else if (f->state_exists && st.st_mode & STATE_OTHERS)
		(void)err_set(&f->state_err, ERR_NOT_ALLOWED, "is open to others (mode %04o)",
			      st.st_mode & 07777);
	while (stat(at, &st) < 0 && strrchr(at, '/') && strrchr(at, '/') != at)
		*strrchr(at, '/') = '\0';
	probe_storage(&f->storage, stat(at, &st) < 0 ? "/" : at, f->rootful);
}

static void look_for_pool(struct doctor_facts *f)
{
	struct state s;
	struct err e = { 0 };
	int r;

	if (!f->state_exists || f->state_err.kind != ERR_NONE || state_locate(&s, &e) < 0)
		return;
	/* Not state_open(), which creates missing parts. */
	s.fd = open(s.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s.fd < 0)
		return;
	r = storage_inspect(&s, &f->own_storage, &f->storage_err);
	f->has_storage = r > 0;
	state_done(&s);
}

void doctor_gather(struct doctor_facts *f)
{
	*f = (struct doctor_facts){ .rootful = geteuid() == 0 };
	probe_kernel(&f->kernel);
	probe_guard(&f->guard);
	probe_ns(&f->ns, f->rootful);
	probe_subid(&f->subid);
	probe_cgroup(&f->cgroup);
	probe_filter(&f->filter);
	try_storage(f);
	look_for_pool(f);
	probe_kvm(&f->kvm);
	probe_cpu(&f->cpu);
	probe_knobs(&f->knobs, f->kernel.release);
	probe_limits(&f->limits);
	doctor_programs(f);
	doctor_credentials(f);
}
