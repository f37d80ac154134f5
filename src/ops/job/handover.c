/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/job/handover.h"

#include "link/wait.h"

int job_give_link(struct job_run *r, const char *id, struct str more, struct err *e)
{
	auto_done(link_free) struct link *l = NULL;
	struct sandbox_status status;
	struct link_given given;
	struct job_link say = { .more = more };

	/* The warden's greeting says which version it speaks. */
	if (link_connect(&r->cay->wait, &r->cay->state, id, &l, e) < 0 ||
	    link_info(l, &r->cay->wait, &status, e) < 0 || link_give(l, &given, e) < 0)
		return -1;
	l = NULL;
	r->fds[r->nfds++] = given.fd;
	(void)str_copy(say.id, sizeof say.id, str_of(id));
	say.version = given.version;
	say.channel = given.channel;
	return job_link_put(r->out, &say) < 0 ? err_set(e, ERR_FAILED, "the answer is too long")
					      : 0;
}

int job_take_link(struct loop *l, struct job_answer *a, const struct link_ops *ops, void *owner,
		  struct link **ret, struct err *e)
{
	struct link_given given = { .fd = FD_NONE };
	struct job_link said;

	if (a->nfds == 0 || job_link_read(a->out, &said) < 0)
		return err_set(e, ERR_FAILED, "a worker sent no link");
	given.fd = a->fds[0];
	given.version = (unsigned)said.version;
	given.channel = (uint32_t)said.channel;
	a->fds[0] = a->fds[a->nfds - 1];
	a->nfds--;
	return link_adopt(l, given, said.id, ops, owner, ret, e);
}
