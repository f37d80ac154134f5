/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of a sandbox: the driver names them, and /proc outside describes them. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "warden/call/call.h"

enum { FILE_MAX = 64 * 1024, ROWS_MAX = 4096, PAGE_KB = 4 };

struct row {
	long pid, inside, ppid;
	char state;
	unsigned long long ticks;
	long rss_pages;
};

static int read_proc(long pid, const char *name, struct buf *b)
{
	char path[96];
	int r;

	(void)snprintf(path, sizeof path, "/proc/%ld/%s", pid, name);
	buf_clear(b);
	r = io_read_file(AT_FDCWD, path, b);
	return r == -E2BIG ? 0 : r;
}

/* Parse after the command name, which is in parentheses and may contain anything. */
static int read_stat(struct row *row, struct buf *b)
{
	unsigned long long user, sys;
	char *at;
	int r = read_proc(row->pid, "stat", b);

	if (r < 0 || b->len == 0)
		return r < 0 ? r : -ESRCH;
	at = strrchr(b->data, ')');
	if (!at || sscanf(at + 1,
			  " %c %ld %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d "
			  "%*d %*d %*u %*u %ld",
			  &row->state, &row->ppid, &user, &sys, &row->rss_pages) != 5)
		return -EBADMSG;
	row->ticks = user + sys;
	return 0;
}

/* The last number of a line such as "NSpid:\t812\t7". */
static long last_number(const char *text, const char *key)
{
	const char *at = strstr(text, key);
	long v = 0;
	int n;

	if (!at)
		return 0;
	at += strlen(key);
	while (sscanf(at, " %ld%n", &v, &n) == 1) {
		at += n;
		if (*at == '\n')
			break;
	}
	return v;
}

long ps_inside_pid(long pid, struct buf *b)
{
	return read_proc(pid, "status", b) == 0 && b->len ? last_number(b->data, "\nNSpid:") : 0;
}

static uint64_t owner_inside(const struct warden *w, long pid)
{
	char path[32];
	struct stat st;

	(void)snprintf(path, sizeof path, "/proc/%ld", pid);
	if (stat(path, &st) < 0)
		return 65534;
	if (!w->rootful)
		return st.st_uid == getuid() ? w->spec.user : 65534;
	return st.st_uid >= w->spec.uid_base && st.st_uid < w->spec.uid_base + 65536u
		       ? st.st_uid - w->spec.uid_base
		       : 0; /* init is not dumpable, so its files belong to the host's root */
}

static int put_args(struct buf *out, long pid, struct buf *b)
{
	const char *at, *end;
	int r = read_proc(pid, "cmdline", b);

	if (r < 0 || b->len == 0) {
		if (read_proc(pid, "comm", b) < 0 || b->len == 0)
			return 0;
		return field_put(out, TAG_ARG, (struct str){ b->data, b->len - 1 });
	}
	r = 0;
	end = b->data + b->len;
	for (at = b->data; at < end && r == 0; at += strlen(at) + 1)
		r = field_put_c(out, TAG_ARG, at);
	return r;
}

static int send_row(struct client *c, uint32_t chan, const struct row *row, struct buf *b)
{
	struct warden *w = c->w;
	struct buf *out = &c->conn.out;
	uint64_t us = row->ticks * (1000000ull / (uint64_t)sysconf(_SC_CLK_TCK));
	char state[2] = { row->state, '\0' };
	bool is_init = row->inside == 1; /* it has no call, and its ancestors are the host's */
	uint32_t call = w->watch && !is_init ? watch_call_of(w->watch, (int)row->pid) : 0;
	size_t at = 0;
	int r = conn_begin(&c->conn, MSG_C_PROCESS, chan, &at);

	if (r < 0)
		return r;
	if (field_put_u64(out, TAG_PID, (uint64_t)row->inside) < 0 ||
	    field_put_u64(out, TAG_PPID, (uint64_t)row->ppid) < 0 ||
	    field_put_u64(out, TAG_CALL, call) < 0 || field_put_c(out, TAG_STATE, state) < 0 ||
	    field_put_u64(out, TAG_USER, owner_inside(w, row->pid)) < 0 ||
	    field_put_u64(out, TAG_CPU_US, us) < 0 ||
	    field_put_u64(out, TAG_RSS_KB, (uint64_t)row->rss_pages * PAGE_KB) < 0 ||
	    put_args(out, row->pid, b) < 0) {
		conn_cancel(&c->conn, at);
		return -ENOBUFS;
	}
	return conn_end(&c->conn, at, NULL, 0);
}

int ps_pids(const struct warden *w, long *pids, int most)
{
	return w->cell ? w->driver->pids(w->cell, pids, most) : 0;
}

/* Init first; skips a process that ends meanwhile. fn < 0 stops. */
static int each_process(const struct warden *w, struct buf *b,
			int (*fn)(void *ctx, struct row *row, struct buf *b), void *ctx)
{
	auto_free long *pids = calloc(ROWS_MAX, sizeof *pids);
	int n;

	if (!pids)
		return -ENOMEM;
	n = ps_pids(w, pids, ROWS_MAX);
	for (int i = 0; i < n; i++) {
		struct row row = { .pid = pids[i] };

		if (read_stat(&row, b) < 0)
			continue;
		if (fn(ctx, &row, b) < 0)
			break;
	}
	return 0;
}

struct listing {
	struct client *client;
	uint32_t chan;
};

static int list_one(void *ctx, struct row *row, struct buf *b)
{
	struct listing *l = ctx;

	if (spare_is(l->client->w, row->pid)) /* the spare child counts as part of init */
		return 0;
	row->inside = ps_inside_pid(row->pid, b);
	row->ppid = row->inside == 1 ? 0 : ps_inside_pid(row->ppid, b);
	return send_row(l->client, l->chan, row, b);
}

int ps_send(struct client *c, uint32_t chan)
{
	auto_done(buf_done) struct buf b = BUF_INIT(FILE_MAX);
	struct listing l = { c, chan };
	int r = each_process(c->w, &b, list_one, &l);

	return r < 0 ? r : conn_send(&c->conn, MSG_C_END, chan, STR_NONE);
}

static int add_rss(void *ctx, struct row *row, struct buf *b)
{
	uint64_t *kb = ctx;

	(void)b;
	*kb += (uint64_t)row->rss_pages * PAGE_KB;
	return 0;
}

uint64_t ps_rss_kb(const struct warden *w)
{
	auto_done(buf_done) struct buf b = BUF_INIT(FILE_MAX);
	uint64_t kb = 0;

	(void)each_process(w, &b, add_rss, &kb);
	return kb;
}
