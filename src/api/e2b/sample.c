/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What sandboxes use just now. Nothing is kept: an answer has one sample, taken for it, if the
 * asked time has not passed.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "api/e2b/common.h"
#include "api/e2b/sandboxes.h"
#include "base/clock.h"
#include "ops/ps.h"

enum { ASKED_MOST = 100, CPU_MS = 50 };

struct sample {
	struct sandbox_status status;
	double cpu_pct;
	struct statvfs disk;
	uint64_t at_ns;
};

static int add_cpu(void *ctx, const struct link_process *p)
{
	*(uint64_t *)ctx += p->cpu_us;
	return 0;
}

/* Of one processor; between two looks at all processes. One that ended between them is not seen. */
static double cpu_pct(struct job_run *r, const char *id)
{
	const struct timespec pause = { .tv_nsec = CPU_MS * (long)NS_PER_MS };
	uint64_t first = 0, second = 0, began = clock_mono_ns(), ns;
	struct err ignored = { 0 };

	if (op_ps(r->cay, id, add_cpu, &first, &ignored) < 0)
		return 0;
	(void)nanosleep(&pause, NULL);
	ns = clock_mono_ns() - began;
	if (op_ps(r->cay, id, add_cpu, &second, &ignored) < 0 || second < first)
		return 0;
	return (double)(second - first) * 1000.0 * 100.0 / (double)ns;
}

static int take(struct job_run *r, const char *id, struct sample *s, struct err *e)
{
	if (e2b_status(r, id, &s->status, e) < 0)
		return -1;
	if (fstatvfs(r->cay->state.fd, &s->disk) < 0)
		return err_sys(e, errno, "look at the disk");
	s->cpu_pct = strcmp(s->status.state, "running") == 0 ? cpu_pct(r, id) : 0;
	s->at_ns = clock_real_ns();
	return 0;
}

static void put(struct json *j, const struct sandbox_row *row, const struct sample *s)
{
	auto_done(options_free) json_t *options = options_load(row);
	const json_t *limits = json_object_get(options, "limits");
	int64_t cpu = json_integer_value(json_object_get(limits, "cpu_milli"));
	int64_t memory = json_integer_value(json_object_get(limits, "memory"));
	int64_t all = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
	char time[CLOCK_TEXT_SIZE], pct[32];

	clock_text(s->at_ns, time);
	(void)snprintf(pct, sizeof pct, "%.2f", s->cpu_pct);
	json_obj(j);
	json_put_c(j, "timestamp", time);
	json_put_u64(j, "timestampUnix", s->at_ns / NS_PER_S);
	json_put_i64(j, "cpuCount", cpu ? (cpu + 999) / 1000 : sysconf(_SC_NPROCESSORS_ONLN));
	json_put_raw(j, "cpuUsedPct", str_of(pct));
	json_put_u64(j, "memUsed", s->status.rss_kb * 1024);
	json_put_i64(j, "memTotal", memory ? memory : all);
	json_put_u64(j, "memCache", 0);
	json_put_u64(j, "diskUsed",
		     (uint64_t)(s->disk.f_blocks - s->disk.f_bfree) * s->disk.f_frsize);
	json_put_u64(j, "diskTotal", (uint64_t)s->disk.f_blocks * s->disk.f_frsize);
	json_end(j);
}

/* Whether now lies in the asked time. */
static bool now_is_asked(const struct e2b_ask *a)
{
	const char *start = e2b_query(a, "start"), *end = e2b_query(a, "end");
	long long now = (long long)(clock_real_ns() / NS_PER_S);

	return (!start || strtoll(start, NULL, 10) <= now) &&
	       (!end || strtoll(end, NULL, 10) >= now);
}

int e2b_metrics(struct job_run *r, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(4096);
	auto_done(e2b_about_done) struct e2b_about a = { 0 };
	struct sample s;
	struct json j;

	if (e2b_about_read(r, &a, e) < 0)
		return -1;
	json_init(&j, &b);
	json_arr(&j);
	if (now_is_asked(&a.ask)) {
		if (take(r, a.row.id, &s, e) < 0)
			return -1;
		put(&j, &a.row, &s);
	}
	json_end(&j);
	return json_done(&j) < 0 ? err_sys(e, ENOMEM, "answer") : e2b_answer(r, 200, &b, e);
}

/* One of a list; one that does not exist is left out. */
static int put_one(struct job_run *r, const struct e2b_ask *a, const char *id, struct json *j,
		   struct err *e)
{
	const struct e2b_ask one = { .id = id, .owner = a->owner };
	auto_done(sandbox_row_done) struct sandbox_row row = { 0 };
	struct sample s;

	if (e2b_find(r, &one, &row, e) < 0 || take(r, id, &s, e) < 0) {
		bool unknown = e->kind == ERR_NOT_FOUND;

		*e = (struct err){ 0 };
		return unknown ? 0 : err_set(e, ERR_FAILED, "sandbox '%s' did not answer", id);
	}
	json_key(j, id);
	put(j, &row, &s);
	return 0;
}

int e2b_metrics_list(struct job_run *r, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(LIMIT_JOB_BODY);
	auto_done(e2b_ask_done) struct e2b_ask a = { 0 };
	const char *at;
	char id[ID_SIZE];
	size_t size;
	struct json j;
	int n = 0;

	if (e2b_ask_read(r, &a, e) < 0)
		return -1;
	json_init(&j, &b);
	json_obj(&j);
	json_put_obj(&j, "sandboxes");
	for (at = e2b_query(&a, "sandbox_ids"); at && *at; at += size + (at[size] == ',')) {
		size = strcspn(at, ",");
		if (++n > ASKED_MOST)
			return err_set(e, ERR_INVALID, "sandbox_ids: at most %d", ASKED_MOST);
		if (str_copy(id, sizeof id, (struct str){ at, size }) &&
		    put_one(r, &a, id, &j, e) < 0)
			return -1;
	}
	json_end(&j);
	json_end(&j);
	return json_done(&j) < 0 ? err_sys(e, ENOMEM, "answer") : e2b_answer(r, 200, &b, e);
}
