/* SPDX-License-Identifier: Apache-2.0 */
/* The behaviour of a correct init, and the exceptions of its table. */
#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "driver/fake/fake.h"
#include "t.h"

int fake_say(uint8_t type, uint32_t chan, const struct conn_field *fields, int n)
{
	return conn_say(&fake.init.conn, type, chan, fields, n);
}

static void run_close(struct fake_run *r)
{
	for (int i = 0; i < FD_ROLES; i++)
		fd_close(&r->fds[i]);
}

struct fake_run *fake_run_of(uint32_t job)
{
	for (int i = fake.init.nruns - 1; i >= 0; i--)
		if (fake.init.runs[i].job == job)
			return &fake.init.runs[i];
	return NULL;
}

struct fake_run *fake_last_run(void)
{
	CHECK(fake.init.nruns > 0);
	return &fake.init.runs[fake.init.nruns - 1];
}

void fake_exit(struct fake_run *r, int status)
{
	if (r->exited)
		return;
	r->exited = true;
	run_close(r);
	(void)fake_say(MSG_EXITED, r->job,
		       &(struct conn_field){ TAG_STATUS, (uint64_t)status, NULL }, 1);
}

void fake_print(const struct fake_run *r, uint8_t type, struct str data)
{
	(void)conn_send(&fake.init.conn, type, r->job, data);
}

void fake_credit(const struct fake_run *r, size_t n)
{
	(void)fake_say(MSG_CREDIT, r->job, &(struct conn_field){ TAG_BYTES, n, NULL }, 1);
}

void fake_ready(struct fake_run *r)
{
	struct stand_by_ready ready = { .pid = 7 };

	if (r->fds[FD_ORDER] >= 0)
		(void)send(r->fds[FD_ORDER], &ready, sizeof ready, MSG_NOSIGNAL);
}

int fake_count(uint8_t type)
{
	int n = 0;

	for (int i = 0; i < fake.init.nseen && i < FAKE_SEEN; i++)
		n += fake.init.seen[i] == type;
	return n;
}

/* Replaces the oldest run if there is no room. */
static struct fake_run *run_new(void)
{
	struct fake_init *in = &fake.init;

	if (in->nruns == FAKE_RUNS) {
		run_close(&in->runs[0]);
		memmove(in->runs, in->runs + 1, sizeof in->runs[0] * (FAKE_RUNS - 1));
		in->nruns--;
	}
	return &in->runs[in->nruns++];
}

static void take_fds(struct fake_run *r, const struct frame *f, int *fds)
{
	struct str body = f->body;
	struct field field;
	uint64_t roles = 0;
	int at = 0;

	while (field_next(&body, &field) > 0)
		if (field.tag == TAG_FDS)
			(void)field_u64(field, &roles);
	for (int i = 0; i < FD_ROLES; i++) {
		r->fds[i] = FD_NONE;
		if (roles & 1u << i && at < f->nfds) {
			r->fds[i] = TAKE_FD(fds[at]);
			at++;
		}
	}
}

static void on_run(const struct frame *f, int *fds)
{
	struct fake_run *r = run_new();

	*r = (struct fake_run){ .job = f->chan, .ahead = f->type == MSG_STAND_BY };
	take_fds(r, f, fds);
	if (fake.init.mute)
		return;
	if (r->fds[FD_GATE] >= 0)
		(void)send(r->fds[FD_GATE], "x", 1, MSG_NOSIGNAL);
	if (r->ahead && !fake.init.late)
		fake_ready(r);
	if (!r->ahead)
		(void)fake_say(MSG_STARTED, r->job, &(struct conn_field){ TAG_PID, 7, NULL }, 1);
}

static uint64_t number_of(const struct frame *f, uint16_t tag)
{
	struct str body = f->body;
	struct field field;
	uint64_t v = 0;

	while (field_next(&body, &field) > 0)
		if (field.tag == tag)
			(void)field_u64(field, &v);
	return v;
}

