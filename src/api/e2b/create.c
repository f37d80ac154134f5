/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api/e2b/common.h"
#include "api/e2b/network.h"
#include "api/e2b/sandboxes.h"
#include "api/e2b/snapshots.h"
#include "api/limits.h"
#include "ops/create/create.h"
#include "policy/policy.h"
#include "store/key_limits.h"

/* What a client asks for. */
struct wanted {
	const char *template_;
	struct text_pairs env, labels;
	int64_t timeout_s;
	bool pause, resume;
	struct e2b_network net;
};

/* Fields that would promise something that is not there. */
static int refuse_missing(const json_t *body, struct err *e)
{
	static const char *const missing[] = { "mcp", "iam", "volumeMounts" };

	for (size_t i = 0; i < ARRAY_LEN(missing); i++) {
		const json_t *v = json_object_get(body, missing[i]);

		if (v && !json_is_null(v) && (json_object_size(v) || json_array_size(v)))
			return err_set(e, ERR_INVALID, "%s is not supported", missing[i]);
	}
	return 0;
}

/* What happens at its end, and when it is used afterwards. */
static int read_lifecycle(const json_t *body, struct wanted *w, struct err *e)
{
	bool memory = true;

	if (field_bool(body, "autoPause", &w->pause, e) < 0 ||
	    field_bool(body, "autoPauseMemory", &memory, e) < 0 ||
	    field_bool(json_object_get(body, "autoResume"), "enabled", &w->resume, e) < 0)
		return -1;
	if (w->resume && !w->pause)
		return err_set(e, ERR_INVALID, "autoResume needs autoPause");
	return memory ? 0 : err_set(e, ERR_INVALID, "pausing without the memory is not supported");
}

/* Clients can neither see nor set the labels of ours. */
static int read_labels(const json_t *body, struct wanted *w, struct err *e)
{
	static const char *const ours[] = { E2B_PRIVATE_KEY, E2B_RESUME_KEY };

	for (size_t i = 0; i < ARRAY_LEN(ours); i++)
		if (json_object_get(json_object_get(body, "metadata"), ours[i])) {
			(void)err_set(e, ERR_INVALID, "metadata: '%s' is reserved", ours[i]);
			return err_field(e, "metadata");
		}
	return field_pairs(body, "metadata", LIMIT_LABELS - (int)ARRAY_LEN(ours), &w->labels, e);
}

static int read_wanted(const json_t *body, struct wanted *w, struct err *e)
{
	if (field_text(body, "templateID", &w->template_, e) < 0 ||
	    field_number(body, "timeout", 1, E2B_TIMEOUT_MOST_S, &w->timeout_s, e) < 0 ||
	    field_bool(body, "allow_internet_access", &w->net.internet, e) < 0 ||
	    e2b_network_read(json_object_get(body, "network"), true, &w->net, e) < 0 ||
	    read_lifecycle(body, w, e) < 0 ||
	    field_pairs(body, "envVars", LIMIT_ENV, &w->env, e) < 0 || read_labels(body, w, e) < 0)
		return -1;
	if (!w->template_) {
		(void)err_set(e, ERR_INVALID, "templateID is missing");
		return err_field(e, "templateID");
	}
	return refuse_missing(body, e);
}

/* One of the asker's snapshots. Another's is as unknown as one that does not exist. */
static int snapshot_template(struct job_run *r, const struct e2b_ask *a, const char *name,
			     char ret[SNAPSHOT_REF], struct err *e)
{
	char id[ID_SIZE];
	int k = snapshot_find(r, a->owner, name, id, e);

	if (k < 0)
		return -1;
	if (k == 0) {
		(void)err_set(e, ERR_NOT_FOUND, "template '%.128s' not found", name);
		return err_code(e, "template.unknown", NULL);
	}
	(void)snprintf(ret, SNAPSHOT_REF, "snap:%s", id);
	return 0;
}

static int create(struct job_run *r, const struct e2b_ask *a, const struct wanted *w, struct err *e)
{
	auto_done(buf_done) struct buf policy = BUF_INIT(LIMIT_POLICY);
	const char *labels[LIMIT_LABELS];
	struct create_spec spec = {
		.template_ = e2b_template_ours(w->template_),
		.env = { (const char *const *)w->env.items, w->env.n },
		.limits = { .ttl_ms = (uint64_t)w->timeout_s * 1000,
			    .on_timeout = w->pause ? "pause" : "kill" },
		.owner = a->owner,
	};
	struct created made;
	char snapshot[SNAPSHOT_REF];
	int nlabels;

	if (!spec.template_) {
		if (snapshot_template(r, a, w->template_, snapshot, e) < 0)
			return -1;
		spec.template_ = snapshot;
	}
	if ((w->net.internet || w->net.given) && !(a->scope & SCOPE_NETWORK))
		return err_set(e, ERR_NOT_ALLOWED,
			       "the scope of this key does not include 'network': ask with "
			       "allow_internet_access: false and without network rules");
	if (api_limits(r, a->owner, &spec.limits, e) < 0)
		return -1;
	for (int i = 0; i < w->labels.n; i++)
		labels[i] = w->labels.items[i];
	nlabels = w->labels.n;
	if (!w->net.public_traffic)
		labels[nlabels++] = E2B_PRIVATE_LABEL;
	if (w->resume)
		labels[nlabels++] = E2B_RESUME_LABEL;
	spec.labels = (struct text_list){ labels, nlabels };
	/* Without any rule there is no network at all, and so nothing that could be changed. */
	if (w->net.internet || w->net.given) {
		if (e2b_network_compile(&w->net, &policy, e) < 0)
			return -1;
		spec.net = (struct net_spec){ .policy = buf_str(&policy),
					      .preset = w->net.internet ? "open" : "none" };
	}
	if (op_create(r->cay, &spec, 1, &made, e) < 0)
		return -1;
	api_limits_warn(&made.warnings);
	return e2b_answer_sandbox(r, 201, made.id, w->template_, !w->net.public_traffic, e);
}

int e2b_create(struct job_run *r, struct err *e)
{
	auto_done(e2b_ask_done) struct e2b_ask a = { 0 };
	struct wanted w = { .timeout_s = E2B_TIMEOUT_S, .net.internet = true };
	int k = e2b_ask_read(r, &a, e);

	if (k == 0)
		k = read_wanted(a.body, &w, e);
	if (k == 0)
		k = create(r, &a, &w, e);
	text_pairs_done(&w.env);
	text_pairs_done(&w.labels);
	return k;
}
