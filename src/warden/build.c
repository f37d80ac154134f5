/* SPDX-License-Identifier: Apache-2.0 */
/* From MSG_C_BUILD to a running sandbox. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/number.h"
#include "sys/ns/userns.h"
#include "warden/call/call.h"
#include "warden/features.h"
#include "warden/limit/limits.h"
#include "warden/limit/pause.h"
#include "warden/net/net.h"
#include "warden/ready.h"
#include "warden/warden.h"

enum { DEFAULT_USER = 1000 };

static int bad(struct err *e, const char *what)
{
	return err_set(e, ERR_INVALID, "bad build request: %s", what);
}

/* A copy that lives as long as the warden. */
static char *keep(struct warden *w, struct str s, struct err *e)
{
	char *copy;

	if (!str_is_text(s) || w->ntexts == (int)ARRAY_LEN(w->texts)) {
		(void)bad(e, "text holds a NUL byte, or there is too much of it");
		return NULL;
	}
	copy = strndup(s.n ? s.p : "", s.n);
	if (!copy)
		(void)err_sys(e, ENOMEM, "read the build request");
	else
		w->texts[w->ntexts++] = copy;
	return copy;
}

static int mount_field(struct warden *w, struct cell_mount *m, struct field f, struct err *e)
{
	uint64_t v = 0;

	switch (f.tag) {
	case M_DEST:
		m->dest = keep(w, f.value, e);
		return m->dest ? 0 : -1;
	case M_LOWER:
		if (m->nlower == CELL_LOWERS)
			return bad(e, "too many layers");
		m->lower[m->nlower] = keep(w, f.value, e);
		return m->lower[m->nlower++] ? 0 : -1;
	case M_KIND:
	case M_OWNER:
		if (field_u64(f, &v) < 0)
			return bad(e, "a number is not eight bytes");
		if (v > (f.tag == M_KIND ? MOUNT_RO : UINT32_MAX))
			return bad(e, "a mount of an unknown kind or owner");
		if (f.tag == M_KIND)
			m->kind = (enum mount_kind)v;
		m->has_owner |= f.tag == M_OWNER;
		m->owner = f.tag == M_OWNER ? (uint32_t)v : m->owner;
		return 0;
	default:
		return 0;
	}
}

static int add_mount(struct warden *w, struct str body, struct err *e)
{
	struct cell_mount *m;
	struct field f;
	int r;

	if (w->spec.nmounts == CELL_MOUNTS)
		return bad(e, "too many mounts");
	m = &w->spec.mounts[w->spec.nmounts++];
	while ((r = field_next(&body, &f)) > 0)
		if (mount_field(w, m, f, e) < 0)
			return -1;
	if (r < 0 || !m->dest || m->dest[0] != '/' || m->nlower == 0)
		return bad(e, "a mount without a place or a source");
	return 0;
}

static int add_env(struct warden *w, struct str value, struct err *e)
{
	struct defaults *d = &w->defaults;
	char **grown;

	if (d->nenv == LIMIT_ENV || !str_is_text(value))
		return bad(e, "too many variables");
	grown = realloc(d->env, sizeof(char *) * (size_t)(d->nenv + 1));
	if (!grown)
		return err_sys(e, ENOMEM, "read the build request");
	d->env = grown;
	d->env[d->nenv] = strndup(value.n ? value.p : "", value.n);
	return d->env[d->nenv++] ? 0 : err_sys(e, ENOMEM, "read the build request");
}

static int take_number(struct warden *w, struct field f, struct err *e)
{
	uint64_t v;

	if (field_u64(f, &v) < 0)
		return bad(e, "a number is not eight bytes");
	if (f.tag == TAG_EPHEMERAL)
		w->ephemeral = v != 0;
	else if (f.tag == TAG_TRACE)
		w->trace_level = v == TRACE_CALLS ? TRACE_CALLS : TRACE_FULL;
	else if (f.tag == TAG_NESTED)
		w->spec.nested = v != 0;
	else if (f.tag == TAG_PROFILE)
		w->profile = v == PROFILE_DEV ? PROFILE_DEV : PROFILE_LOCKED;
	else {
		/* The first ranges are real users' ids: root inside must never be root outside. */
		if (v < USERNS_IDS || v > UINT32_MAX - USERNS_IDS)
			return bad(e, "no such range of uids");
		w->rootful = w->spec.rootful = true;
		w->spec.uid_base = (uint32_t)v;
	}
	return 0;
}

