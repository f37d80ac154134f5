/* SPDX-License-Identifier: Apache-2.0 */
/* Build requests that must fail before anything is made. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/io.h"
#include "sys/files/rmtree.h"
#include "t.h"
#include "warden/warden.h"

enum { BASE = 0x70000000 };

static char state[64], box[96];
static struct warden w;
static struct err e;
static struct buf body = BUF_INIT(8 << 20);

static void remove_box(void)
{
	(void)rmtree_at(AT_FDCWD, state);
}

static void put(uint16_t tag, const char *text)
{
	CHECK(field_put_c(&body, tag, text) == 0);
}

static void put_n(uint16_t tag, uint64_t v)
{
	CHECK(field_put_u64(&body, tag, v) == 0);
}

static void put_mount(uint64_t kind, const char *dest, int lowers)
{
	auto_done(buf_done) struct buf m = BUF_INIT(4096);

	CHECK(field_put_u64(&m, M_KIND, kind) == 0);
	if (dest)
		CHECK(field_put_c(&m, M_DEST, dest) == 0);
	for (int i = 0; i < lowers; i++)
		CHECK(field_put_c(&m, M_LOWER, "/lower") == 0);
	CHECK(field_put(&body, TAG_MOUNT, buf_str(&m)) == 0);
}

/* A complete request, except for one tag. */
static void put_all_but(uint16_t left_out)
{
	static const uint16_t texts[] = { TAG_ID, TAG_HOSTNAME, TAG_PROGRAM };

	if (!box[0]) {
		(void)snprintf(state, sizeof state, "%s", "/tmp/cay-build.XXXXXX");
		CHECK(mkdtemp(state) != NULL && atexit(remove_box) == 0);
		snprintf(box, sizeof box, "%s/sandboxes", state);
		CHECK(mkdir(box, 0700) == 0);
		(void)snprintf(box, sizeof box, "%s/sandboxes/box", state);
		CHECK(mkdir(box, 0700) == 0);
	}
	warden_free_spec(&w);
	w = (struct warden){ 0 };
	e = (struct err){ 0 };
	buf_clear(&body);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (texts[i] != left_out)
			put(texts[i], "text");
	if (left_out != TAG_PATH)
		put(TAG_PATH, box);
	if (left_out != TAG_MOUNT)
		put_mount(MOUNT_OVERLAY, "/", 1);
	if (left_out != TAG_UID_BASE)
		put_n(TAG_UID_BASE, BASE);
}

static void must_be_empty(void)
{
	DIR *d = opendir(box);
	int n = 0;

	CHECK(d != NULL);
	while (readdir(d))
		n++;
	(void)closedir(d);
	CHECK(n == 2);
}

static void refused(const char *why)
{
	CHECK(warden_build(&w, buf_str(&body), &e) == -1 && e.kind == ERR_INVALID);
	if (!strstr(e.msg, why))
		t_fail_str(__FILE__, __LINE__, e.msg, why);
	CHECK(w.dir_fd == 0 && w.spec.init == NULL && w.cell == NULL && w.state == SANDBOX_NEW);
	must_be_empty();
	warden_free_spec(&w);
	w = (struct warden){ 0 };
}

static void ok(void)
{
	if (build_parse(&w, buf_str(&body), &e) < 0)
		t_fail_str(__FILE__, __LINE__, e.msg, "no error");
	must_be_empty();
}

static void a_request_is_taken_apart(void)
{
	put_all_but(0);
	put_mount(MOUNT_RO, "/data", 2);
	put(TAG_CWD, "/project");
	put(TAG_USER, "me");
	put(TAG_ENV, "A=1");
	put(TAG_ENV, "B=2");
	put_n(TAG_EPHEMERAL, 1);
	put_n(TAG_TRACE, TRACE_CALLS);
	ok();
	CHECK_STR(w.spec.id, "text");
	CHECK_STR(w.spec.dir, box);
	CHECK_STR(w.spec.state, state);
	CHECK(w.rootful && w.spec.rootful && w.spec.uid_base == BASE && w.spec.user == 1000);
	CHECK(w.spec.nmounts == 2 && w.spec.mounts[0].kind == MOUNT_OVERLAY);
	CHECK(w.spec.mounts[1].kind == MOUNT_RO && w.spec.mounts[1].nlower == 2);
	CHECK(!w.spec.mounts[1].has_owner && w.ephemeral && w.trace_level == TRACE_CALLS);
	CHECK_STR(w.spec.mounts[1].dest, "/data");
	CHECK_STR(w.defaults.cwd, "/project");
	CHECK_STR(w.defaults.user, "me");
	CHECK(w.defaults.nenv == 2);
	CHECK_STR(w.defaults.env[1], "B=2");
}

static void what_is_missing_is_refused(void)
{
	static const uint16_t needed[] = { TAG_ID, TAG_HOSTNAME, TAG_PROGRAM, TAG_PATH, TAG_MOUNT };

	for (size_t i = 0; i < ARRAY_LEN(needed); i++) {
		put_all_but(needed[i]);
		refused("missing");
	}
	put_all_but(TAG_UID_BASE);
	if (geteuid() == 0)
		refused("root needs a range");
	else
		ok();
}

