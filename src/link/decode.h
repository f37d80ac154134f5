/* SPDX-License-Identifier: Apache-2.0 */
/* Decode the frames of a warden. Pure: any input gives a complete, valid result. */
#pragma once

#include "base/limits.h"
#include "link/call.h"

/* The number in the first field with this tag, or `otherwise`. */
uint64_t frame_number(const struct frame *f, uint16_t tag, uint64_t otherwise);
/* The text of the first field with this tag, cut to size. False, with an empty text, if the field
 * is missing or contains a NUL. */
bool frame_text(const struct frame *f, uint16_t tag, char *out, size_t size);
/* The next warning of READY or STARTED. Consumes fields, which are the fields of that frame. */
bool warning_next(struct str *fields, struct str *ret);
/* Fill e from MSG_C_ERROR. Returns -1. */
int frame_error(const struct frame *f, struct err *e);

void decode_ready(const struct frame *f, struct link_ready *ret);
void decode_started(const struct frame *f, struct call_started *ret);
void decode_result(const struct frame *f, struct call_result *ret);

/* TAG_DENIED: something that the policy refused to a call. Texts are views. */
struct call_denied {
	struct str name, address, rule, reason, why, fix;
	uint64_t port, count;
};
/* fields: inside TAG_DENIED, or of MSG_C_DENIED. */
void denied_read(struct str fields, struct call_denied *ret);
/* The next one of a result. Consumes fields. */
bool denied_next(struct str *fields, struct call_denied *ret);

/* MSG_C_STATE */
struct sandbox_status {
	char state[16];
	int init_pid;
	uint32_t calls_running;
	uint64_t calls_total;
	uint64_t rss_kb;		    /* sum over all processes inside */
	uint64_t ttl_left_ms, idle_left_ms; /* UINT64_MAX: no limit */
	uint64_t expires_at_ms;		    /* real time; 0: never */
	int lease_pid;			    /* pid of the client that has the lease; 0: none */
	bool switching;			    /* a snapshot or rollback is in progress */
	char top[24];			    /* topmost layer; empty: none */
	char policy_hash[65];		    /* empty: no network */
};
void decode_status(const struct frame *f, struct sandbox_status *ret);

/* MSG_C_PROCESS */
struct link_process {
	int pid, ppid;
	uint32_t call; /* 0: none, or unknown */
	char state;    /* as in ps(1) */
	uint64_t cpu_us, rss_kb;
	uint32_t user;	 /* uid inside */
	char args[4096]; /* separated by spaces, cut; hostile text */
};
void decode_process(const struct frame *f, struct link_process *ret);

/* MSG_C_FLOW */
struct link_flow {
	char name[256], address[64];
	uint16_t port;
	uint32_t call;
	uint64_t up, down, duration_us;
};
void decode_flow(const struct frame *f, struct link_flow *ret);

/* MSG_C_CALL */
struct link_call_row {
	uint32_t call;
	int pid;
	enum call_op op;
	bool tty, detached, running, failed;
	char call_id[LIMIT_NAME + 1];
	uint64_t start_ms; /* real time */
	uint64_t out_bytes, err_bytes;
	uint64_t kept_from, kept_to; /* offsets of the output that the warden keeps */
	struct call_result result;   /* if it has ended and did not fail */
	char error[256];	     /* if it failed */
	char args[2048];	     /* separated by spaces, cut */
};
void decode_call_row(const struct frame *f, struct link_call_row *ret);
/* running, failed, or the reason for the end: exit, signal, timeout, … */
const char *call_row_state(const struct link_call_row *r);
