/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call on a link: a command, a file or a tree, with its streams.
 *
 * Output: the warden sends at most `window` bytes ahead; link_call_taken() gives them back. With
 * a warden of version 2, which knows no window, the link stops reading its socket instead.
 * Input: link_call_write() takes at most the room; `room` tells when there is more.
 */
#pragma once

#include "link/link.h"

enum call_stream { CALL_STDOUT, CALL_STDERR };

/* What a call is asked for with. All texts are borrowed until link_call() returns. */
struct call_spec {
	enum call_op op;
	const char *const *argv; /* NULL-terminated; NULL: the user's shell */
	const char *const *env;	 /* K=V, NULL-terminated; NULL: none */
	const char *const *labels;
	const char *cwd, *user;	 /* NULL: the sandbox's */
	const char *path;	 /* of a file operation */
	const char *call_id;	 /* the caller's own; NULL: none */
	uint64_t offset, length; /* of READ_FILE; length 0: all */
	unsigned mode;		 /* of WRITE_FILE; 0: as usual */
	uint64_t timeout_ms, memory;
	bool tty, final, best_effort;
	unsigned rows, cols;
	bool detached, idempotent;
	uint64_t retain_bytes; /* 0: as much as may be */
	struct str fields;     /* more fields, as on the wire; first */
	uint64_t window;       /* 0: LINK_WINDOW; LINK_NO_OUTPUT: detached, without output */
	uint64_t start_ms;     /* deadline for STARTED; 0: LINK_START_MS; or LINK_NO_DEADLINE */
};

#define LINK_NO_OUTPUT	 UINT64_MAX
#define LINK_NO_DEADLINE UINT64_MAX
enum { LINK_WINDOW = 256 * 1024, LINK_START_MS = 30000 };

/* What a call is joined with. */
struct call_attach {
	uint64_t call;	     /* its number; 0: by call_id */
	const char *call_id; /* or NULL */
	uint64_t offset;     /* where in the output to begin */
	bool writes;	     /* to stdin */
	uint64_t window;     /* as above */
};

struct call_started {
	uint32_t call;
	int pid;	   /* inside */
	bool existing;	   /* it was there before */
	uint64_t offset;   /* of the first byte of output that comes */
	uint64_t dropped;  /* bytes before that, which are not kept any more */
	struct str fields; /* WARNING*; borrowed */
};

struct call_result {
	uint32_t call;
	int status; /* wait(2) */
	int code;   /* as a shell would see it: exit, 128 + signal, 124 after a timeout */
	char reason[32];
	uint64_t duration_us, cpu_us, maxrss_kb, out_bytes, err_bytes;
	uint64_t oom_kills, oom_limit;
	bool oom_own;	   /* the limit was the call's own */
	struct str fields; /* DENIED*; borrowed */
};

struct link_call;

struct link_call_ops {
	/* It runs. May come after the first output. Optional. */
	void (*started)(struct link_call *c, const struct call_started *s);
	/* data is borrowed. */
	void (*output)(struct link_call *c, enum call_stream stream, struct str data);
	/* The policy has just refused a target to the call for the first time. fields as inside
	 * TAG_DENIED; borrowed. The result lists the target again. Optional. */
	void (*denied)(struct link_call *c, struct str fields);
	/* So much stdin may be written now. Optional. */
	void (*room)(struct link_call *c, size_t bytes);
	/* Once, last: with a result, or with why there is none (code exec.failed: the command does
	 * not exist or cannot be executed). */
	void (*ended)(struct link_call *c, const struct call_result *r, const struct err *why);
};

struct link_call {
	struct link_channel channel;
	const struct link_call_ops *ops;
	bool started, detached, eof;
	bool joins;	 /* stdin may be another client's: STARTED tells how much may be written */
	size_t room;	 /* stdin that the warden will take */
	uint64_t window; /* 0: no output is sent */
	uint64_t ahead;	 /* output that came and was not taken */
	uint64_t owed;	 /* taken, and not yet told to the warden */
};

/* 0, or -errno and nothing is told. */
int link_call(struct link *l, struct link_call *c, const struct call_spec *spec,
	      const struct link_call_ops *ops);
int link_attach(struct link *l, struct link_call *c, const struct call_attach *how,
		const struct link_call_ops *ops);
/* How much was taken: at most the room. */
size_t link_call_write(struct link_call *c, struct str data);
/* How much could be. */
size_t link_call_room(const struct link_call *c);
void link_call_taken(struct link_call *c, enum call_stream stream, size_t n);
void link_call_eof(struct link_call *c);
void link_call_signal(struct link_call *c, int sig);
void link_call_resize(struct link_call *c, unsigned rows, unsigned cols);
/* Nothing more is told of it. The call ends, unless it is detached. Legal on one that has ended. */
void link_call_drop(struct link_call *c);
/* The fields of MSG_C_EXEC. 0 or -errno. */
int call_spec_put(struct buf *out, const struct call_spec *s);
