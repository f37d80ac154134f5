/* SPDX-License-Identifier: Apache-2.0 */
/* Devices of the host: those that lie there, and those that one could make. */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "probe.h"

static int made(const struct check *c)
{
	int r;

	own_tmp();
	r = result(mknod("contain-node", (mode_t)c->a[0] | 0600,
			 makedev((unsigned)c->a[1], (unsigned)c->a[2])));
	(void)unlink("contain-node");
	return r;
}

/* Rights of an overlay's layers, which only root outside may set. */
static int forged(const struct check *c)
{
	int fd, r;

	own_tmp();
	fd = open("contain-file", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	r = fd < 0 ? -errno : result(fsetxattr(fd, c->path, "y", 1, 0));
	(void)unlink("contain-file");
	return r;
}

#define GONE "ENOENT|ENXIO|ENODEV|EBUSY|EPERM|EINVAL"
#define DEVICE(id, name, where) \
	{ \
		"dev-" id, "the host's device " name, run_open, where, \
			.lacks = GONE, .dev = "ENOENT", .bare = "ENOENT", .path = "/dev/" name \
	}
#define NODE(id, kind, major, minor) \
	{ \
		"mknod-" id, "a device of one's own: " id, made, ROOT, .bare = "EPERM", \
								       .a = { kind, \
									      major, \
									      minor } \
	}

/* clang-format off */
static const struct check checks[] = {
	DEVICE("mem", "mem", ROOT), DEVICE("port", "port", ROOT), DEVICE("kmsg", "kmsg", ROOT), DEVICE("kvm", "kvm", ROOT),
	DEVICE("fuse", "fuse", ROOT), DEVICE("tun", "net/tun", ROOT), DEVICE("vsock", "vsock", ROOT),
	DEVICE("vhost-vsock", "vhost-vsock", ROOT), DEVICE("vhost-net", "vhost-net", ROOT),
	DEVICE("userfaultfd", "userfaultfd", ROOT), DEVICE("loop-control", "loop-control", ROOT),
	DEVICE("loop0", "loop0", ROOT), DEVICE("vda", "vda", ROOT), DEVICE("sda", "sda", ROOT), DEVICE("nvme", "nvme0n1", ROOT),
	DEVICE("zram0", "zram0", ROOT), DEVICE("btrfs-control", "btrfs-control", ROOT), DEVICE("autofs", "autofs", ROOT),
	DEVICE("mapper", "mapper/control", ROOT), DEVICE("uinput", "uinput", ROOT), DEVICE("rtc", "rtc0", ROOT),
	DEVICE("hpet", "hpet", ROOT), DEVICE("hwrng", "hwrng", ROOT), DEVICE("cpu-latency", "cpu_dma_latency", ROOT),
	DEVICE("vga", "vga_arbiter", ROOT), DEVICE("msr", "cpu/0/msr", ROOT), DEVICE("tty0", "tty0", ROOT),
	DEVICE("tty1", "tty1", ROOT), DEVICE("console", "console", ROOT), DEVICE("serial", "ttyS0", ROOT), DEVICE("screen", "vcs", ROOT),
	NODE("mem", S_IFCHR, 1, 1), NODE("kmem", S_IFCHR, 1, 2), NODE("port", S_IFCHR, 1, 4), NODE("kmsg", S_IFCHR, 1, 11),
	NODE("null", S_IFCHR, 1, 3), NODE("fuse", S_IFCHR, 10, 229), NODE("kvm", S_IFCHR, 10, 232), NODE("tun", S_IFCHR, 10, 200),
	NODE("tty0", S_IFCHR, 4, 0), NODE("sda", S_IFBLK, 8, 0), NODE("loop0", S_IFBLK, 7, 0), NODE("vda", S_IFBLK, 254, 0),
	{ "xattr-trusted", "an overlay's opaque mark", forged, ROOT, .bare = "EPERM", .path = "trusted.overlay.opaque" },
	{ "xattr-redirect", "an overlay's redirection", forged, ROOT, .bare = "EPERM", .path = "trusted.overlay.redirect" },
};
/* clang-format on */

const struct topic devices_topic = { "devices", checks, sizeof checks / sizeof checks[0] };
