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

enum exec_found {
	EXEC_MISS,   /* the exec will fail: there is no such program */
	EXEC_FOUND,  /* *ret_fd is the file */
	EXEC_UNSURE, /* a path that leads through something only the task can follow */
};

/*
 * Find the program. root_fd: of the sandbox, whose own name as seen from here is `prefix`
 * (empty for "/"). A relative path is made absolute in place.
 */
enum exec_found exec_find(int root_fd, struct str prefix, const struct exec_req *q,
			  char path[LIMIT_PATH], int *ret_fd);
/* The name of an open file inside the sandbox. */
int exec_name(int fd, struct str prefix, char name[LIMIT_PATH]);
