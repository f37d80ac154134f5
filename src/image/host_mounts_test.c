/* SPDX-License-Identifier: Apache-2.0 */
#include "image/host_mounts.h"

#include "t.h"

static const char sample[] = "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
			     "23 22 0:21 / /proc rw - proc proc rw\n"
			     "24 22 254:1 / /usr/share/with\\040space rw - ext4 /dev/vdb rw\n"
			     "25 22 254:0 /usr/local/cay /srv/bound rw - ext4 /dev/vda rw\n"
			     "26 22 0:30 /@root /pool rw - btrfs /dev/vdc rw\n"
			     "27 22 254:0 /data /opt/data rw - ext4 /dev/vda rw\n"
			     "garbage\n"
			     "28 22 0:31 relative none rw\n";

static struct host_mounts parse(const char *text)
{
	struct host_mounts m;
	struct err e;

	CHECK(host_mounts_parse(strdup(text), &m, &e) == 0);
	return m;
}

static void only_whole_lines_count_and_escapes_are_undone(void)
{
	auto_done(host_mounts_done) struct host_mounts m = parse(sample);

	CHECK(m.n == 6);
	CHECK_STR(m.v[2].point, "/usr/share/with space");
	CHECK_STR(m.v[3].root, "/usr/local/cay");
}

static void mounts_below_a_directory_are_seen(void)
{
	auto_done(host_mounts_done) struct host_mounts m = parse(sample);

	CHECK(host_mounts_below(&m, "/usr"));
	CHECK(host_mounts_below(&m, "/opt"));
	CHECK(host_mounts_below(&m, "/"));
	CHECK(!host_mounts_below(&m, "/us"));
	CHECK(!host_mounts_below(&m, "/usr/share/with space"));
	CHECK(!host_mounts_below(&m, "/bin"));
}

static void a_directory_shows_everything_below_it(void)
{
	auto_done(host_mounts_done) struct host_mounts m = parse(sample);

	CHECK(host_mounts_shows(&m, "/usr", "/usr"));
	CHECK(host_mounts_shows(&m, "/usr", "/usr/local/x"));
	CHECK(host_mounts_shows(&m, "/", "/var/lib/cay"));
	CHECK(!host_mounts_shows(&m, "/usr", "/usrx"));
	CHECK(!host_mounts_shows(&m, "/usr", "/var/lib/cay"));
	CHECK(!host_mounts_shows(&m, "/var/lib/cay", "/var/lib"));
}

static void a_bind_mount_hides_nothing(void)
{
	auto_done(host_mounts_done) struct host_mounts m = parse(sample);

	CHECK(host_mounts_shows(&m, "/usr", "/srv/bound"));
	CHECK(host_mounts_shows(&m, "/usr", "/srv/bound/state"));
	CHECK(host_mounts_shows(&m, "/srv/bound", "/usr/local/cay/state"));
	CHECK(!host_mounts_shows(&m, "/srv/bound", "/usr/local"));
	/* /data is below /opt by a mount there */
	CHECK(host_mounts_shows(&m, "/opt", "/data/cay"));
	CHECK(!host_mounts_shows(&m, "/opt", "/database"));
	/* the same path on another device */
	CHECK(!host_mounts_shows(&m, "/pool", "/@root/x"));
}

T_MAIN(T(only_whole_lines_count_and_escapes_are_undone), T(mounts_below_a_directory_are_seen),
       T(a_directory_shows_everything_below_it), T(a_bind_mount_hides_nothing))
