/* SPDX-License-Identifier: Apache-2.0 */
#include "init/request.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/limits.h"
#include "t.h"

enum { STDIO = 1 << FD_STDIN | 1 << FD_STDOUT | 1 << FD_STDERR };

static struct buf body = BUF_INIT(4 << 20);
static int fds[LIMIT_FRAME_FDS], kept[LIMIT_FRAME_FDS];
static ino_t inodes[LIMIT_FRAME_FDS];
static struct request r;

static void put_c(uint16_t tag, const char *text)
{
	CHECK(field_put_c(&body, tag, text) == 0);
}

static void put_n(uint16_t tag, uint64_t v)
{
	CHECK(field_put_u64(&body, tag, v) == 0);
}

/* Parse the fields put so far, with n descriptors, each of a different file. */
static int parse(int n)
{
	struct frame f = { .type = MSG_RUN, .nfds = (uint8_t)n, .body = buf_str(&body) };
	struct stat st;

	for (int i = 0; i < n; i++) {
		fds[i] = kept[i] = memfd_create("fd", MFD_CLOEXEC);
		CHECK(fds[i] >= 0 && fstat(fds[i], &st) == 0);
		inodes[i] = st.st_ino;
	}
	return request_parse(&r, &f, fds, false);
}

static bool is_open(int i)
{
	return fcntl(kept[i], F_GETFD) >= 0;
}

static bool is_file(int fd, int i)
{
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && st.st_ino == inodes[i];
}

/* End of each test: no descriptor may be left open. */
static void done(int n)
{
	request_done(&r);
	for (int i = 0; i < n; i++)
		CHECK(!is_open(i));
	buf_done(&body);
	body = (struct buf)BUF_INIT(4 << 20);
}

static void refused(int n, int why)
{
	CHECK(parse(n) == why);
	done(n);
}

static void a_request_is_taken_apart(void)
{
	put_n(TAG_OP, CALL_WRITE_FILE);
	put_c(TAG_ARG, "echo");
	put_c(TAG_ENV, "A=1");
	put_c(TAG_ARG, "");
	put_c(TAG_CWD, "/project");
	put_c(TAG_USER, "me");
	put_c(TAG_PATH, "/file");
	put_n(TAG_TTY, 2);
	put_n(TAG_MODE, 04755);
	put_n(TAG_FDS, STDIO);
	CHECK(parse(3) == 0);
	CHECK(r.op == CALL_WRITE_FILE && r.tty == 1 && r.mode == 0755 && r.argc == 2 &&
	      r.envc == 1);
	CHECK_STR(r.argv[0], "echo");
	CHECK_STR(r.argv[1], "");
	CHECK_STR(r.envp[0], "A=1");
	CHECK(!r.argv[2] && !r.envp[1]);
	CHECK_STR(r.cwd, "/project");
	CHECK_STR(r.user, "me");
	CHECK_STR(r.path, "/file");
	done(3);
}

static void absent_fields_have_defaults(void)
{
	put_n(TAG_FDS, STDIO);
	CHECK(parse(3) == 0);
	CHECK(r.op == CALL_EXEC && r.mode == 0644 && !r.tty && !r.argv && !r.envp);
	CHECK(!r.cwd && !r.user && !r.path);
	CHECK(r.fds[FD_REPORT] == FD_NONE && r.fds[FD_CGROUP] == FD_NONE);
	done(3);
}

static void descriptors_get_their_roles_in_order(void)
{
	put_n(TAG_FDS, 1 << FD_STDIN | 1 << FD_STDERR | 1 << FD_CGROUP);
	CHECK(parse(3) == 0);
	CHECK(is_file(r.fds[FD_STDIN], 0) && is_file(r.fds[FD_STDERR], 1));
	CHECK(is_file(r.fds[FD_CGROUP], 2));
	CHECK(r.fds[FD_STDOUT] == FD_NONE && r.fds[FD_REPORT] == FD_NONE);
	done(3);
}

static void descriptors_without_a_role_are_closed(void)
{
	put_n(TAG_FDS, 1 << FD_STDIN | 1ull << 40);
	CHECK(parse(LIMIT_FRAME_FDS) == 0);
	CHECK(is_open(0));
	for (int i = 1; i < LIMIT_FRAME_FDS; i++)
		CHECK(!is_open(i));
	done(LIMIT_FRAME_FDS);
}

static void roles_without_a_descriptor_stay_empty(void)
{
	put_n(TAG_FDS, UINT64_MAX);
	CHECK(parse(2) == 0);
	CHECK(is_file(r.fds[FD_STDIN], 0) && is_file(r.fds[FD_STDOUT], 1));
	CHECK(r.fds[FD_STDERR] == FD_NONE && r.fds[FD_CGROUP] == FD_NONE);
	done(2);
}

