/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/pool/demand.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "ops/background.h"
#include "ops/pool/ready_key.h"
#include "wire/frame.h"
#include "wire/proto.h"

enum { TEXT_MOST = 64 * 1024 };

int demand_open(struct cay *c, uint32_t most, int *ret_fd, struct err *e)
{
	int fd = ready_demand_lock(&c->state, most);

	if (fd < 0 && fd != -EWOULDBLOCK) /* another server keeps pools already */
		return err_sys(e, -fd, "make %s/ready/demand", c->state.dir);
	*ret_fd = fd < 0 ? FD_NONE : fd;
	background_keeper_wake(c);
	return 0;
}

void demand_close(struct cay *c, int *fd)
{
	if (*fd < 0)
		return;
	ready_demand_unlock(&c->state, fd);
	ready_wake_keeper(&c->state);
}

static int put_record(struct buf *b, const char *template_, const char *top, struct str recipe)
{
	int r = field_put_c(b, TAG_TEXT, template_);

	if (r == 0)
		r = field_put_c(b, TAG_LAYER, top);
	return r < 0 ? r : ready_split(recipe, false, b);
}

void demand_miss(struct cay *c, const char *key, const char *template_, const char *top,
		 struct str recipe, size_t n)
{
	auto_done(buf_done) struct buf b = BUF_INIT(LIMIT_FRAME_BODY);

	if (!ready_demand_exists(&c->state) || put_record(&b, template_, top, recipe) < 0)
		return;
	(void)ready_note_misses(&c->state, key, buf_str(&b), n);
	ready_wake_keeper(&c->state);
}

void demand_record_done(struct demand_record *r)
{
	buf_done(&r->recipe);
}

int demand_read(const struct state *s, const char *key, struct demand_record *ret)
{
	auto_done(buf_done) struct buf b = BUF_INIT(LIMIT_FRAME_BODY);
	int r = ready_read_record(s, key, &b);
	struct str rest = buf_str(&b);
	struct field f;

	while (r >= 0 && (r = field_next(&rest, &f)) > 0) {
		if (f.tag == TAG_TEXT)
			(void)str_copy(ret->template_, sizeof ret->template_, f.value);
		else if (f.tag == TAG_LAYER)
			(void)str_copy(ret->top, sizeof ret->top, f.value);
		else
			r = field_put(&ret->recipe, f.tag, f.value);
	}
	return r;
}

static struct demand_kind *find(const struct demand *d, const char *key)
{
	for (size_t i = 0; i < d->n; i++)
		if (strcmp(d->kinds[i].key, key) == 0)
			return &d->kinds[i];
	return NULL;
}

/* After a restart of the keeper, all but one use count as long past. */
static struct demand_kind *add(struct demand *d, const char *key, const struct ready_use *use,
			       uint64_t now_ns)
{
	void *more = reallocarray(d->kinds, d->n + 1, sizeof *d->kinds);
	struct demand_kind *k;

	if (!more)
		return NULL;
	d->kinds = more;
	k = &d->kinds[d->n++];
	*k = (struct demand_kind){ .interval_ns = now_ns, .window_ns = now_ns };
	(void)str_copy(k->key, sizeof k->key, str_of(key));
	if (use->age_s > DEMAND_INTERVAL_S && use->used)
		k->base = use->used - 1;
	return k;
}

static void count(struct demand_kind *k, uint64_t used, uint64_t now_ns)
{
	uint64_t in_interval = used > k->base ? used - k->base : 0;

	k->used = used;
	k->seen = true;
	if (now_ns - k->window_ns >= DEMAND_WINDOW_S * NS_PER_S) {
		k->last = k->peak;
		k->peak = 0;
		k->window_ns = now_ns;
	}
	if (in_interval > k->peak)
		k->peak = in_interval;
	if (now_ns - k->interval_ns >= DEMAND_INTERVAL_S * NS_PER_S) {
		k->base = used;
		k->interval_ns = now_ns;
	}
}

static void forget_unseen(struct demand *d)
{
	size_t n = 0;

	for (size_t i = 0; i < d->n; i++)
		if (d->kinds[i].seen)
			d->kinds[n++] = d->kinds[i];
	d->n = n;
}

void demand_count(struct demand *d, const struct state *s, char (*keys)[READY_KEY], size_t n,
		  uint64_t now_ns)
{
	for (size_t i = 0; i < d->n; i++)
		d->kinds[i].seen = false;
	for (size_t i = 0; i < n; i++) {
		struct demand_kind *k = find(d, keys[i]);
		struct ready_use use;

		if (ready_use(s, keys[i], &use) < 0)
			continue;
		if (!k)
			k = add(d, keys[i], &use, now_ns);
		if (k)
			count(k, use.used, now_ns);
	}
	forget_unseen(d);
}

void demand_share(struct demand *d, uint64_t most)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < d->n; i++) {
		struct demand_kind *k = &d->kinds[i];
		uint64_t peak = k->peak > k->last ? k->peak : k->last;

		if (peak > READY_MOST)
			peak = READY_MOST;
		k->wanted = peak ? (uint32_t)peak + 1 : 0; /* one more than was ever needed */
		sum += k->wanted;
	}
	for (size_t i = 0; i < d->n && sum > most; i++)
		d->kinds[i].wanted = (uint32_t)(d->kinds[i].wanted * most / sum);
}

/* MiB of memory that the host can give; 0 if unknown. */
static uint64_t free_mib(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(TEXT_MOST);
	static const char name[] = "MemAvailable:";
	const char *at;

	if (io_read_file(AT_FDCWD, "/proc/meminfo", &b) < 0 || buf_add(&b, "", 1) < 0)
		return 0;
	at = strstr(b.data, name);
	return at ? strtoull(at + sizeof name - 1, NULL, 10) / 1024 : 0;
}

void demand_look(struct demand *d, const struct state *s, char (*keys)[READY_KEY], size_t n)
{
	uint64_t most = 0, by_memory = free_mib() / DEMAND_MEMORY_PART / DEMAND_READY_MIB;

	d->on = ready_demand_settings(s, &most);
	demand_count(d, s, keys, d->on ? n : 0, clock_mono_ns());
	demand_share(d, most < by_memory ? most : by_memory);
}

uint32_t demand_wanted(const struct demand *d, const char *key)
{
	const struct demand_kind *k = find(d, key);

	return k ? k->wanted : 0;
}

void demand_done(struct demand *d)
{
	free(d->kinds);
}
