/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the command against fake sandboxes: directories in which init's real file code runs. */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/io.h"
#include "cli/cmd.h"
#include "image/tar_testlib.h"
#include "init/files.h"
#include "ops/copy/file_call.h"
#include "store/catalog.h"
#include "t.h"

extern const struct cmd cmd_cp;

static const struct buf *evil_stream; /* what CALL_READ_TREE returns instead of the real tree */

static int inside(enum call_op op, const char *path, mode_t mode)
{
	switch (op) {
	case CALL_READ_FILE:
		return files_read(path, 0, UINT64_MAX);
	case CALL_WRITE_FILE:
		return files_write(path, mode, NULL);
	case CALL_READ_TREE:
		return evil_stream ? io_write_all(1, evil_stream->data, evil_stream->len) < 0
				   : files_read_tree(path);
	case CALL_WRITE_TREE:
		return files_write_tree(path);
	case CALL_EXEC:
	case CALL_LIST:
	case CALL_WATCH:
		break;
	}
	return 1;
}

/*
 * Replaces src/ops/copy/file_call.c. code holds the child's pid until it has ended; errs: stderr of
 * the children.
 */
static int errs[2] = { FD_NONE, FD_NONE };

int file_call_start(struct file_call *f, struct cay *c, const struct file_call_spec *spec,
		    struct err *e)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int err_fd = memfd_create("stderr", MFD_CLOEXEC);
	char rel[4096], name[4];
	pid_t pid;

	(void)e;
	(void)snprintf(name, sizeof name, "%.3s", spec->id);
	*f = (struct file_call){ .c = c, .spec = *spec, .text = BUF_INIT(1 << 16) };
	(void)snprintf(rel, sizeof rel, "%s%s", spec->path[0] == '/' ? "." : "", spec->path);
	pid = fork();
	if (pid == 0) {
		dup2(spec->in_fd >= 0 ? spec->in_fd : null, 0);
		dup2(spec->out_fd >= 0 ? spec->out_fd : null, 1);
		dup2(err_fd, 2);
		/* The child must close the other ends of our pipes. */
		for (int fd = 3; fd < 64; fd++)
			close(fd);
		_exit(chdir(in_scratch(name)) < 0 ? 9 : inside(spec->op, rel, spec->mode));
	}
	close(null);
	f->code = (int)pid;
	errs[spec->in_fd >= 0] = err_fd;
	return 0;
}

int file_call_wait(struct file_call *f, struct err *e)
{
	int *err_fd = &errs[f->spec.in_fd >= 0], st;

	(void)e;
	CHECK(waitpid(f->code, &st, 0) == f->code);
	f->code = WEXITSTATUS(st);
	CHECK(lseek(*err_fd, 0, SEEK_SET) == 0 && io_read_all(*err_fd, &f->text) == 0);
	fd_close(err_fd);
	return 0;
}

void file_call_done(struct file_call *f)
{
	if (f->c)
		buf_done(&f->text);
	f->c = NULL;
}

static char out_text[1 << 16];

static int cp(const char *from, const char *to, bool json, struct err *e)
{
	char *args[] = { (char *)(uintptr_t)from, (char *)(uintptr_t)to, NULL };
	struct cmd_ctx ctx = {
		.cmd = &cmd_cp, .json = json, .quiet = true, .args = args, .nargs = 2
	};
	int saved = dup(1), mem = memfd_create("stdout", 0), k;
	ssize_t n;

	memset(e, 0, sizeof *e);
	fflush(stdout);
	CHECK(dup2(mem, 1) == 1);
	k = cmd_cp.run(&ctx, e);
	fflush(stdout);
	CHECK(dup2(saved, 1) == 1);
	n = pread(mem, out_text, sizeof out_text - 1, 0);
	CHECK(n >= 0);
	out_text[n] = '\0';
	close(saved);
	close(mem);
	return k;
}

/* Makes sandboxes with these names; each id starts with the name. */
static void make_rows(const char *state)
{
	static const char *const names[] = { "one", "two" };
	struct catalog *c;
	struct state st;
	struct err e;

	CHECK(setenv("CAY_STATE", state, 1) == 0);
	CHECK(state_open(&st, &e) == 0 && catalog_open(&st, &c, &e) == 0);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct sandbox_row row = { .template_ = "base", .uid_slot = -1 };

		(void)snprintf(row.id, sizeof row.id, "%s000000000", names[i]);
		(void)snprintf(row.name, sizeof row.name, "%s", names[i]);
		CHECK(catalog_add_sandbox(c, &row, false, &e) == 0);
	}
	catalog_close(c);
	state_done(&st);
}

