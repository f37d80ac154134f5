/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "sys/files/rmtree.h"
#include "t.h"
#include "warden/net/net.h"

struct fixture fx;
unsigned fx_version;

static void on_frame(struct conn *conn, const struct frame *f, int *fds)
{
	struct fx_client *c = container_of(conn, struct fx_client, conn);
	struct fx_frame *to = &c->got[c->ngot % FX_FRAMES];

	if (c->ngot < FX_FRAMES) {
		to->type = f->type;
		to->chan = f->chan;
		to->n = f->body.n < FX_BODY ? f->body.n : FX_BODY;
		if (to->n)
			memcpy(to->body, f->body.p, to->n);
		to->fd = f->nfds ? TAKE_FD(fds[0]) : FD_NONE;
		c->ngot++;
	}
	for (int i = 0; i < f->nfds; i++)
		fd_close(&fds[i]);
}

static void on_closed(struct conn *conn, int err)
{
	struct fx_client *c = container_of(conn, struct fx_client, conn);

	(void)err;
	c->closed = true;
	conn_done(conn);
}

static struct fx_client *add_client(bool creator)
{
	static const struct conn_ops ops = { .frame = on_frame, .closed = on_closed };
	struct fx_client *c = &fx.client[fx.nclients++ % FX_CLIENTS];
	int pair[2];

	conn_done(&c->conn);
	free(c->got);
	*c = (struct fx_client){ .got = calloc(FX_FRAMES, sizeof *c->got) };
	CHECK(c->got && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	CHECK(client_adopt(fx.w, pair[0], creator) == 0);
	CHECK(conn_init(&c->conn, &fx.w->loop, pair[1], &ops) == 0);
	return c;
}

static void greet(struct fx_client *c)
{
	uint64_t newest = fx_version ? fx_version : PROTO_CLIENT_VERSION;

	FX_SEND(c, MSG_C_HELLO, 0, { TAG_VERSION, PROTO_CLIENT_OLDEST, NULL },
		{ TAG_NEWEST, newest, NULL });
}

struct fx_client *fx_connect(bool silent)
{
	struct fx_client *c = add_client(false);

