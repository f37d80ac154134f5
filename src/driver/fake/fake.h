/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver for tests, with no isolation at all: create gives one end of a socket pair, and
 * fake_init sits at the other end, in the same process and on the same loop. Init does what its
 * table says, "on this frame send that", and what a good init would where the table is silent.
 * Every function of the driver is counted and fails on demand. Processes are numbers.
 *
 * There is one, in `fake`: a driver's functions have no place for more. It is linked into tests
 * only.
 */
#pragma once

#include "driver/driver.h"
#include "loop/conn.h"

enum fake_fn {
	FAKE_CREATE,
	FAKE_VERIFY,
	FAKE_CLAIM,
	FAKE_RENEW,
	FAKE_AHEAD,
	FAKE_ENTER,
	FAKE_STAY,
	FAKE_SEAL,
	FAKE_DROP,
	FAKE_AS_OWNER,
	FAKE_GROUP_OPEN,
	FAKE_GROUP_LIMIT,
	FAKE_GROUP_KILL,
	FAKE_GROUP_REMOVE,
	FAKE_FREEZE,
	FAKE_THAW,
	FAKE_OTHERS,
	FAKE_TERMINAL,
	FAKE_KILL,
	FAKE_REAP,
	FAKE_DESTROY,
	FAKE_FNS,
};

/* On a frame of this type, send another on the same channel. `send` 0: say nothing. */
struct fake_row {
	uint8_t on, send;
	struct conn_field field[3];
	int nfields;
	int times; /* so often, then the row is used up; 0: always */
	int used;
};

/* A command that init was told to run, or a child to stand by. */
struct fake_run {
	uint32_t job;
	int fds[FD_ROLES];
	bool ahead;
	bool exited;
	/* Where no descriptors pass: what came on its channel. */
	char input[256];
	size_t ninput;
	bool eof;
	unsigned rows;
};

enum { FAKE_RUNS = 64, FAKE_SEEN = 1024 };

struct fake_init {
	struct conn conn;
	struct fake_row *rows; /* the last has on 0; or NULL */
	struct fake_run runs[FAKE_RUNS];
	int nruns;
	uint8_t seen[FAKE_SEEN]; /* types of frames that came */
	int nseen;
	bool mute;     /* does nothing by itself */
	bool no_hello; /* nor says hello */
	bool late;     /* a child made ahead is ready only when fake_ready() says so */
	uint64_t version;
};

struct fake {
	struct driver driver; /* may be narrowed before the sandbox is built */
	struct loop *loop;
	const struct cell_spec *spec;
	const struct cell_events *events;
	struct cell *cell;
	int fail[FAKE_FNS];  /* errno with which the function fails; 0: it does not */
	int count[FAKE_FNS]; /* how often it was called */
	int others;	     /* processes beside init */
	long other_pid;	     /* of the only one */
	int live;	     /* generations that were made and not dropped */
	int stream_fd;	     /* until the warden takes it */
	struct fake_init init;
};
extern struct fake fake;

/* As a good one; loop: of the warden. */
void fake_begin(struct loop *loop);
/* Close what init holds. */
void fake_end(void);

/* fake_init.c */
int fake_init_open(int fd);
void fake_init_close(void);
int fake_say(uint8_t type, uint32_t chan, const struct conn_field *fields, int n);
/* The last run of a job, or NULL. */
struct fake_run *fake_run_of(uint32_t job);
struct fake_run *fake_last_run(void);
/* Output of a call as frames, or input that was taken. */
void fake_print(const struct fake_run *r, uint8_t type, struct str data);
void fake_credit(const struct fake_run *r, size_t n);
/* It ends: init lets go of its descriptors and says EXITED. */
void fake_exit(struct fake_run *r, int status);
/* A child that stands by says that it is ready. */
void fake_ready(struct fake_run *r);
/* How many frames of this type have come. */
int fake_count(uint8_t type);
