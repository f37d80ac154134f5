/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One exec that waits for us: what it was given, read from the memory of the task, and the
 * file that it will run. Everything here was written by the sandbox.
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
	unsigned flags;	     /* of execveat */
	uint64_t path, argv; /* addresses in the task */
};

struct exec_args {
	unsigned argc; /* how many stand in text, each with a terminator */
	unsigned cut;  /* how many are missing or shortened (counted to LIMIT_ARGS) */
	size_t len;
	char text[LIMIT_TRACE_ARGV];
};

/* A few pages of the task, read whole: texts that lie together cost one read. */
enum { EXEC_PAGE = 4096, EXEC_PAGES = 3 };
struct exec_mem {
	int tid;
	int err; /* why the last read failed */
	unsigned next;
	uint64_t at[EXEC_PAGES]; /* address of each page; 0: none */
	char page[EXEC_PAGES][EXEC_PAGE];
};

/* Reads the pages where path and arguments begin, at once. */
void exec_mem_init(struct exec_mem *m, const struct exec_req *q);
void exec_req_of(const struct seccomp_notif *n, struct exec_req *ret);
/* The path as it was given. 0, -ENAMETOOLONG, -EFAULT, or what forbids us to read it. */
int exec_read_path(struct exec_mem *m, const struct exec_req *q, char path[LIMIT_PATH]);
/* Never fails: what cannot be read counts as cut. */
void exec_read_args(struct exec_mem *m, const struct exec_req *q, struct exec_args *ret);

/* AT_EXECVE_CHECK: the kernel runs nothing. Flags stand in a register and cannot change. */
bool exec_only_asks(const struct exec_req *q);
/*
 * Find the program before the exec. root_fd: of the sandbox, whose own name as seen from here is
 * `prefix` (empty for "/"). A relative path is made absolute in place. 0, with *ret_fd FD_NONE
 * where only the task can follow the path; or the error (-ENOENT, -EACCES) that the exec of a
 * program that is not there has.
 */
int exec_find(int root_fd, struct str prefix, const struct exec_req *q, char path[LIMIT_PATH],
	      int *ret_fd);
/*
 * Open (O_PATH) what `given` names for the thread: relative to its dirfd, in its own root. A link
 * at the end is not followed; slashes there do not count. Returns the descriptor or -errno.
 */
int exec_open(int root_fd, struct str prefix, int tid, int dirfd, const char *given);
/* The name of an open file inside the sandbox. */
int exec_name(int fd, struct str prefix, char name[LIMIT_PATH]);

/* The program that a process runs. On failure the name is empty. */
int exec_program(int pid, struct str prefix, char name[LIMIT_PATH]);
/*
 * Where the kernel has put the path (AT_EXECFN) and the arguments of a new program, in a task that
 * is stopped before its first instruction. What is not known stays 0.
 */
int exec_image(struct exec_req *q);