	if (!silent)
		greet(c);
	return c;
}

void fx_hang_up(struct fx_client *c)
{
	conn_done(&c->conn);
	c->closed = true;
}

int fx_send(struct fx_client *c, uint8_t type, uint32_t chan, const struct conn_field *f, int n)
{
	return conn_say(&c->conn, type, chan, f, n);
}

int fx_send_raw(struct fx_client *c, uint8_t type, uint32_t chan, struct str body)
{
	return conn_send(&c->conn, type, chan, body);
}

void fx_exec(struct fx_client *c, uint32_t chan)
{
	FX_SEND(c, MSG_C_EXEC, chan, { TAG_ARG, 0, "true" });
}

void fx_lease(struct fx_client *c)
{
	FX_SEND(c, MSG_C_LEASE, 0, { TAG_TIMEOUT_MS, 0, NULL });
	(void)fx_await(c, MSG_C_LEASED);
}

void fx_begin(void)
{
	char path[160];

	(void)signal(SIGPIPE, SIG_IGN); /* as in the warden's main program */
	/* The warden changes to the sandbox's directory. */
	fx.cwd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	t_scratch(fx.state, sizeof fx.state);
	(void)snprintf(fx.dir, sizeof fx.dir, "%s/sandboxes/abcdefgh1234", fx.state);
	for (const char *const *d = (const char *const[]){ "sandboxes", "sandboxes/abcdefgh1234",
							   "layers", "lower", "ready", NULL };
	     *d; d++) {
		(void)snprintf(path, sizeof path, "%s/%s", fx.state, *d);
		CHECK(mkdir(path, 0700) == 0);
	}
	fx.w = warden_new(&fake.driver);
	CHECK(fx.w && warden_open(fx.w) == 0);
	fake_begin(&fx.w->loop);
	greet(add_client(true));
}

static void put_mount(struct buf *b, const char *dest)
{
	auto_done(buf_done) struct buf m = BUF_INIT(4096);
	char lower[96];

	(void)snprintf(lower, sizeof lower, "%s/lower", fx.state);
	CHECK(field_put_u64(&m, M_KIND, MOUNT_OVERLAY) == 0 && field_put_c(&m, M_DEST, dest) == 0 &&
	      field_put_c(&m, M_LOWER, lower) == 0);
	CHECK(field_put(b, TAG_MOUNT, buf_str(&m)) == 0);
}

static void put_number(struct buf *b, uint16_t tag, uint64_t v)
{
	if (v)
		CHECK(field_put_u64(b, tag, v) == 0);
}

void fx_send_build(const struct fx_want *want)
{
	auto_done(buf_done) struct buf b = BUF_INIT(64 * 1024);
	char ready[96], dest[16];

	(void)snprintf(ready, sizeof ready, "%s/ready", fx.state);
	CHECK(field_put_c(&b, TAG_ID, "abcdefgh1234") == 0 &&
	      field_put_c(&b, TAG_HOSTNAME, "box") == 0 && field_put_c(&b, TAG_PATH, fx.dir) == 0 &&
	      field_put_c(&b, TAG_PROGRAM, "/bin/false") == 0);
	put_mount(&b, "/");
	for (int i = 1; i < want->mounts; i++) {
		(void)snprintf(dest, sizeof dest, "/m%d", i);
		put_mount(&b, dest);
	}
	put_number(&b, TAG_TRACE, TRACE_CALLS);
	put_number(&b, TAG_EPHEMERAL, want->ephemeral);
	put_number(&b, TAG_TTL_MS, want->ttl_ms);
	put_number(&b, TAG_IDLE_MS, want->idle_ms);
	put_number(&b, TAG_ON_TIMEOUT, want->on_timeout);
	put_number(&b, TAG_MEMORY, want->memory);
	if (geteuid() == 0)
		put_number(&b, TAG_UID_BASE, FX_RANGE);
	if (want->network && want->ready)
		put_number(&b, TAG_NETWORK, 1);
	else if (want->network)
		CHECK(field_put_c(&b, TAG_NET_POLICY, "policy") == 0);
	if (want->ready)
		CHECK(field_put_c(&b, TAG_READY_DIR, ready) == 0);
	CHECK(fx_send_raw(&fx.client[0], MSG_C_BUILD, 0, buf_str(&b)) == 0);
}

void fx_build(const struct fx_want *want)
{
	fx_send_build(want);
	(void)fx_await(&fx.client[0], MSG_C_READY);
}

static void one_turn(void)
{
	fx.turned = false;
	CHECK(loop_run_until(&fx.w->loop, &fx.turned) == 0);
	if (fx.w->state == SANDBOX_GONE && !fx.ended) {
		fx.ended = true;
		/* As if the process ended; its last frames can still be read. */
		while (fx.w->clients)
			client_free(fx.w->clients);
	}
}

bool fx_until(const bool *done)
{
	while (!*done && !fx.ended) {
		one_turn();
		if (fx.stuck)
			break;
	}
	return *done;
}

void fx_settle(void)
{
	fx.frozen = true;
	do
		one_turn();
	while (!fx.stuck);
	fx.frozen = false;
}

void fx_pass_ms(uint64_t ms)
{
	fx.skew_ns += ms * NS_PER_MS;
	fx_settle();
}

void fx_await_end(const char *reason)
{
	static const bool never = false;

	(void)fx_until(&never);
	CHECK(fx.ended);
	if (reason)
		CHECK_STR(fx.w->end_reason, reason);
}

static struct fx_frame *find(struct fx_client *c, uint8_t type)
{
	for (; c->nread < c->ngot; c->nread++)
		if (c->got[c->nread].type == type)
			return &c->got[c->nread++];
	return NULL;
}

static void fail_await(const struct fx_client *c, uint8_t type)
{
	printf("# no frame %d came; those that did:", type);
	for (int i = 0; i < c->ngot; i++)
		printf(" %d", c->got[i].type);
	printf("%s\n", fx.ended ? "; the sandbox has ended" : "");
	if (fx.ended)
		printf("# %s\n", fx.w->end_reason);
	t_fail(__FILE__, __LINE__, "fx_await");
}

struct fx_frame *fx_await(struct fx_client *c, uint8_t type)
{
	struct fx_frame *f;
	bool over = false;

