/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/process/memfd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "t.h"

enum { SEAL_EXEC = 0x20 };

static int copy_of(const char *path)
{
	int fd = memfd_program(path, "program");

	CHECK(fd >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC);
	return fd;
}

static void the_copy_is_the_program(void)
{
	auto_done(buf_done) struct buf want = BUF_INIT(64 << 20), got = BUF_INIT(64 << 20);
	int fd = copy_of("/proc/self/exe");

	CHECK(io_read_file(AT_FDCWD, "/proc/self/exe", &want) == 0);
	CHECK(lseek(fd, 0, SEEK_SET) == 0 && io_read_all(fd, &got) == 0);
	CHECK(got.len > 1000 && str_eq(buf_str(&want), buf_str(&got)));
}

static void the_copy_can_be_executed(void)
{
	char *const argv[] = { "sh", "-c", "exit 42", NULL };
	int fd = copy_of("/bin/sh"), st;
	pid_t pid = fork();

	if (pid == 0) {
		(void)fexecve(fd, argv, environ);
		_exit(1);
	}
	CHECK(waitpid(pid, &st, 0) == pid && WIFEXITED(st) && WEXITSTATUS(st) == 42);
}

static void the_copy_cannot_be_changed(void)
{
	int fd = copy_of("/bin/sh"), again;
	char path[32];
	struct stat st;

	CHECK(pwrite(fd, "x", 1, 0) < 0 && errno == EPERM);
	CHECK(fstat(fd, &st) == 0 && pwrite(fd, "x", 1, st.st_size) < 0 && errno == EPERM);
	CHECK(ftruncate(fd, 0) < 0 && errno == EPERM);
	CHECK(ftruncate(fd, st.st_size + 1) < 0 && errno == EPERM);
	CHECK(fallocate(fd, 0, 0, st.st_size + 1) < 0 && errno == EPERM);
	CHECK(mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED && errno == EPERM);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	again = open(path, O_RDWR | O_CLOEXEC);
	CHECK(again < 0 || (write(again, "x", 1) < 0 && errno == EPERM));
}

static void the_seals_stay(void)
{
	const int all = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	int fd = copy_of("/bin/sh"), seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	CHECK((seals & all) == all);
	CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) < 0 && errno == EPERM);
	CHECK(fstat(fd, &st) == 0 && (st.st_mode & 07777) == 0555);
	if (!(seals & SEAL_EXEC))
		t_skip("this kernel cannot seal the mode (Linux 6.3)");
	CHECK(fchmod(fd, 0444) < 0 && errno == EPERM);
}

static void an_unreadable_program_is_an_error(void)
{
	CHECK(memfd_program("/none", "x") == -ENOENT);
	CHECK(memfd_program("/tmp", "x") < 0);
}

T_MAIN(T(the_copy_is_the_program), T(the_copy_can_be_executed), T(the_copy_cannot_be_changed),
       T(the_seals_stay), T(an_unreadable_program_is_an_error))