static int take_text(struct warden *w, struct field f, struct err *e)
{
	char *text = keep(w, f.value, e);

	if (!text)
		return -1;
	switch (f.tag) {
	case TAG_ID:
		w->spec.id = text;
		break;
	case TAG_HOSTNAME:
		w->spec.hostname = text;
		break;
	case TAG_PATH:
		w->spec.dir = text;
		break;
	case TAG_DISK_PATH:
		w->spec.disk = text;
		break;
	case TAG_PROGRAM:
		w->program = text;
		break;
	case TAG_READY_DIR:
		w->ready_dir = text;
		break;
	case TAG_CWD:
		w->defaults.cwd = text;
		break;
	case TAG_USER:
		w->defaults.user = text;
		break;
	default:
		break;
	}
	return 0;
}

static int take_field(struct warden *w, struct field f, struct err *e)
{
	switch (f.tag) {
	case TAG_MOUNT:
		return add_mount(w, f.value, e);
	case TAG_LAYER:
		return layers_take(w, w->spec.nlayers, f.value, e);
	case TAG_ENV:
		return add_env(w, f.value, e);
	case TAG_EPHEMERAL:
	case TAG_TRACE:
	case TAG_PROFILE:
	case TAG_NESTED:
	case TAG_UID_BASE:
		return take_number(w, f, e);
	case TAG_ID:
	case TAG_HOSTNAME:
	case TAG_PATH:
	case TAG_DISK_PATH:
	case TAG_PROGRAM:
	case TAG_READY_DIR:
	case TAG_CWD:
	case TAG_USER:
		return take_text(w, f, e);
	case TAG_NETWORK:
	case TAG_NET_POLICY:
	case TAG_NAMESERVER:
	case TAG_PROXY:
	case TAG_NO_PROXY:
		return net_take(w, f, e);
	default: /* a limit, or a field that only the trace uses */
		return limits_take(w, f) < 0 || expiry_take(w, f) < 0
			       ? bad(e, "a number is not eight bytes")
			       : 0;
	}
}

int build_take_late(struct warden *w, struct field f, struct err *e)
{
	switch (f.tag) {
	case TAG_ENV:
	case TAG_CWD:
	case TAG_USER:
	case TAG_HOSTNAME:
	case TAG_EPHEMERAL:
	case TAG_TIMEOUT_MS:
	case TAG_TTL_MS:
	case TAG_IDLE_MS:
	case TAG_ON_TIMEOUT:
		return take_field(w, f, e);
	case TAG_NET_POLICY:
	case TAG_NAMESERVER:
	case TAG_PROXY:
	case TAG_NO_PROXY:
		if (w->spec.network)
			return take_field(w, f, e);
		return bad(e, "a ready sandbox without a network gets none");
	case TAG_TEXT: /* only the trace uses it */
	case TAG_NAME:
	case TAG_LABEL:
		return 0;
	default:
		return bad(e, "a ready sandbox cannot be given that any more");
	}
}

/* The sandbox's directory is STATE/sandboxes/ID. */
static int find_state(struct warden *w, struct err *e)
{
	size_t n = strlen(w->spec.dir);

	for (int parts = 0; n > 0 && parts < 2;)
		parts += w->spec.dir[--n] == '/';
	if (n == 0)
		return bad(e, "a directory outside any state directory");
	w->spec.state = keep(w, (struct str){ w->spec.dir, n }, e);
	return w->spec.state ? 0 : -1;
}

/* The sandbox's directory in storage is POOL/ID. */
static int find_pool(struct warden *w, struct err *e)
{
	const char *slash = w->spec.disk ? strrchr(w->spec.disk, '/') : NULL;

	if (!w->spec.disk)
		return 0;
	if (!slash || slash == w->spec.disk || strcmp(slash + 1, w->spec.id) != 0)
		return bad(e, "a directory outside any storage");
	w->spec.storage = keep(w, (struct str){ w->spec.disk, (size_t)(slash - w->spec.disk) }, e);
	return w->spec.storage ? 0 : -1;
}