	fx.stuck = false;
	while (!(f = find(c, type)) && !over) {
		over = c->closed || (fx.stuck && !fx.ended);
		if (!over || fx.ended)
			one_turn();
	}
	if (!f)
		f = find(c, type);
	if (!f)
		fail_await(c, type);
	return f;
}

bool fx_came(const struct fx_client *c, uint8_t type)
{
	for (int i = c->nread; i < c->ngot; i++)
		if (c->got[i].type == type)
			return true;
	return false;
}

uint64_t fx_number(const struct fx_frame *f, uint16_t tag)
{
	struct str body = { f->body, f->n };
	struct field field;
	uint64_t v;

	while (field_next(&body, &field) > 0)
		if (field.tag == tag && field_u64(field, &v) == 0)
			return v;
	return UINT64_MAX;
}

bool fx_has_text(const struct fx_frame *f, uint16_t tag, const char *text)
{
	struct str body = { f->body, f->n };
	struct field field;

	while (field_next(&body, &field) > 0)
		if (field.tag == tag && memmem(field.value.p, field.value.n, text, strlen(text)))
			return true;
	return false;
}

void fx_await_error(struct fx_client *c, const char *text)
{
	const struct fx_frame *f = fx_await(c, MSG_C_ERROR);
	char got[FX_BODY] = "";
	struct str body = { f->body, f->n };
	struct field field;

	while (field_next(&body, &field) > 0)
		if (field.tag == TAG_TEXT)
			(void)snprintf(got, sizeof got, "%.*s", STR_ARG(field.value));
	if (!strstr(got, text))
		t_fail_str(__FILE__, __LINE__, got, text);
}

bool fx_exists(const char *path)
{
	char full[256];

	(void)snprintf(full, sizeof full, "%s/%s", fx.dir, path);
	return faccessat(AT_FDCWD, full, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

void fx_touch(int mount, const char *name)
{
	char path[256];
	int fd;

	(void)snprintf(path, sizeof path, "%s/upper/%d/%s", fx.dir, mount, name);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && close(fd) == 0);
}

static void close_clients(void)
{
	for (int i = 0; i < FX_CLIENTS; i++) {
		struct fx_client *c = &fx.client[i];

		conn_done(&c->conn);
		for (int j = 0; j < c->ngot && j < FX_FRAMES; j++)
			fd_close(&c->got[j].fd);
		free(c->got);
		*c = (struct fx_client){ 0 };
	}
}

static void remove_state(void)
{
	char *slash = strrchr(fx.state, '/');
	int fd;

	*slash = '\0';
	CHECK(fchdir(fx.cwd) == 0 && close(fx.cwd) == 0);
	fd = open(fx.state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(fd >= 0 && rmtree_at(fd, slash + 1) == 0 && close(fd) == 0);
}

void fx_end(void)
{
	static const bool never = false;

	if (!fx.ended)
		warden_end(fx.w, END_FAILED, "the test is over");
	fx.stuck = false;
	(void)fx_until(&never);
	CHECK(fx.ended && !fx.w->cell && fake.live == 0 && !fx.w->calls && !fx.w->spare);
	for (size_t i = 0; i < ARRAY_LEN(fx.w->sweepers); i++)
		CHECK(!fx.w->sweepers[i].pid);
	CHECK(fx_gateway.pid == 0 || waitpid(fx_gateway.pid, NULL, WNOHANG) < 0);
	CHECK(fx_gateway.dialer_pid == 0 || waitpid(fx_gateway.dialer_pid, NULL, WNOHANG) < 0);
	fake_end();
	close_clients();
	conn_done(&fx_gateway.conn);
	conn_done(&fx_gateway.dialer);
	warden_free(fx.w);
	remove_state();
	fx = (struct fixture){ 0 };
	fx_gateway = (struct fx_gateway){ 0 };
}
