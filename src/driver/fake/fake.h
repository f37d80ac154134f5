/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver for tests, without isolation. create returns one end of a socket pair; fake_init is at
 * the other end, in the same process and on the same loop. Init follows its table, "on this frame
 * send that", and otherwise acts like a correct init. The driver counts each call of its functions,
 * and each can fail on demand. Processes are only numbers.
 *
 * There is only one, `fake`, because a driver's functions have no context argument. It is linked
 * into tests only.
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

/* On a frame of this type, send another on the same channel. `send` 0: send nothing. */
struct fake_row {
	uint8_t on, send;
	struct conn_field field[3];
	int nfields;
	int times; /* number of uses, then the row is ignored; 0: unlimited */
	int used;
};

/* A command that init runs, or a spare child. */
struct fake_run {
	uint32_t job;
	int fds[FD_ROLES];
	bool ahead;
	bool exited;
	/* Without descriptors: the input that arrived on its channel. */
	char input[256];
	size_t ninput;
	bool eof;
	unsigned rows;
};

enum { FAKE_RUNS = 64, FAKE_SEEN = 1024 };

struct fake_init {
	struct conn conn;
	struct fake_row *rows; /* ends with a row whose `on` is 0; or NULL */
	struct fake_run runs[FAKE_RUNS];
	int nruns;
	uint8_t seen[FAKE_SEEN]; /* types of the frames received */
	int nseen;
	bool mute;     /* sends nothing by itself */
	bool no_hello; /* does not even say hello */
	bool late;     /* a spare child is ready only after fake_ready() */
	uint64_t version;
};

struct fake {
	struct driver driver; /* a test may remove features before the build */
	struct loop *loop;
	const struct cell_spec *spec;
	const struct cell_events *events;
	struct cell *cell;
	int fail[FAKE_FNS];  /* errno with which the function fails; 0: it succeeds */
	int count[FAKE_FNS]; /* number of calls */
	int others;	     /* processes beside init */
	long other_pid;	     /* pid of the only one */
	uint64_t cpu_us;     /* processor time of every group */
	int live;	     /* generations made and not dropped */
	int stream_fd;	     /* until the warden takes it */
	struct fake_init init;
};
extern struct fake fake;

/* Start as a correct driver; loop: the warden's loop. */
void fake_begin(struct loop *loop);
/* Close everything that init holds. */
void fake_end(void);

/* fake_init.c */
int fake_init_open(int fd);
void fake_init_close(void);
int fake_say(uint8_t type, uint32_t chan, const struct conn_field *fields, int n);
/* The last run of a job, or NULL. */
struct fake_run *fake_run_of(uint32_t job);
struct fake_run *fake_last_run(void);
/* Send output of a call as frames, or credit for its input. */
void fake_print(const struct fake_run *r, uint8_t type, struct str data);
void fake_credit(const struct fake_run *r, size_t n);
/* End a run: init closes its descriptors and sends EXITED. */
void fake_exit(struct fake_run *r, int status);
/* A spare child reports ready. */
void fake_ready(struct fake_run *r);
/* Number of frames of this type received. */
int fake_count(uint8_t type);
