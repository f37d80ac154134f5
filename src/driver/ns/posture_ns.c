/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verify who owns the namespaces. A capability counts in the user namespace that owns a resource.
 * Root inside must own its copy of the mounts and nothing else, least of all the network.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "driver/ns/posture.h"

enum { NS_USER, NS_MNT, NS_NET };
static const char *const names[POSTURE_NS] = { "ns/user", "ns/mnt", "ns/net",	"ns/pid",
					       "ns/ipc",  "ns/uts", "ns/cgroup" };

static uint64_t inode_of(int fd)
{
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 ? st.st_ino : 0;
}

static int namespace_ioctl(int fd, unsigned request)
{
	return ioctl(fd, (int)request);
}

int posture_namespaces_open(struct posture *p, int self_fd, struct err *e)
{
	struct stat st;

	for (int i = 0; i < POSTURE_NS; i++) {
		if (fstatat(self_fd, names[i], &st, 0) < 0)
			return err_sys(e, errno, "read '/proc/self/%s'", names[i]);
		p->namespaces[i] = st.st_ino;
		/* Only to make the kernel create it before time is short. */
		(void)fstatat(p->proc_fd, names[i], &st, AT_SYMLINK_NOFOLLOW);
	}
	return 0;
}

/* The user namespace that owns mounts and network: ours, or U1 below it. */
static int check_parents(const struct posture *p, int user, uint64_t *ret_outer, struct err *e)
{
	auto_close int parent = namespace_ioctl(user, NS_GET_PARENT);
	auto_close int above = FD_NONE;
	uint64_t ours = p->namespaces[NS_USER];

	if (parent < 0)
		return err_sys(e, errno, "look at the sandbox: the parent of its user namespace");
	*ret_outer = inode_of(parent);
	if (p->l->spec->rootful) {
		if (*ret_outer == ours && inode_of(user) == inode_of(p->l->userns_fd))
			return 0;
		return posture_differs(e, "user namespace", "the one made for it, below ours",
				       STR("another"));
	}
	above = namespace_ioctl(parent, NS_GET_PARENT);
	if (*ret_outer == ours || inode_of(above) != ours)
		return posture_differs(e, "user namespace", "two levels below ours",
				       STR("another"));
	return 0;
}

static int check_owner(int i, int ns, uint64_t want, struct err *e)
{
	auto_close int owner = namespace_ioctl(ns, NS_GET_USERNS);

	if (owner < 0)
		return err_sys(e, errno, "look at the sandbox: who owns its '%s'", names[i]);
	if (inode_of(owner) == want)
		return 0;
	return posture_differs(e, names[i],
			       i == NS_MNT ? "owned by its own user namespace"
					   : "owned by the outer user namespace",
			       STR("another owner"));
}

int posture_owner(int mount_ns, int user_ns, struct err *e)
{
	return check_owner(NS_MNT, mount_ns, inode_of(user_ns), e);
}

/*
 * User, mount and network: the kernel makes the other namespaces together with the last of these.
 */
static int check_powers(const struct posture *p, struct err *e)
{
	auto_close int user = openat(p->proc_fd, names[NS_USER], O_RDONLY | O_CLOEXEC);
	auto_close int mnt = openat(p->proc_fd, names[NS_MNT], O_RDONLY | O_CLOEXEC);
	auto_close int net = openat(p->proc_fd, names[NS_NET], O_RDONLY | O_CLOEXEC);
	uint64_t outer = 0;

	if (user < 0 || mnt < 0 || net < 0)
		return err_sys(e, errno, "look at the sandbox: its namespaces");
	if (check_parents(p, user, &outer, e) < 0 ||
	    check_owner(NS_MNT, mnt, inode_of(user), e) < 0)
		return -1;
	return check_owner(NS_NET, net, outer, e);
}

int posture_namespaces(const struct posture *p, struct err *e)
{
	for (int i = 0; i < POSTURE_NS; i++) {
		struct stat st;

		if (fstatat(p->proc_fd, names[i], &st, 0) < 0)
			return err_sys(e, errno, "look at the sandbox: its '%s'", names[i]);
		if (st.st_ino == p->namespaces[i])
			return posture_differs(e, names[i], "one of its own", STR("ours"));
	}
	return check_powers(p, e);
}