static void build(void)
{
	make_rows(in_scratch("state"));
	CHECK(mkdir(in_scratch("one"), 0755) == 0);
	CHECK(mkdir(in_scratch("two"), 0755) == 0);
	CHECK(mkdir(in_scratch("one/dir"), 0755) == 0);
	CHECK(mkdir(in_scratch("host"), 0755) == 0);
	CHECK(mkdir(in_scratch("host/tree"), 0750) == 0);
	make_file(in_scratch("host/file"), "from the host", 0640);
	make_file(in_scratch("host/tree/a"), "a", 0600);
	make_file(in_scratch("one/f"), "from inside", 0644);
	make_file(in_scratch("one/dir/g"), "in a directory", 0755);
	CHECK(chdir(in_scratch("host")) == 0);
}

static void files_and_trees_go_in(void)
{
	struct err e;

	build();
	CHECK(cp("./file", "one:/new", false, &e) == 0);
	CHECK_STR(content(in_scratch("one/new")), "from the host");
	CHECK(cp("file", "one:/dir", false, &e) == 0);
	CHECK_STR(content(in_scratch("one/dir/file")), "from the host");
	CHECK(cp("tree", "one:relative", true, &e) == 0);
	CHECK_STR(content(in_scratch("one/relative/a")), "a");
	CHECK_STR(out_text, "{\"files\":1,\"directories\":1,\"bytes\":1,\"skipped\":0,"
			    "\"changed\":0}\n");
	CHECK(cp("tree/.", "one:", false, &e) == 0);
	CHECK_STR(content(in_scratch("one/a")), "a");
	CHECK(cp("file", "one:/missing/", false, &e) == -1);
	CHECK_STR(e.msg, "one000000000: ./missing/: is not a directory");
	CHECK(cp("none", "one:/x", false, &e) == -1);
	CHECK_STR(e.msg, "'none' does not exist");
	CHECK(e.kind == ERR_NOT_FOUND && !exists(in_scratch("one/x")));
}

static void files_and_trees_come_out(void)
{
	struct err e;

	build();
	CHECK(cp("one:/f", ".", false, &e) == 0);
	CHECK_STR(content("f"), "from inside");
	CHECK(cp("one:f", "renamed", false, &e) == 0);
	CHECK_STR(content("renamed"), "from inside");
	CHECK(cp("one:/dir", "./here", false, &e) == 0);
	CHECK_STR(content("here/g"), "in a directory");
	CHECK(cp("one:/dir", "here", false, &e) == 0);
	CHECK_STR(content("here/dir/g"), "in a directory");
	CHECK(cp("one:/dir/.", "flat", false, &e) == 0);
	CHECK_STR(content("flat/g"), "in a directory");
	CHECK(cp("one:/f", "missing/", false, &e) == -1);
	CHECK_STR(e.code, "copy.no_directory");
	CHECK(cp("one:/f", "missing/x", false, &e) == -1);
	CHECK(cp("one:/none", "x", false, &e) == -1);
	CHECK_STR(e.msg, "one000000000: './none' does not exist");
	CHECK(!exists("x"));
	CHECK(cp("one:/dir", "file", false, &e) == -1);
	CHECK_STR(e.msg, "'file' exists and is not a directory");
}

static void bytes_go_through_stdin_and_stdout(void)
{
	struct err e;
	int fd;

	build();
	fd = open("file", O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0 && dup2(fd, 0) == 0);
	CHECK(cp("-", "one:/made/parents/f", true, &e) == 0);
	CHECK_STR(content(in_scratch("one/made/parents/f")), "from the host");
	CHECK(strstr(out_text, "\"files\":1,\"directories\":0,\"bytes\":13"));
	CHECK(cp("one:/f", "-", false, &e) == 0);
	CHECK_STR(out_text, "from inside");
	CHECK(cp("one:/dir", "-", false, &e) == -1);
	CHECK_STR(e.msg, "one000000000: ./dir: is a directory");
	CHECK_STR(e.code, "copy.is_directory");
	CHECK_STR(e.about, "one:/dir");
	CHECK(cp("one:/f", "-", true, &e) == -1 && e.kind == ERR_INVALID);
	close(fd);
}

/* This stdin never gets data: the copy must end by itself when the other side fails. */
static void a_failed_write_does_not_wait_for_stdin(void)
{
	struct err e;
	int p[2];

	build();
	CHECK(pipe2(p, O_CLOEXEC) == 0 && dup2(p[0], 0) == 0);
	CHECK(cp("-", "one:/dir", false, &e) == -1);
	CHECK_STR(e.msg, "one000000000: ./dir: is a directory");
}

static void trees_go_from_sandbox_to_sandbox(void)
{
	struct err e;

	build();
	CHECK(cp("one:/dir", "two:/copy", true, &e) == 0);
	CHECK_STR(content(in_scratch("two/copy/g")), "in a directory");
	CHECK(strstr(out_text, "\"files\":1,\"directories\":1,\"bytes\":14"));
	CHECK(cp("one:/none", "two:/x", false, &e) == -1);
	CHECK_STR(e.msg, "one000000000: './none' does not exist");
	CHECK(cp("one:/dir", "two:/no/parent", false, &e) == -1);
	CHECK_STR(e.msg, "two000000000: ./no/: No such file or directory");
}