static void mounts_end_at_their_limit(void)
{
	put_all_but(0);
	for (int i = 1; i < CELL_MOUNTS; i++)
		put_mount(MOUNT_RO, "/m", CELL_LOWERS);
	ok();
	CHECK(w.spec.nmounts == CELL_MOUNTS);
	put_all_but(0);
	for (int i = 1; i < CELL_MOUNTS + 1; i++)
		put_mount(MOUNT_RO, "/m", 1);
	refused("too many mounts");
	put_all_but(0);
	put_mount(MOUNT_OVERLAY, "/m", CELL_LOWERS + 1);
	refused("too many layers");
}

static void mounts_without_a_place_or_a_source_are_refused(void)
{
	put_all_but(0);
	put_mount(MOUNT_RO, NULL, 1);
	refused("without a place");
	put_all_but(0);
	put_mount(MOUNT_RO, "relative", 1);
	refused("without a place");
	put_all_but(0);
	put_mount(MOUNT_RO, "", 1);
	refused("without a place");
	put_all_but(0);
	put_mount(MOUNT_RO, "/m", 0);
	refused("without a place");
	put_all_but(0);
	CHECK(field_put(&body, TAG_MOUNT, STR("cut")) == 0);
	refused("without a place");
}

static void mounts_of_an_unknown_kind_or_owner_are_refused(void)
{
	auto_done(buf_done) struct buf m = BUF_INIT(4096);

	put_all_but(0);
	put_mount(MOUNT_RO + 1, "/m", 1);
	refused("unknown kind");
	put_all_but(0);
	CHECK(field_put_c(&m, M_DEST, "/m") == 0 && field_put_c(&m, M_LOWER, "/l") == 0);
	CHECK(field_put_u64(&m, M_OWNER, UINT32_MAX) == 0);
	CHECK(field_put(&body, TAG_MOUNT, buf_str(&m)) == 0);
	ok();
	CHECK(w.spec.mounts[1].has_owner && w.spec.mounts[1].owner == UINT32_MAX);
	put_all_but(0);
	CHECK(field_put_u64(&m, M_OWNER, 1ull << 32) == 0);
	CHECK(field_put(&body, TAG_MOUNT, buf_str(&m)) == 0);
	refused("owner");
}

static void ranges_of_uids_that_are_not_ours_are_refused(void)
{
	static const uint64_t bad[] = {
		0, 1000, 65535, UINT32_MAX, UINT32_MAX - 65535, 1ull << 32, UINT64_MAX
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		put_all_but(TAG_UID_BASE);
		put_n(TAG_UID_BASE, bad[i]);
		refused("range of uids");
	}
}

static void numbers_of_another_size_are_refused(void)
{
	static const uint16_t tags[] = { TAG_EPHEMERAL, TAG_TRACE, TAG_UID_BASE };

	for (size_t i = 0; i < ARRAY_LEN(tags); i++) {
		put_all_but(0);
		put(tags[i], "1234567");
		refused("not eight bytes");
	}
}

static void text_with_a_nul_is_refused(void)
{
	static const uint16_t tags[] = { TAG_ID,  TAG_HOSTNAME, TAG_PATH, TAG_PROGRAM,
					 TAG_CWD, TAG_USER,	TAG_ENV };

	for (size_t i = 0; i < ARRAY_LEN(tags); i++) {
		put_all_but(tags[i]);
		CHECK(field_put(&body, tags[i], STR("/tmp\0x")) == 0);
		refused("bad build request");
	}
}

static void repeated_texts_and_variables_have_a_limit(void)
{
	put_all_but(0);
	for (size_t i = 0; i < ARRAY_LEN(w.texts); i++)
		put(TAG_CWD, "/");
	refused("too much");
	put_all_but(0);
	for (int i = 0; i < LIMIT_ENV; i++)
		put(TAG_ENV, "A=1");
	ok();
	put_all_but(0);
	for (int i = 0; i < LIMIT_ENV + 1; i++)
		put(TAG_ENV, "A=1");
	refused("too many variables");
}

static void unknown_tags_are_skipped_and_cut_fields_refused(void)
{
	put_all_but(0);
	put(9999, "from the future");
	ok();
	put_all_but(0);
	CHECK(buf_add(&body, "cut", 3) == 0);
	refused("malformed");
}

T_MAIN(T(a_request_is_taken_apart), T(what_is_missing_is_refused), T(mounts_end_at_their_limit),
       T(mounts_without_a_place_or_a_source_are_refused),
       T(mounts_of_an_unknown_kind_or_owner_are_refused),
       T(ranges_of_uids_that_are_not_ours_are_refused), T(numbers_of_another_size_are_refused),
       T(text_with_a_nul_is_refused), T(repeated_texts_and_variables_have_a_limit),
       T(unknown_tags_are_skipped_and_cut_fields_refused))