static void without_stdin_it_is_refused(void)
{
	refused(3, -EBADMSG);
	put_n(TAG_FDS, STDIO);
	refused(0, -EBADMSG);
	put_n(TAG_FDS, 1 << FD_STDOUT);
	refused(2, -EBADMSG);
}

static void no_descriptor_is_given_out_twice(void)
{
	put_n(TAG_FDS, 1 << FD_STDIN);
	put_n(TAG_FDS, 1 << FD_STDIN | 1 << FD_STDOUT | 1 << FD_STDERR);
	CHECK(parse(2) == 0);
	CHECK(is_file(r.fds[FD_STDIN], 0));
	for (int i = 0; i < FD_ROLES; i++)
		for (int j = 0; j < i; j++)
			CHECK(r.fds[i] == FD_NONE || r.fds[i] != r.fds[j]);
	done(2);
}

static void lists_end_at_their_limits(void)
{
	static const struct {
		uint16_t tag;
		int most;
	} lists[] = { { TAG_ARG, LIMIT_ARGS }, { TAG_ENV, LIMIT_ENV } };

	for (size_t l = 0; l < ARRAY_LEN(lists); l++) {
		for (int more = 0; more < 2; more++) {
			put_n(TAG_FDS, STDIO);
			for (int i = 0; i < lists[l].most + more; i++)
				put_c(lists[l].tag, "x=y");
			CHECK(parse(3) == (more ? -E2BIG : 0));
			CHECK((lists[l].tag == TAG_ARG ? r.argc : r.envc) == lists[l].most);
			done(3);
		}
	}
}

static void text_with_a_nul_is_refused(void)
{
	static const uint16_t tags[] = { TAG_ARG, TAG_ENV, TAG_CWD, TAG_USER, TAG_PATH };

	for (size_t i = 0; i < ARRAY_LEN(tags); i++) {
		put_n(TAG_FDS, STDIO);
		put_c(TAG_ARG, "before");
		CHECK(field_put(&body, tags[i], STR("a\0b")) == 0);
		refused(3, -EBADMSG);
	}
}

static void single_fields_are_refused_twice(void)
{
	static const uint16_t tags[] = { TAG_CWD, TAG_USER, TAG_PATH };

	for (size_t i = 0; i < ARRAY_LEN(tags); i++) {
		put_n(TAG_FDS, STDIO);
		put_c(tags[i], "one");
		put_c(tags[i], "one");
		refused(3, -EBADMSG);
	}
}

static void unknown_tags_are_skipped(void)
{
	put_c(9999, "from the future");
	put_n(TAG_FDS, STDIO);
	CHECK(field_put(&body, 0, STR("\0\0")) == 0);
	put_c(TAG_ARG, "true");
	CHECK(parse(3) == 0);
	CHECK(r.argc == 1);
	done(3);
}

static void numbers_of_another_size_are_refused(void)
{
	static const uint16_t tags[] = { TAG_OP, TAG_TTY, TAG_MODE, TAG_FDS };

	for (size_t i = 0; i < ARRAY_LEN(tags); i++) {
		put_n(TAG_FDS, STDIO);
		CHECK(field_put(&body, tags[i], STR("1234567")) == 0);
		refused(3, -EBADMSG);
	}
}

static void a_file_operation_needs_a_path(void)
{
	for (uint64_t op = CALL_READ_FILE; op <= CALL_WATCH; op++) {
		put_n(TAG_OP, op);
		put_n(TAG_FDS, STDIO);
		refused(3, -EBADMSG);
	}
}

static void a_body_cut_anywhere_leaks_nothing(void)
{
	size_t whole;

	put_n(TAG_FDS, STDIO);
	put_c(TAG_ARG, "argument");
	put_c(TAG_CWD, "/somewhere");
	whole = body.len;
	buf_done(&body);
	body = (struct buf)BUF_INIT(4 << 20);
	for (size_t cut = 0; cut < whole; cut++) {
		int k;

		put_n(TAG_FDS, STDIO);
		put_c(TAG_ARG, "argument");
		put_c(TAG_CWD, "/somewhere");
		buf_cut(&body, cut);
		k = parse(3);
		CHECK(k == -EBADMSG || (k == 0 && !r.cwd));
		done(3);
	}
}

T_MAIN(T(a_request_is_taken_apart), T(absent_fields_have_defaults),
       T(descriptors_get_their_roles_in_order), T(descriptors_without_a_role_are_closed),
       T(roles_without_a_descriptor_stay_empty), T(without_stdin_it_is_refused),
       T(no_descriptor_is_given_out_twice), T(lists_end_at_their_limits),
       T(text_with_a_nul_is_refused), T(single_fields_are_refused_twice),
       T(unknown_tags_are_skipped), T(numbers_of_another_size_are_refused),
       T(a_file_operation_needs_a_path), T(a_body_cut_anywhere_leaks_nothing))