static void a_sandbox_cannot_choose_what_is_written(void)
{
	struct buf b = BUF_INIT(1 << 20);
	struct err e;

	build();
	raw_text(&b, "f", "asked");
	raw_text(&b, ".bashrc", "evil");
	raw_end(&b);
	evil_stream = &b;
	CHECK(cp("one:/f", ".", false, &e) == -1);
	CHECK_STR(e.msg, "entry '.bashrc' was not asked for, only 'f'");
	CHECK(!exists(".bashrc"));
	CHECK(cp("one:/f", "two:", false, &e) == -1);
	CHECK_STR(e.msg, "entry '.bashrc' was not asked for, only 'f'");
	CHECK(!exists(in_scratch("two/.bashrc")));
	b.len -= 1024 + 700;
	CHECK(cp("one:/f", ".", false, &e) == -1);
	CHECK(strstr(e.msg, "ended early"));
	buf_done(&b);
}

static void a_colon_after_a_slash_is_local(void)
{
	struct err e;

	build();
	make_file("a:b", "colon", 0644);
	CHECK(cp("./a:b", "one:/c", false, &e) == 0);
	CHECK_STR(content(in_scratch("one/c")), "colon");
	CHECK(cp("a:b", "one:/c", false, &e) == -1);
	CHECK_STR(e.msg, "no sandbox 'a'");
	CHECK(cp(":/x", "one:/c", false, &e) == -1 && e.hint[0]);
	CHECK(cp("file", "other", false, &e) == -1 && e.kind == ERR_INVALID);
	CHECK_STR(e.code, "copy.no_sandbox");
	CHECK(cp("-", "-", false, &e) == -1 && e.kind == ERR_INVALID);
	CHECK(cp("", "one:/c", false, &e) == -1 && e.kind == ERR_INVALID);
}

static void text_from_inside_is_made_printable(void)
{
	struct err e;

	build();
	CHECK(cp("one:/\033]52;c;x\a", ".", false, &e) == -1);
	CHECK(!strchr(e.msg, '\033') && !strchr(e.msg, '\a') && strstr(e.msg, "?]52;c;x?"));
}

static void what_cannot_be_read_is_an_error_after_the_rest_is_copied(void)
{
	struct err e;

	build();
	CHECK(mkdir("part", 0755) == 0);
	make_file("part/open", "1", 0644);
	make_file("part/closed", "2", 0);
	CHECK(chmod(scratch(), 0755) == 0 && chmod(in_scratch("one"), 0777) == 0);
	CHECK(mkdir(in_scratch("for"), 0755) == 0 && chmod(in_scratch("for"), 0777) == 0);
	if (geteuid() == 0)
		CHECK(setresuid(65534, 65534, 0) == 0);
	make_rows(in_scratch("for/all"));
	CHECK(cp("part", "one:/p", false, &e) == -1);
	CHECK_STR(e.msg, "1 could not be read, the first: part/closed: Permission denied");
	CHECK_STR(content(in_scratch("one/p/open")), "1");
	CHECK(geteuid() != 65534 || setresuid(0, 0, 0) == 0);
}

static void a_fifo_is_written_to_and_read_from(void)
{
	char text[32] = "";
	struct stat st;
	struct err e;
	int fd;

	build();
	CHECK(mkfifo("fifo", 0600) == 0);
	fd = open("fifo", O_RDWR | O_CLOEXEC); /* neither side waits for the other */
	CHECK(fd >= 0 && cp("one:/f", "fifo", false, &e) == 0);
	CHECK(read(fd, text, sizeof text - 1) == 11);
	CHECK_STR(text, "from inside");
	CHECK(lstat("fifo", &st) == 0 && S_ISFIFO(st.st_mode));
	CHECK(cp("one:/dir", "./fifo", false, &e) == -1);
	CHECK(lstat("fifo", &st) == 0 && S_ISFIFO(st.st_mode));
	CHECK(close(fd) == 0);
	if (fork() == 0) {
		alarm(5);
		fd = open("fifo", O_WRONLY | O_CLOEXEC); /* waits for the reader */
		_exit(fd < 0 || io_write_all(fd, "through a fifo", 14) < 0);
	}
	CHECK(cp("fifo", "one:/new", false, &e) == 0);
	CHECK_STR(content(in_scratch("one/new")), "through a fifo");
}

T_MAIN(T(files_and_trees_go_in), T(files_and_trees_come_out), T(bytes_go_through_stdin_and_stdout),
       T(a_failed_write_does_not_wait_for_stdin), T(trees_go_from_sandbox_to_sandbox),
       T(a_sandbox_cannot_choose_what_is_written), T(a_colon_after_a_slash_is_local),
       T(text_from_inside_is_made_printable),
       T(what_cannot_be_read_is_an_error_after_the_rest_is_copied),
       T(a_fifo_is_written_to_and_read_from))