int build_parse(struct warden *w, struct str body, struct err *e)
{
	struct field f;
	int r;

	while ((r = field_next(&body, &f)) > 0)
		if (take_field(w, f, e) < 0)
			return -1;
	if (r < 0)
		return bad(e, "malformed fields");
	if (!w->spec.id || !w->spec.hostname || !w->spec.dir || !w->program || !w->spec.nmounts)
		return bad(e, "something is missing");
	if (!w->rootful && geteuid() == 0)
		return bad(e, "root needs a range of uids");
	/* The gateway of a ready sandbox allows nothing, and reports nothing, before the claim. */
	if (w->spec.network && net_has_policy(w) == (w->ready_dir != NULL))
		return bad(e, w->ready_dir ? "a ready sandbox gets its policy at the claim"
					   : "a network without a policy");
	/* Its pool key would promise what it is not. */
	if (w->ready_dir && w->not_normal)
		return err_sys(e, -w->not_normal, "take no limits over from the keeper");
	w->spec.user = DEFAULT_USER;
	w->spec.nosuid = w->profile == PROFILE_LOCKED;
	return find_state(w, e) < 0 ? -1 : find_pool(w, e);
}

static int open_dir_at(int dirfd, const char *path, int *ret_fd, struct err *e)
{
	*ret_fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return *ret_fd < 0 ? err_sys(e, errno, "open '%s'", path) : 0;
}

static int open_disk(struct warden *w, struct err *e)
{
	struct layer_roots *r = &w->roots;

	if (open_dir_at(AT_FDCWD, w->spec.state, &r->state_fd, e) < 0)
		return -1;
	if (!w->spec.storage) {
		w->spec.disk = w->spec.dir;
		return open_dir_at(r->state_fd, "layers", &w->layers_fd, e);
	}
	if (open_dir_at(AT_FDCWD, w->spec.storage, &r->storage_fd, e) < 0 ||
	    open_dir_at(r->storage_fd, w->spec.id, &w->disk_fd, e) < 0)
		return -1;
	w->spec.disk_fd = w->disk_fd;
	return open_dir_at(r->storage_fd, "layers", &w->layers_fd, e);
}

static int open_dir(struct warden *w, struct err *e)
{
	w->dir_fd = open(w->spec.dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (w->dir_fd < 0 || fchdir(w->dir_fd) < 0)
		return err_sys(e, errno, "open '%s'", w->spec.dir);
	w->spec.dir_fd = w->spec.disk_fd = w->disk_fd = w->dir_fd;
	return open_disk(w, e);
}

static void trace_texts(struct trace *t, struct str body, uint16_t tag, const char *key, bool list)
{
	struct field f;
	bool open = false;

	while (field_next(&body, &f) > 0) {
		if (f.tag != tag)
			continue;
		if (!list) {
			trace_text(t, key, f.value);
			return;
		}
		if (!open)
			trace_array(t, key);
		open = true;
		trace_item(t, f.value);
	}
	if (open)
		trace_array_end(t);
}

/* The maximum size of the trace; the creator passes the user's setting. */
static uint64_t trace_size(void)
{
	const char *v = getenv("CAY_TRACE_MAX");
	uint64_t bytes;

	if (v && size_parse(v, &bytes) == 0)
		return bytes;
	return (uint64_t)LIMIT_TRACE_SEGMENT * LIMIT_TRACE_SEGMENTS;
}

int build_trace(struct warden *w, struct str body, struct err *e)
{
	struct trace *t = &w->trace;
	int r;

	if (trace_create(t, w->dir_fd, "trace.jsonl", w->spec.id, e) < 0)
		return -1;
	trace_limit(t, w->dir_fd, trace_size());
	w->created_event = trace_begin(t, "sandbox.create", 0, 0);
	trace_texts(t, body, TAG_TEXT, "template", false);
	trace_texts(t, body, TAG_NAME, "name", false);
	trace_texts(t, body, TAG_LABEL, "labels", true);
	trace_text(t, "hostname", str_of(w->spec.hostname));
	trace_text(t, "driver", str_of(w->driver->name));
	trace_text(t, "mode", w->rootful ? STR("rootful") : STR("rootless"));
	trace_text(t, "profile", w->profile == PROFILE_LOCKED ? STR("locked") : STR("dev"));
	if (w->spec.nested)
		trace_bool(t, "nested", true);
	if (w->spec.network)
		trace_bool(t, "network", true);
	trace_array(t, "mounts");
	for (int i = 0; i < w->spec.nmounts; i++)
		trace_item(t, str_of(w->spec.mounts[i].dest));
	trace_array_end(t);
	limits_trace(w);
	r = trace_end(t);
	if (r == 0)
		r = trace_flush(t);
	return r < 0 ? err_sys(e, -r, "write the trace") : 0;
}

/* cay-init lies beside the warden. */
static int find_init(struct warden *w, struct err *e)
{
	char path[LIMIT_PATH];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 16);
	char *slash;

	if (n < 0)
		return err_sys(e, errno, "find cay-init");
	path[n] = '\0';
	slash = strrchr(path, '/');
	memcpy(slash + 1, "cay-init", sizeof "cay-init");
	w->spec.init = keep(w, str_of(path), e);
	return w->spec.init ? 0 : -1;
}

