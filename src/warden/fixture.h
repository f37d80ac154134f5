/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole warden in the test's process: the fake driver below it, clients above it, its own state
 * directory, and a clock that jumps. Everything runs on the warden's loop.
 *
 * The clock stands still while something is ready. When nothing is ready, and no child of the
 * warden ends within a moment, the clock jumps to the next timer, so no test waits for real time.
 * Tests that use it are linked with --wrap for clock_mono_ns, epoll_wait and jail_start
 * (src/warden/meson.build).
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
	int fd; /* descriptor of the frame, or FD_NONE */
};

struct fx_client {
	struct conn conn;
	struct fx_frame *got; /* array of FX_FRAMES */
	int ngot, nread;
	bool closed;
};

struct fixture {
	struct warden *w;
	char state[64], dir[128];
	int cwd; /* working directory of the test */
	struct fx_client client[FX_CLIENTS];
	int nclients;
	bool ended; /* the warden's loop has stopped */
	uint64_t skew_ns;
	bool frozen; /* the clock does not jump */
	bool turned; /* the loop has made one turn */
	bool stuck;  /* nothing is ready, and no timer is set */
};
extern struct fixture fx;
extern unsigned fx_version; /* protocol version of the clients; 0: the newest */

/* The optional parts of the build request. */
struct fx_want {
	bool ephemeral, network, ready;
	int mounts; /* 0: one */
	uint64_t ttl_ms, idle_ms, on_timeout, memory;
};

/* A warden with its creator connected, after hello; nothing is built yet. */
void fx_begin(void);
/* Send the request. fx_build() also waits for the answer, which must be READY. */
void fx_send_build(const struct fx_want *want);
void fx_build(const struct fx_want *want);
/* End the sandbox if needed, free everything, and check that nothing is left. */
void fx_end(void);

/* Connect another client; it says hello unless `silent`. */
struct fx_client *fx_connect(bool silent);
void fx_hang_up(struct fx_client *c);
int fx_send(struct fx_client *c, uint8_t type, uint32_t chan, const struct conn_field *f, int n);
#define FX_SEND(c, type, chan, ...) \
	CHECK(fx_send((c), (type), (chan), (const struct conn_field[]){ __VA_ARGS__ }, \
		      (int)ARRAY_LEN(((const struct conn_field[]){ __VA_ARGS__ }))) == 0)
int fx_send_raw(struct fx_client *c, uint8_t type, uint32_t chan, struct str body);
/* Take the lease. */
void fx_lease(struct fx_client *c);
/* Send EXEC of `true` on a channel. */
void fx_exec(struct fx_client *c, uint32_t chan);

/* The next frame of this type, skipping others. Fails if none arrives. */
struct fx_frame *fx_await(struct fx_client *c, uint8_t type);
/* Await an ERROR with this text in its message. */
void fx_await_error(struct fx_client *c, const char *text);
/* A number field of the frame; ~0: missing. */
uint64_t fx_number(const struct fx_frame *f, uint16_t tag);
bool fx_has_text(const struct fx_frame *f, uint16_t tag, const char *text);
/* True if an unread frame of this type has arrived. */
bool fx_came(const struct fx_client *c, uint8_t type);
/* Run the loop until *done, or until nothing more happens. */
bool fx_until(const bool *done);
/* Run the loop until nothing is ready; the clock does not jump. */
void fx_settle(void);
/* Advance the clock and run the timers that are due. */
void fx_pass_ms(uint64_t ms);
/* Wait until the sandbox has ended; with this reason, unless it is NULL. */
void fx_await_end(const char *reason);
/* True if a path exists in the sandbox's directory. */
bool fx_exists(const char *path);
/* Write a file into mount i, as a process inside would. */
void fx_touch(int mount, const char *name);

/* The gateway that jail_start started: its front, and a dialer that accepts every policy. */
struct fx_gateway {
	struct conn conn, dialer;
	pid_t pid, dialer_pid; /* placeholder processes of the two */
	int started;
	int ngot;
	uint8_t got[64];
	bool mute;
	int fail; /* errno for the next start */
};
extern struct fx_gateway fx_gateway;
