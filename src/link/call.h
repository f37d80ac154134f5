/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call on a link: a command, a file or a tree, with its streams.
 *
 * Output: the warden sends at most `window` unread bytes; link_call_taken() reports bytes as read.
 * A warden of version 2 knows no window, so the link stops reading its socket instead. Input:
 * link_call_write() takes at most the room; the callback `room` reports new room.
 */
#pragma once

#include "link/link.h"

enum call_stream { CALL_STDOUT, CALL_STDERR };

/* A request for a call. All texts are borrowed until link_call() returns. */
struct call_spec {
	enum call_op op;
	const char *const *argv; /* NULL-terminated; NULL: the user's shell */
	const char *const *env;	 /* K=V, NULL-terminated; NULL: none */
	const char *const *labels;
	const char *cwd, *user;	 /* NULL: the sandbox's default */
	const char *path;	 /* for a file operation */
	const char *call_id;	 /* chosen by the caller; NULL: none */
	uint64_t offset, length; /* for READ_FILE; length 0: all */
	unsigned mode;		 /* for WRITE_FILE; 0: the default */
	uint64_t timeout_ms, memory;
	bool tty, final, best_effort;
	unsigned rows, cols;
	bool detached, idempotent;
	uint64_t retain_bytes; /* 0: the maximum */
	struct str fields;     /* more fields in wire format, sent first */
	uint64_t window;       /* 0: LINK_WINDOW; LINK_NO_OUTPUT: detached, without output */
	uint64_t start_ms;     /* deadline for STARTED; 0: LINK_START_MS; or LINK_NO_DEADLINE */
};

#define LINK_NO_OUTPUT	 UINT64_MAX
#define LINK_NO_DEADLINE UINT64_MAX
enum { LINK_WINDOW = 256 * 1024, LINK_START_MS = 30000 };

/* A request to join a running call. */
struct call_attach {
	uint64_t call;	     /* number of the call; 0: find it by call_id */
	const char *call_id; /* or NULL */
	uint64_t offset;     /* where in the output to start */
	bool writes;	     /* the client writes to stdin */
	bool takes;	     /* also if another one does: that one no longer does */
	uint64_t window;     /* as in call_spec */
};

struct call_started {
	uint32_t call;
	int pid;	   /* inside */
	bool existing;	   /* the call existed before this request */
	uint64_t offset;   /* of the first output byte that follows */
	uint64_t dropped;  /* bytes before the offset that the warden no longer keeps */
	struct str fields; /* WARNING*; borrowed */
};

struct call_result {
	uint32_t call;
	int status; /* wait(2) */
	int code;   /* as a shell reports it: exit code, 128 + signal, 124 after a timeout */
	char reason[32];
	uint64_t duration_us, cpu_us, maxrss_kb, out_bytes, err_bytes;
	uint64_t oom_kills, oom_limit;
	bool oom_own;	   /* the call reached its own limit, not the sandbox's */
	struct str fields; /* DENIED*; borrowed */
};

struct link_call;

struct link_call_ops {
	/* The call runs. May come after the first output. Optional. */
	void (*started)(struct link_call *c, const struct call_started *s);
	/* data is borrowed. */
	void (*output)(struct link_call *c, enum call_stream stream, struct str data);
	/* The policy has just refused a target to the call for the first time. fields as inside
	 * TAG_DENIED; borrowed. The result lists the target again. Optional. */
	void (*denied)(struct link_call *c, struct str fields);
	/* The caller may now write this many bytes to stdin. Optional. */
	void (*room)(struct link_call *c, size_t bytes);
	/* Once, as the last callback: with a result, or with the reason for the failure. Code
	 * exec.failed: the command does not exist or cannot be executed. */
	void (*ended)(struct link_call *c, const struct call_result *r, const struct err *why);
};

struct link_call {
	struct link_channel channel;
	const struct link_call_ops *ops;
	bool started, detached, eof;
	bool joins;	 /* another client may own stdin: STARTED reports how much may be written */
	size_t room;	 /* bytes of stdin that the warden accepts now */
	uint64_t window; /* 0: the warden sends no output */
	uint64_t ahead;	 /* bytes of output received and not yet taken */
	uint64_t owed;	 /* bytes taken and not yet reported to the warden */
};

/* 0, or -errno; on failure no callback runs. */
int link_call(struct link *l, struct link_call *c, const struct call_spec *spec,
	      const struct link_call_ops *ops);
int link_attach(struct link *l, struct link_call *c, const struct call_attach *how,
		const struct link_call_ops *ops);
/* Returns the number of bytes taken: at most the room. */
size_t link_call_write(struct link_call *c, struct str data);
/* The number of bytes that link_call_write() would take now. */
size_t link_call_room(const struct link_call *c);
void link_call_taken(struct link_call *c, enum call_stream stream, size_t n);
void link_call_eof(struct link_call *c);
void link_call_signal(struct link_call *c, int sig);
void link_call_resize(struct link_call *c, unsigned rows, unsigned cols);
/* Run no more callbacks for the call. The call ends, unless it is detached. Legal after its end. */
void link_call_drop(struct link_call *c);
/* Append the fields of MSG_C_EXEC. 0 or -errno. */
int call_spec_put(struct buf *out, const struct call_spec *s);
