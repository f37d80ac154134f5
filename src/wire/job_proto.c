/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/job_proto.h"

#include <errno.h>

/* The texts of one message and their destinations. */
struct text_place {
	uint16_t tag;
	char *to;
	size_t size;
};

static const struct text_place *find_place(const struct text_place *places, size_t n, uint16_t tag)
{
	for (size_t i = 0; i < n; i++)
		if (places[i].tag == tag)
			return &places[i];
	return NULL;
}

static bool take_text(const struct text_place *places, size_t n, struct field f)
{
	const struct text_place *p = find_place(places, n, f.tag);

	return !p || str_copy(p->to, p->size, f.value);
}

static int put_text(struct buf *b, uint16_t tag, const char *text)
{
	return text[0] ? field_put_c(b, tag, text) : 0;
}

int job_do_put(struct buf *b, const struct job_do *d)
{
	int r = field_put_c(b, JOB_TAG_KIND, d->kind);

	if (r == 0)
		r = put_text(b, JOB_TAG_KEY, d->key);
	if (r == 0)
		r = field_put_u64(b, JOB_TAG_TIMEOUT_MS, d->timeout_ms);
	return r < 0 ? r : field_put(b, JOB_TAG_IN, d->in);
}

int job_do_read(struct str body, struct job_do *ret)
{
	struct job_do d = { 0 };
	const struct text_place places[] = { { JOB_TAG_KIND, d.kind, sizeof d.kind },
					     { JOB_TAG_KEY, d.key, sizeof d.key } };
	struct field f;
	int r;

	while ((r = field_next(&body, &f)) == 1) {
		if (!take_text(places, ARRAY_LEN(places), f))
			return -EBADMSG;
		if (f.tag == JOB_TAG_TIMEOUT_MS && field_u64(f, &d.timeout_ms) < 0)
			return -EBADMSG;
		if (f.tag == JOB_TAG_IN)
			d.in = f.value;
	}
	if (r < 0 || !d.kind[0])
		return -EBADMSG;
	*ret = d;
	return 0;
}

int job_progress_put(struct buf *b, const struct job_progress *p)
{
	int r = put_text(b, JOB_TAG_STAGE, p->stage);

	if (r == 0)
		r = field_put_u64(b, JOB_TAG_DONE, p->done);
	return r < 0 ? r : field_put_u64(b, JOB_TAG_TOTAL, p->total);
}

int job_progress_read(struct str body, struct job_progress *ret)
{
	struct job_progress p = { 0 };
	const struct text_place places[] = { { JOB_TAG_STAGE, p.stage, sizeof p.stage } };
	struct field f;
	int r;

	while ((r = field_next(&body, &f)) == 1)
		if (!take_text(places, ARRAY_LEN(places), f) ||
		    (f.tag == JOB_TAG_DONE && field_u64(f, &p.done) < 0) ||
		    (f.tag == JOB_TAG_TOTAL && field_u64(f, &p.total) < 0))
			return -EBADMSG;
	if (r < 0)
		return -EBADMSG;
	*ret = p;
	return 0;
}

static int put_error(struct buf *b, const struct err *e)
{
	const struct {
		uint16_t tag;
		const char *text;
	} rows[] = { { JOB_TAG_CODE, e->code },
		     { JOB_TAG_FIELD, e->field },
		     { JOB_TAG_ABOUT, e->about },
		     { JOB_TAG_TEXT, e->msg },
		     { JOB_TAG_HINT, e->hint } };
	int r = field_put_c(b, JOB_TAG_ERROR, err_name(e->kind));

	if (r == 0)
		r = field_put_u64(b, JOB_TAG_ERRNO, (uint64_t)(unsigned)e->sys);
	for (size_t i = 0; i < ARRAY_LEN(rows) && r == 0; i++)
		r = put_text(b, rows[i].tag, rows[i].text);
	return r;
}

int job_done_put(struct buf *b, const struct job_done *d)
{
	return d->failed ? put_error(b, &d->why) : field_put(b, JOB_TAG_OUT, d->out);
}

int job_done_read(struct str body, struct job_done *ret)
{
	struct job_done d = { 0 };
	char kind[32] = "";
	const struct text_place places[] = { { JOB_TAG_ERROR, kind, sizeof kind },
					     { JOB_TAG_CODE, d.why.code, sizeof d.why.code },
					     { JOB_TAG_FIELD, d.why.field, sizeof d.why.field },
					     { JOB_TAG_ABOUT, d.why.about, sizeof d.why.about },
					     { JOB_TAG_TEXT, d.why.msg, sizeof d.why.msg },
					     { JOB_TAG_HINT, d.why.hint, sizeof d.why.hint } };
	bool has_out = false;
	uint64_t sys = 0;
	struct field f;
	int r;

	while ((r = field_next(&body, &f)) == 1) {
		if (!take_text(places, ARRAY_LEN(places), f) ||
		    (f.tag == JOB_TAG_ERRNO && field_u64(f, &sys) < 0))
			return -EBADMSG;
		if (f.tag == JOB_TAG_OUT) {
			d.out = f.value;
			has_out = true;
		}
	}
	if (r < 0 || has_out == (kind[0] != '\0'))
		return -EBADMSG;
	d.failed = !has_out;
	if (d.failed) {
		d.why.kind = err_kind_of(kind);
		d.why.sys = (int)sys;
		if (d.why.kind == ERR_NONE)
			return -EBADMSG;
	}
	*ret = d;
	return 0;
}

int job_link_put(struct buf *b, const struct job_link *l)
{
	int r = field_put_c(b, JOB_TAG_ID, l->id);

	if (r == 0)
		r = field_put_u64(b, JOB_TAG_VERSION, l->version);
	if (r == 0)
		r = field_put_u64(b, JOB_TAG_CHANNEL, l->channel);
	return r < 0 ? r : field_put(b, JOB_TAG_MORE, l->more);
}

int job_link_read(struct str body, struct job_link *ret)
{
	struct job_link l = { 0 };
	const struct text_place places[] = { { JOB_TAG_ID, l.id, sizeof l.id } };
	struct field f;
	int r;

	while ((r = field_next(&body, &f)) == 1) {
		if (!take_text(places, ARRAY_LEN(places), f) ||
		    (f.tag == JOB_TAG_VERSION && field_u64(f, &l.version) < 0) ||
		    (f.tag == JOB_TAG_CHANNEL && field_u64(f, &l.channel) < 0))
			return -EBADMSG;
		if (f.tag == JOB_TAG_MORE)
			l.more = f.value;
	}
	if (r < 0 || !l.id[0] || l.version > UINT32_MAX || l.channel > UINT32_MAX)
		return -EBADMSG;
	*ret = l;
	return 0;
}
