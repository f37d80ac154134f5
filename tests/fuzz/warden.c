/* SPDX-License-Identifier: Apache-2.0 */
#include "warden.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "proto_rows.h"
#include "t.h"
#include "warden/fixture.h"

enum { STEPS = 64, FIELDS = 8, BODY = 64 * 1024 };

struct reader {
	const uint8_t *p;
	size_t n;
};

static unsigned take(struct reader *r)
{
	if (!r->n)
		return 0;
	r->n--;
	return *r->p++;
}

static uint64_t take_number(struct reader *r)
{
	static const uint64_t odd[] = {
		0,	   1,	     2,		 9,	   16,
		0xffff,	   1u << 31, UINT64_MAX, 1u << 20, UINT64_MAX / 1000,
		INT64_MAX, 4096,     3600000,	 100,	   50,
		7
	};
	unsigned how = take(r);

	if (how < 128)
		return odd[how % ARRAY_LEN(odd)];
	return how < 200 ? take(r) : (uint64_t)take(r) << (how % 64);
}

static struct str take_text(struct reader *r)
{
	static const char *const texts[] = { "true",	"layer00001", "layer00002", "/tmp/x",
					     "../../x", "A=B",	      "root",	    "abcdefgh1234",
					     "call-1",	"",	      "/",	    "ready",
					     "policy",	"x",	      "snap",	    "layer00003" };
	unsigned how = take(r);
	struct str raw = { (const char *)r->p, how % 32 < r->n ? how % 32 : r->n };

	if (how < 200)
		return str_of(texts[how % ARRAY_LEN(texts)]);
	r->p += raw.n;
	r->n -= raw.n;
	return raw;
}

static const struct proto_row *take_row(struct reader *r, bool init)
{
	unsigned at = take(r), tries = 0;
	bool any = take(r) % 8 == 0; /* also what this side never sends */

	for (; tries < ARRAY_LEN(proto_rows); tries++, at++) {
		const struct proto_row *row = &proto_rows[at % ARRAY_LEN(proto_rows)];

		if (any || (row->init == init && row->up))
			return row;
	}
	return &proto_rows[0];
}

static uint16_t take_tag(struct reader *r, const struct proto_row *row)
{
	unsigned which = take(r);

	if (row->ntags && which < 224)
		return row->tags[which % (unsigned)row->ntags];
	return proto_tags[take(r) % ARRAY_LEN(proto_tags)];
}

static void put_fields(struct reader *r, const struct proto_row *row, struct buf *b)
{
	unsigned n = take(r) % FIELDS;

	for (unsigned i = 0; i < n; i++) {
		uint16_t tag = take_tag(r, row);

		if (take(r) % 2)
			(void)field_put_u64(b, tag, take_number(r));
		else
			(void)field_put(b, tag, take_text(r));
	}
}

