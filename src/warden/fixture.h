/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole warden in the process of a test: with the fake driver below it, clients above it, a state
 * directory of its own, and a clock that jumps. Everything runs on the warden's loop.
 *
 * The clock stands still while something is ready. When nothing is, and no child of the warden's
 * ends within a moment, it jumps to the next timer: no test waits for time to pass. Tests that use
 * it are linked with --wrap for clock_mono_ns, epoll_wait and jail_start (src/warden/meson.build).
 */
#pragma once

#include "driver/fake/fake.h"
#include "warden/call/call.h"
#include "warden/generation/generation.h"

enum { FX_FRAMES = 256, FX_BODY = 4096, FX_CLIENTS = 4, FX_RANGE = 0x70000000 };

struct fx_frame {
	uint8_t type;
	uint32_t chan;
	size_t n;
	char body[FX_BODY];
	int fd; /* that came with it, or FD_NONE */
};

struct fx_client {
	struct conn conn;
	struct fx_frame *got; /* FX_FRAMES of them */
	int ngot, nread;
	bool closed;
};

struct fixture {
	struct warden *w;
	char state[64], dir[128];
	int cwd; /* of the test */
	struct fx_client client[FX_CLIENTS];
	int nclients;
	bool ended; /* the warden's loop has stopped */
	uint64_t skew_ns;
	bool frozen; /* the clock does not jump */
	bool turned; /* the loop has made a turn */
	bool stuck;  /* nothing was ready, and no timer is set */
};
extern struct fixture fx;
extern unsigned fx_version; /* that clients speak; 0: the newest */

/* What the build request says, beside what every one must. */
struct fx_want {
	bool ephemeral, network, warm;
	int mounts; /* 0: one */
	uint64_t ttl_ms, idle_ms, on_timeout, memory;
};

/* A warden with its creator, who has said hello; nothing is built yet. */
void fx_begin(void);
/* The request goes out; fx_build() waits for its answer, which must be READY. */
void fx_send_build(const struct fx_want *want);
void fx_build(const struct fx_want *want);
/* Ends the sandbox where it has not ended, frees all, and checks that nothing is left. */
void fx_end(void);

/* One more client; it has said hello unless `silent`. */
struct fx_client *fx_connect(bool silent);
void fx_hang_up(struct fx_client *c);
int fx_send(struct fx_client *c, uint8_t type, uint32_t chan, const struct conn_field *f, int n);
#define FX_SEND(c, type, chan, ...) \
	CHECK(fx_send((c), (type), (chan), (const struct conn_field[]){ __VA_ARGS__ }, \
		      (int)ARRAY_LEN(((const struct conn_field[]){ __VA_ARGS__ }))) == 0)
int fx_send_raw(struct fx_client *c, uint8_t type, uint32_t chan, struct str body);
/* The right to change the sandbox as a whole. */
void fx_lease(struct fx_client *c);
/* EXEC of `true` on a channel. */
void fx_exec(struct fx_client *c, uint32_t chan);

/* The next frame of this type; those before it are skipped. Fails where none comes. */
struct fx_frame *fx_await(struct fx_client *c, uint8_t type);
/* An ERROR with this text in its message. */
void fx_await_error(struct fx_client *c, const char *text);
/* The value of a number in it; ~0: it has none. */
uint64_t fx_number(const struct fx_frame *f, uint16_t tag);
bool fx_has_text(const struct fx_frame *f, uint16_t tag, const char *text);
/* Whether one of this type has come that was not awaited. */
bool fx_came(const struct fx_client *c, uint8_t type);
/* Run the loop until *done, or nothing more happens. */
bool fx_until(const bool *done);
/* Run it until nothing is ready; the clock does not jump. */
void fx_settle(void);
/* The clock moves on, and what is due happens. */
void fx_pass_ms(uint64_t ms);
/* Until the sandbox has ended, with this reason where it is not NULL. */
void fx_await_end(const char *reason);
/* A path in the sandbox's directory is there. */
bool fx_exists(const char *path);
/* Somebody inside writes a file into mount i. */
void fx_touch(int mount, const char *name);

/* The gateway that jail_start started: its front, and a dialer that takes every policy. */
struct fx_gateway {
	struct conn conn, dialer;
	pid_t pid, dialer_pid; /* processes that stand for them */
	int started;
	int ngot;
	uint8_t got[64];
	bool mute;
	int fail; /* errno of the next start */
};
extern struct fx_gateway fx_gateway;
