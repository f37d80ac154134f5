/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/ns/userns.h"

#include <errno.h>
#include <linux/nsfs.h>
#include <stdbool.h>
#include <sys/ioctl.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "t_ns.h"

enum { BASE = 0x70000000, UNMAPPED = -1 };

static struct idmap map[5];
static int lines;

static bool overlap(uint32_t a, uint32_t na, uint32_t b, uint32_t nb)
{
	return (uint64_t)a < (uint64_t)b + nb && (uint64_t)b < (uint64_t)a + na;
}

static int64_t outside_of(uint32_t id)
{
	for (int i = 0; i < lines; i++)
		if (id >= map[i].inside && id - map[i].inside < map[i].count)
			return (int64_t)map[i].outside + (id - map[i].inside);
	return UNMAPPED;
}

/* As many ids as the range has, none twice on either side, none outside: a bijection. */
static void check_bijection(void)
{
	uint64_t sum = 0;

	CHECK(lines >= 1 && lines <= 5);
	for (int i = 0; i < lines; i++) {
		CHECK(map[i].count > 0 && map[i].outside >= BASE);
		CHECK(map[i].outside - BASE + (uint64_t)map[i].count <= USERNS_IDS);
		sum += map[i].count;
		for (int j = 0; j < i; j++) {
			CHECK(!overlap(map[i].inside, map[i].count, map[j].inside, map[j].count));
			CHECK(!overlap(map[i].outside, map[i].count, map[j].outside, map[j].count));
		}
	}
	CHECK(sum == USERNS_IDS);
}

static int64_t want(uint32_t id, uint32_t owner, uint32_t user)
{
	if (id == owner)
		return (int64_t)BASE + user;
	if (id == user)
		return owner < USERNS_IDS ? (int64_t)BASE + owner : UNMAPPED;
	return id < USERNS_IDS ? (int64_t)BASE + id : UNMAPPED;
}

static void check_swap(uint32_t owner, uint32_t user)
{
	const uint32_t centres[] = { 0, 3, owner, user, USERNS_IDS, UINT32_MAX };

	lines = userns_swap(map, BASE, owner, user);
	check_bijection();
	for (size_t c = 0; c < ARRAY_LEN(centres); c++)
		for (int d = -3; d <= 3; d++) {
			uint32_t id = centres[c] + (uint32_t)d;

			CHECK(outside_of(id) == want(id, owner, user));
		}
}

static void a_swap_is_a_bijection_for_every_owner(void)
{
	static const uint32_t users[] = { 1000, 0, 1, USERNS_IDS - 1 };

	for (size_t u = 0; u < ARRAY_LEN(users); u++) {
		for (uint32_t owner = 0; owner < USERNS_IDS + 100; owner++)
			check_swap(owner, users[u]);
		for (uint32_t owner = UINT32_MAX; owner > UINT32_MAX - 100; owner--)
			check_swap(owner, users[u]);
		for (uint32_t owner = USERNS_IDS; owner < UINT32_MAX / 2; owner += 9999991)
			check_swap(owner, users[u]);
	}
}

static void a_swap_maps_every_id_correctly(void)
{
	static const uint32_t owners[] = { 0, 999, 1000, 1001, 65535, 65536, 4000000000u };

	for (size_t i = 0; i < ARRAY_LEN(owners); i++) {
		lines = userns_swap(map, BASE, owners[i], 1000);
		for (uint32_t id = 0; id < USERNS_IDS + 10; id++)
			CHECK(outside_of(id) == want(id, owners[i], 1000));
	}
}

/* The kernel's map of the namespace, read by a process in it. */
static void read_map(int fd, const char *file, char *out, size_t size)
{
	int p[2], st;
	pid_t pid;
	ssize_t n;

	CHECK(pipe2(p, O_CLOEXEC) == 0);
	pid = fork();
	if (pid == 0) {
		auto_done(buf_done) struct buf text = BUF_INIT(4096);

		CHECK(setns(fd, CLONE_NEWUSER) == 0);
		CHECK(io_read_file(AT_FDCWD, file, &text) == 0);
		_exit(io_write_all(p[1], text.data, text.len) != 0);
	}
	CHECK(waitpid(pid, &st, 0) == pid && st == 0 && close(p[1]) == 0);
	n = read(p[0], out, size - 1);
	CHECK(n >= 0 && close(p[0]) == 0);
	out[n] = '\0';
}

static void a_new_namespace_has_the_map_and_no_process(void)
{
	const struct idmap two[] = { { 0, BASE, 10 }, { 50, BASE + 50, 1 } };
	unsigned v[6] = { 0 };
	char text[512];
	int fd;

	t_needs_root();
	fd = userns_new(two, 2);
	CHECK(fd >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC);
	CHECK(waitpid(-1, NULL, 0) < 0 && errno == ECHILD);
	for (int i = 0; i < 2; i++) {
		read_map(fd, i ? "/proc/self/gid_map" : "/proc/self/uid_map", text, sizeof text);
		CHECK(sscanf(text, "%u %u %u %u %u %u", v, v + 1, v + 2, v + 3, v + 4, v + 5) == 6);
		CHECK(v[0] == 0 && v[1] == BASE && v[2] == 10);
		CHECK(v[3] == 50 && v[4] == BASE + 50 && v[5] == 1);
	}
	CHECK(close(fd) == 0);
}

static void an_owned_namespace_has_its_owner_and_leaves_no_process(void)
{
	const struct idmap one = { 0, BASE, 10 };
	unsigned v[3] = { 0 };
	char text[512];
	uid_t owner = 0;
	int fd;

	t_needs_root();
	fd = userns_new_owned(&one, 1, BASE);
	CHECK(fd >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC);
	CHECK(waitpid(-1, NULL, 0) < 0 && errno == ECHILD);
	CHECK(ioctl(fd, NS_GET_OWNER_UID, &owner) == 0 && owner == BASE);
	read_map(fd, "/proc/self/uid_map", text, sizeof text);
	CHECK(sscanf(text, "%u %u %u", v, v + 1, v + 2) == 3 && v[1] == BASE && v[2] == 10);
	CHECK(close(fd) == 0 && geteuid() == 0);
}

static void the_kernel_accepts_every_swap(void)
{
	static const uint32_t owners[] = { 0,	  1,	 999,	1000,	       1001,
					   65534, 65535, 65536, UINT32_MAX - 1 };

	t_needs_root();
	for (size_t i = 0; i < ARRAY_LEN(owners); i++) {
		int fd = userns_new(map, userns_swap(map, BASE, owners[i], 1000));

		CHECK(fd >= 0 && close(fd) == 0);
	}
}

static void a_map_that_overlaps_is_refused_and_leaves_no_process(void)
{
	const struct idmap bad[] = { { 0, BASE, 10 }, { 9, BASE + 100, 1 } };

	t_needs_root();
	CHECK(userns_new(bad, 2) == -EINVAL);
	CHECK(waitpid(-1, NULL, 0) < 0 && errno == ECHILD);
}

T_MAIN(T(a_swap_is_a_bijection_for_every_owner), T(a_swap_maps_every_id_correctly),
       T(a_new_namespace_has_the_map_and_no_process), T(the_kernel_accepts_every_swap),
       T(an_owned_namespace_has_its_owner_and_leaves_no_process),
       T(a_map_that_overlaps_is_refused_and_leaves_no_process))