/* A frame of this protocol: its own fields, others, or no fields at all. */
static void send_frame(struct reader *r, struct conn *to, bool init, uint32_t chan)
{
	auto_done(buf_done) struct buf b = BUF_INIT(BODY);
	const struct proto_row *row = take_row(r, init);
	unsigned how = take(r);
	size_t at = 0;
	int fd = FD_NONE;

	put_fields(r, row, &b);
	if (how % 16 == 0)
		FUZZ_CHECK(buf_add_str(&b, take_text(r)) == 0);
	if (how % 16 == 1)
		fd = socket(how & 16 ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (conn_begin(to, row->type, chan, &at) < 0) {
		fd_close(&fd);
		return;
	}
	if (buf_add_str(&to->out, buf_str(&b)) < 0) {
		conn_cancel(to, at);
		fd_close(&fd);
	} else {
		(void)conn_end(to, at, &fd, fd >= 0);
	}
}

static struct fx_client *take_client(struct reader *r)
{
	unsigned i = take(r) % FX_CLIENTS;

	if ((int)i < fx.nclients && fx.client[i].conn.loop)
		return &fx.client[i];
	return NULL;
}

/* Bytes that are no frame. */
static void send_junk(struct reader *r, struct conn *to)
{
	struct str text = take_text(r);

	if (to->loop && text.n)
		(void)send(to->fd, text.p, text.n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void act_client(struct reader *r)
{
	struct fx_client *c = take_client(r);
	unsigned how = take(r);

	if (!c) {
		if (fx.nclients < FX_CLIENTS)
			(void)fx_connect(how % 8 == 0);
	} else if (how % 64 == 0) {
		fx_hang_up(c);
	} else if (how % 64 == 1) {
		send_junk(r, &c->conn);
	} else {
		send_frame(r, &c->conn, false, take(r) % 4);
	}
}

/* What a good client would ask for, so that there is something to answer. */
static void ask_well(struct reader *r)
{
	struct fx_client *c = &fx.client[0];
	uint32_t chan = 10 + take(r) % 4;

	if (!c->conn.loop)
		return;
	switch (take(r) % 10) {
	case 0:
		(void)fx_send(c, MSG_C_LEASE, 1, NULL, 0);
		break;
	case 1:
		(void)fx_send(c, MSG_C_SWITCH, 2, &(struct conn_field){ TAG_SEAL, 0, "layer00001" },
			      1);
		break;
	case 2:
		(void)fx_send(c, MSG_C_SWITCH, 3, &(struct conn_field){ TAG_FORCE, 1, NULL }, 1);
		break;
	case 3:
		(void)fx_send(c, MSG_C_DIAL, 4, &(struct conn_field){ TAG_PORT, 80, NULL }, 1);
		break;
	case 4:
		(void)fx_send_raw(c, MSG_C_STDIN, chan, STR("input"));
		break;
	case 5:
		(void)fx_send(c, MSG_C_PAUSE + take(r) % 2, 5, NULL, 0);
		break;
	default:
		fx_exec(c, chan);
		break;
	}
}

static uint32_t take_job(struct reader *r)
{
	unsigned i = take(r);

	if (fake.init.nruns && i < 200)
		return fake.init.runs[i % (unsigned)fake.init.nruns].job;
	return i % 2 ? i : 0;
}

static void act_init(struct reader *r)
{
	unsigned how = take(r);

	if (how % 64 == 0)
		conn_done(&fake.init.conn);
	else if (how % 64 == 1)
		send_junk(r, &fake.init.conn);
	else if (fake.init.conn.loop)
		send_frame(r, &fake.init.conn, true, take_job(r));
}

/* Something that a command or a good init does. */
static void act_inside(struct reader *r)
{
	struct fake_run *run =
		fake.init.nruns ? &fake.init.runs[take(r) % (unsigned)fake.init.nruns] : NULL;

	switch (take(r) % 6) {
	case 0:
		fake.others = (int)(take(r) % 3);
		break;
	case 1:
		if (run)
			fake_exit(run, (int)take(r) << 8);
		break;
	case 2:
		if (run)
			fake_ready(run);
		break;
	case 3:
		if (run && run->fds[FD_STDOUT] >= 0)
			(void)!write(run->fds[FD_STDOUT], "output", 6);
		break;
	case 4:
		if (fx_exists("upper/0"))
			fx_touch(0, take(r) % 2 ? "a" : "b");
		break;
	default:
		fake.init.late = take(r) % 2;
		break;
	}
}

static void act_driver(struct reader *r)
{
	unsigned fn = take(r) % FAKE_FNS;

	/* A child of the warden's that cannot seal ends the sandbox: that has its own test. */
	if (fn != FAKE_SEAL)
		fake.fail[fn] = fake.fail[fn] ? 0 : EIO;
}

static void begin(enum fuzz_who who, struct reader *r)
{
	unsigned how = take(r);

	fx_version = how % 4 == 0 ? 2 : 0;
	fx_begin();
	fake.init.mute = who == FUZZ_INIT && how & 4;
	fake.init.no_hello = who == FUZZ_INIT && how & 8;
	if (how & 16)
		fake.driver.has |= HAS_VERIFY;
	if (how % 5 ==
	    0) { /* stdio and ports are frames; a build waits for the hello, in real time */
		fake.driver.has &= ~(unsigned)HAS_FDS;
		fake.init.no_hello = false;
	}
	if (who == FUZZ_CLIENTS && how % 32 == 31)
		return; /* the creator builds nothing, or what the input says */
	/* One that needs a hello waits for it; an ephemeral one is built without. */
	fx_send_build(&(struct fx_want){ .mounts = 1 + (how >> 6),
					 .ephemeral = how & 32 || fake.init.no_hello,
					 .network = how % 128 == 5,
					 .ready = how % 32 == 7,
					 .ttl_ms = how % 8 == 3 ? 5000 : 0 });
	fx_settle();
}

void fuzz_warden(enum fuzz_who who, const uint8_t *data, size_t size)
{
	struct reader r = { data, size };

	begin(who, &r);
	for (int i = 0; i < STEPS && r.n && !fx.ended; i++) {
		unsigned what = take(&r);

		if (what < 160 && who == FUZZ_CLIENTS)
			act_client(&r);
		else if (what < 100)
			act_init(&r);
		else if (what < 160)
			ask_well(&r);
		else if (what < 220)
			act_inside(&r);
		else if (what < 236)
			act_driver(&r);
		else
			fx_pass_ms(take(&r) * take(&r));
		/* Else the next one comes in the same turn. */
		if (what % 4 && !fx.ended)
			fx_settle();
	}
	memset(fake.fail, 0, sizeof fake.fail);
	fx_end();
}
