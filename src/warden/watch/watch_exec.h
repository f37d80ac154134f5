/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One exec that waits for the warden: its arguments, read from the task's memory, and the program
 * file. The sandbox controls everything here.
 */
#pragma once

#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"
#include "base/str.h"

struct exec_req {
	int tid; /* outside */
	int dirfd;
	unsigned flags;	     /* flags of execveat */
	uint64_t path, argv; /* addresses in the task */
};

struct exec_args {
	unsigned argc; /* number of arguments in text, each with a terminator */
	unsigned cut;  /* number of missing or shortened arguments (counted to LIMIT_ARGS) */
	size_t len;
	char text[LIMIT_TRACE_ARGV];
};

/* A few pages of the task, read whole: texts that are close together cost one read. */
enum { EXEC_PAGE = 4096, EXEC_PAGES = 3 };
struct exec_mem {
	int tid;
	int err; /* why the last read failed */
	unsigned next;
	uint64_t at[EXEC_PAGES]; /* address of each page; 0: none */
	char page[EXEC_PAGES][EXEC_PAGE];
};

/* Reads the first pages of path and arguments in one call. */
void exec_mem_init(struct exec_mem *m, const struct exec_req *q);
void exec_req_of(const struct seccomp_notif *n, struct exec_req *ret);
/* The path as given. 0, -ENAMETOOLONG, -EFAULT, or the errno that prevents reading. */
int exec_read_path(struct exec_mem *m, const struct exec_req *q, char path[LIMIT_PATH]);
/* Never fails: unreadable arguments count as cut. */
void exec_read_args(struct exec_mem *m, const struct exec_req *q, struct exec_args *ret);

/* AT_EXECVE_CHECK: the kernel runs nothing. The flags are in a register and cannot change. */
bool exec_only_asks(const struct exec_req *q);
/*
 * Find the program before the exec. root_fd: the sandbox's root; prefix: its name as seen from here
 * (empty for "/"). Makes a relative path absolute in place. 0, with *ret_fd FD_NONE if only the
 * task can follow the path; or -ENOENT, -EACCES, as the exec of a missing program would fail.
 */
int exec_find(int root_fd, struct str prefix, const struct exec_req *q, char path[LIMIT_PATH],
	      int *ret_fd);
/*
 * Open (O_PATH) the file that `given` names for the thread: relative to its dirfd, in its own root.
 * Does not follow a link at the end; ignores trailing slashes. Returns the descriptor or -errno.
 */
int exec_open(int root_fd, struct str prefix, int tid, int dirfd, const char *given);
/* The name of an open file inside the sandbox. */
int exec_name(int fd, struct str prefix, char name[LIMIT_PATH]);

/* The program that a process runs. On failure the name is empty. */
int exec_program(int pid, struct str prefix, char name[LIMIT_PATH]);
/*
 * Find the path (AT_EXECFN) and the arguments of a new program, in a task that is stopped before
 * its first instruction. Unknown values stay 0.
 */
int exec_image(struct exec_req *q);