static void on_signal(const struct frame *f)
{
	uint64_t sig = number_of(f, TAG_SIGNAL);

	for (int i = 0; i < fake.init.nruns && sig == SIGKILL; i++) {
		struct fake_run *r = &fake.init.runs[i];

		if (f->chan == 0 || r->job == f->chan)
			fake_exit(r, SIGKILL);
	}
	if (f->chan == 0 && sig == SIGKILL)
		fake.others = 0;
}

/* Input for a call whose stdio are frames. */
static void on_input(const struct frame *f)
{
	struct fake_run *r = fake_run_of(f->chan);
	size_t room = r ? sizeof r->input - r->ninput : 0;

	if (!r)
		return;
	if (f->type == MSG_STDIN) {
		size_t n = f->body.n < room ? f->body.n : room;

		if (n)
			memcpy(r->input + r->ninput, f->body.p, n);
		r->ninput += n;
	}
	r->eof |= f->type == MSG_STDIN_EOF;
	if (f->type == MSG_RESIZE)
		r->rows = (unsigned)number_of(f, TAG_ROWS);
}

static bool by_table(const struct frame *f)
{
	for (struct fake_row *r = fake.init.rows; r && r->on; r++) {
		if (r->on != f->type || (r->times && r->used == r->times))
			continue;
		r->used++;
		if (r->send)
			(void)fake_say(r->send, f->chan, r->field, r->nfields);
		return true;
	}
	return false;
}

static void do_well(const struct frame *f, int *fds)
{
	switch (f->type) {
	case MSG_RUN:
	case MSG_STAND_BY:
		on_run(f, fds);
		break;
	case MSG_SIGNAL:
		on_signal(f);
		break;
	case MSG_STDIN:
	case MSG_STDIN_EOF:
	case MSG_RESIZE:
		on_input(f);
		break;
	case MSG_ENTER:
		(void)fake_say(MSG_ENTERED, 0, &(struct conn_field){ TAG_ERRNO, 0, NULL }, 1);
		break;
	case MSG_DIAL:
		(void)fake_say(MSG_DIALED, f->chan,
			       &(struct conn_field){ TAG_ERRNO, ECONNREFUSED, NULL }, 1);
		break;
	default:
		break;
	}
}

/* A spare child ends when its socket is closed. */
static void end_dropped(void)
{
	for (int i = 0; i < fake.init.nruns; i++) {
		struct fake_run *r = &fake.init.runs[i];
		char byte;

		if (r->ahead && !r->exited && r->fds[FD_ORDER] >= 0 &&
		    recv(r->fds[FD_ORDER], &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0)
			fake_exit(r, 0);
	}
}

static void on_frame(struct conn *c, const struct frame *f, int *fds)
{
	(void)c;
	if (fake.init.nseen < FAKE_SEEN)
		fake.init.seen[fake.init.nseen++] = f->type;
	if (!fake.init.mute)
		end_dropped();
	if (!by_table(f) && (!fake.init.mute || f->type == MSG_RUN || f->type == MSG_STAND_BY))
		do_well(f, fds);
	for (int i = 0; i < f->nfds; i++)
		fd_close(&fds[i]);
}

static void on_closed(struct conn *c, int err)
{
	(void)err;
	conn_done(c);
}

int fake_init_open(int fd)
{
	static const struct conn_ops ops = { .frame = on_frame, .closed = on_closed };
	int r = conn_init(&fake.init.conn, fake.loop, fd, &ops);

	if (r == 0 && !fake.init.no_hello)
		r = fake_say(MSG_HELLO, 0,
			     &(struct conn_field){ TAG_VERSION, fake.init.version, NULL }, 1);
	return r;
}

void fake_init_close(void)
{
	conn_done(&fake.init.conn);
	for (int i = 0; i < fake.init.nruns; i++)
		run_close(&fake.init.runs[i]);
	fake.init.nruns = 0;
}