static int start_watching(struct warden *w, struct err *e)
{
	int r;

	if (w->trace_level != TRACE_FULL && !warden_has(w, HAS_EXEC_EVENTS))
		return 0;
	r = watch_new(&w->loop, &w->trace, warden_root(w), &w->watch);
	if (r < 0)
		return err_sys(e, -r, "watch processes");
	watch_guard(w->watch, guard_first_exec, w);
	watch_renames(w->watch, &(struct watch_rename_ops){ init_link_prepare, layers_is_pure, w,
							    warden_init_pid(w) });
	watch_refusals(w->watch, net_deny_namespace);
	return w->ready_dir ? 0 : walk_open(w, e);
}

/* Work that needs only the uppers, or nothing at all. */
static int while_building(void *ctx, struct cell *c, struct err *e)
{
	struct warden *w = ctx;

	w->cell = c;
	guard_look_ahead();
	call_spare_group(w);
	return layers_open(w, e) < 0 ? -1 : clients_listen(w, e);
}

static void trace_refused(struct warden *w, const struct err *e)
{
	if (!w->cell->refused || w->ready_dir)
		return;
	(void)trace_begin(&w->trace, "sandbox.refused", 0, w->created_event);
	trace_text(&w->trace, "detail", str_of(e->msg));
	warden_trace_end(w);
}

/*
 * A sandbox made for one command is verified while init prepares that command. A pool sandbox is
 * verified before it is listed.
 */
static int look_now(struct warden *w, struct err *e)
{
	/* Without descriptors a command cannot wait for the verification. */
	bool later = w->ephemeral && !w->ready_dir && warden_has(w, HAS_FDS);

	if (!later && guard_look(w, VERIFY_BUILT, e) < 0)
		return -1;
	if (start_watching(w, e) < 0)
		return -1;
	if (init_link_open(w, e) < 0)
		return -1;
	if (!later)
		return guard_whole(w, e);
	guard_await_hello(w);
	return 0;
}

int build_begin(struct warden *w, struct err *e)
{
	limits_trace_unenforced(w);
	disk_open(w);
	w->state = SANDBOX_RUNNING;
	expiry_open(w);
	(void)trace_begin(&w->trace, "sandbox.ready", 0, w->created_event);
	trace_num(&w->trace, "start_us", (int64_t)((clock_mono_ns() - w->started_ns) / NS_PER_US));
	if (warden_trace_end(w) == 0)
		return 0;
	*e = w->refusal;
	return -1;
}

int warden_build(struct warden *w, struct str body, struct err *e)
{
	if (build_parse(w, body, e) < 0 || features_check_build(w, e) < 0 || open_dir(w, e) < 0 ||
	    find_init(w, e) < 0)
		return -1;
	if (!w->ready_dir && build_trace(w, body, e) < 0)
		return -1;
	w->spec.meanwhile = (struct cell_meanwhile){ while_building, w };
	init_link_events(w);
	if (w->driver->create(&w->spec, &w->events, &w->cell, e) < 0)
		return -1;
	if (look_now(w, e) < 0) {
		trace_refused(w, e);
		return -1;
	}
	if (net_open(w, e) < 0)
		return -1;
	if (w->ready_dir)
		return ready_open(w, e);
	return build_begin(w, e);
}

void warden_free_spec(struct warden *w)
{
	for (int i = 0; i < w->ntexts; i++)
		free(w->texts[i]);
	for (int i = 0; i < w->defaults.nenv; i++)
		free(w->defaults.env[i]);
	free(w->defaults.env);
}
